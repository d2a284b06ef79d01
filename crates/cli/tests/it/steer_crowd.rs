//! A person always gets through to a loop: past silent clients, crowds and stopped processes.
