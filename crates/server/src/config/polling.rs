//! The ways in which threads may wait, as users choose them.

use std::str::FromStr;

/// How threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// They never sleep: the best timing, and each takes a whole core that nobody else wants.
    Busy,
    /// They sleep until something is due.
    Adaptive,
}

impl FromStr for Poll {
    type Err = String;

    fn from_str(text: &str) -> Result<Poll, String> {
        match text {
            "busy" => Ok(Poll::Busy),
            "adaptive" => Ok(Poll::Adaptive),
            _ => Err(format!(
                "'{text}' is not a way to poll: write busy or adaptive"
            )),
        }
    }
}

impl Poll {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Poll::Busy => "busy",
            Poll::Adaptive => "adaptive",
        }
    }
}
