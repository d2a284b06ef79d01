//! Budgets, waits and back-off.
