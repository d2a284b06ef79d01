//! Wordings and events that mean: wait until.
