//! What the user asked for, validated.
