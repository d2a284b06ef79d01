//! Task specs within a token budget.
