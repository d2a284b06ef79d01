//! Begins loops and takes them up, of whatever kind.

use serde_json::Map;

use crate::host::{
    Host, HostError, HostSettings, NewLoop, Purpose, Resume, Resumed, create_within, resume_for,
};
use crate::tasks::prepare;

/// Begins a loop. Nothing is written before every check has passed.
pub fn create(settings: HostSettings, new: NewLoop) -> Result<Host, HostError> {
    create_within(settings, new, Map::new(), None, prepare)
}

/// Takes a loop up. What was found on the way to one that does not go on is said in `notices`; one that
/// goes on has it in its host's notices.
pub fn resume(
    settings: HostSettings,
    resume: Resume,
    notices: &mut Vec<String>,
) -> Result<Resumed, HostError> {
    resume_for(settings, resume, Purpose::Loop, prepare, notices)
}

/// Takes a task loop up only to bring its finished work into the user's checkout.
pub fn land(settings: HostSettings, resume: Resume) -> Result<Resumed, HostError> {
    resume_for(settings, resume, Purpose::Land, prepare, &mut Vec::new())
}
