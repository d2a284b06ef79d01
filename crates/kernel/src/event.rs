//! The journal's vocabulary.
