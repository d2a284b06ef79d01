//! descartes testkit.
