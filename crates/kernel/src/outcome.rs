//! Why a loop ended, and the exit code that says so.
