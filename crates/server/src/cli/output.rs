//! What the command line prints. That nobody reads it any more, as in `allosaur-server config | head -1`, is
//! no defect: Rust's own macros would panic then.

use std::fmt::Display;
use std::io::{Write, stderr, stdout};

/// Prints a line that was asked for.
pub(super) fn line(text: impl Display) {
    // Nothing is left to say to a reader that went away.
    let _ = writeln!(stdout(), "{text}");
}

/// Prints text that was asked for and has its own ends of lines.
pub(super) fn text(text: impl Display) {
    let mut out = stdout();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line for whoever watches: a warning, an error.
pub(super) fn note(text: impl Display) {
    let _ = writeln!(stderr(), "{text}");
}
