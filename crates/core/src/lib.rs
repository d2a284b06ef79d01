//! descartes core.
