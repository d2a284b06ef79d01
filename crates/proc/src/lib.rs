#![allow(unsafe_code)]
//! descartes proc.
