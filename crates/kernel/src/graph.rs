//! Task graphs: checks, waves, ready set.
