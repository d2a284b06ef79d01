//! Evidence of progress, and stalls.
