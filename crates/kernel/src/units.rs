//! Durations, sizes and money as people write them.
