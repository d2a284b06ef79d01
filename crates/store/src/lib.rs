//! descartes store.
