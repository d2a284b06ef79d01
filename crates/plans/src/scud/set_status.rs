//! A change of status in either form of the file.

use jiff::Timestamp;

use super::edit::{EditError, ScudEdit, Wish};
use super::{Form, json_edit, scg_edit};
use crate::graph::TaskStatus;

/// Sets the status of one task, if it still is what was `expected` (`None` accepts any).
///
/// The status cell changes, and the time of the last change where the file holds one. When the
/// last open subtask becomes done, the task that it is a part of becomes done too. Every other
/// byte of the file is kept, also where the file is otherwise odd.
pub fn set_status(
    text: &str,
    form: &Form,
    tag: &str,
    id: &str,
    expected: Option<TaskStatus>,
    new: TaskStatus,
    now: Timestamp,
) -> Result<ScudEdit, EditError> {
    let wish = Wish {
        tag,
        id,
        expected,
        new,
        now,
    };
    match form {
        Form::Scg => scg_edit::set_status(text, &wish),
        Form::TagMap | Form::OneTag { .. } => json_edit::set_status(text, form, &wish),
    }
}
