//! What a line is judged beside.

use super::echo::Echo;
use super::judge::PromiseRules;
use super::lookback::Before;

/// What a line is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbours<'a> {
    pub(super) rules: &'a PromiseRules,
    pub(super) echo: &'a Echo,
    pub(super) before: Before<'a>,
}
