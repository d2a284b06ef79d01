//! Reads one run of an agent, byte for byte, and reports what matters.
