//! descartes client.
