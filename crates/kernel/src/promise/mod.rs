//! Streaming search for the completion promise.
