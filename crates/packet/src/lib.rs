//! Headers, checksums, the frame parser and capture files: bytes to meaning and back.
//!
//! Pure: no clock, no files, no threads.
