//! What a person sees of a loop: a fold of its events.
