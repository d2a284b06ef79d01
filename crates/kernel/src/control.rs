//! Commands a person sends to a running loop, and their answers.
