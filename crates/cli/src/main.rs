//! The `descartes` binary.
fn main() {}
