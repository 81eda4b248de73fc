//! Headers: checked views of bytes, and what is written.
