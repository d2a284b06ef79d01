//! What becomes of a prompt or spec file that cannot be used when an iteration is to begin. Editors and
//! scripts empty a file before they write it, or remove it before they put a new one there.

use std::time::Duration;

/// A file is looked at again for so long.
pub const LONGEST_SAVE: Duration = Duration::from_secs(3);
/// So often.
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTrouble {
    Empty,
    /// Missing, or no text: maybe half of one.
    Unreadable,
    /// Something else is there, such as a link: it was replaced, and by no editor.
    Replaced,
}

/// Whether a loop can do without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    Prompt,
    Spec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRemedy {
    LookAgain,
    /// Nothing is what somebody wants to say.
    TakeEmpty,
    /// The text of the iteration before, with a warning.
    UseLast,
    GiveUp,
}

/// What to do after `waited`; `has_last`: whether a text of it is known.
pub fn remedy(
    role: FileRole,
    trouble: FileTrouble,
    waited: Duration,
    has_last: bool,
) -> FileRemedy {
    match (role, trouble) {
        (_, FileTrouble::Replaced) => FileRemedy::GiveUp,
        // It may have been empty from the beginning.
        (FileRole::Spec, FileTrouble::Empty) if !has_last => FileRemedy::TakeEmpty,
        _ if waited < LONGEST_SAVE => FileRemedy::LookAgain,
        (FileRole::Spec, FileTrouble::Empty) => FileRemedy::TakeEmpty,
        _ if has_last => FileRemedy::UseLast,
        _ => FileRemedy::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileRemedy::{GiveUp, LookAgain, TakeEmpty, UseLast};
    use FileRole::{Prompt, Spec};
    use FileTrouble::{Empty, Replaced, Unreadable};

    #[test]
    fn a_file_that_is_being_saved_is_waited_for_and_a_replaced_one_is_not() {
        let now = Duration::ZERO;
        let almost = LONGEST_SAVE - Duration::from_millis(1);
        for (role, trouble, waited, has_last, expected) in [
            (Prompt, Empty, now, true, LookAgain),
            (Prompt, Empty, almost, false, LookAgain),
            (Prompt, Empty, LONGEST_SAVE, true, UseLast),
            (Prompt, Empty, LONGEST_SAVE, false, GiveUp),
            (Prompt, Unreadable, almost, true, LookAgain),
            (Prompt, Unreadable, LONGEST_SAVE, true, UseLast),
            (Prompt, Unreadable, LONGEST_SAVE, false, GiveUp),
            (Prompt, Replaced, now, true, GiveUp),
            (Spec, Unreadable, now, true, LookAgain),
            (Spec, Unreadable, LONGEST_SAVE, true, UseLast),
            (Spec, Unreadable, LONGEST_SAVE, false, GiveUp),
            (Spec, Replaced, now, true, GiveUp),
            (Spec, Empty, now, false, TakeEmpty),
            (Spec, Empty, now, true, LookAgain),
            (Spec, Empty, LONGEST_SAVE, true, TakeEmpty),
        ] {
            let got = remedy(role, trouble, waited, has_last);
            assert_eq!(got, expected, "{role:?} {trouble:?} {waited:?} {has_last}");
        }
    }
}
