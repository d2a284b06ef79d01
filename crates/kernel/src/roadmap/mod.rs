//! Markdown roadmaps: read, check and edit, text to text.
