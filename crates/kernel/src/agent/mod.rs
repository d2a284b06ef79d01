//! Agents: profiles, argument lists and stream parsers.
