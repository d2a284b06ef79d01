//! SCUD task files: read, check and edit, text to text.
