//! BIRD's control socket, as `birdc` uses it: a line asks, lines with codes of four digits answer. A `-`
//! behind the code says that more follows, and a line that begins with a blank has the code of the one
//! before ("Reply codes of BIRD command-line interface", doc/reply_codes).

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::error::NodesError;

/// Long configurations take their time.
const REPLY_MAX: Duration = Duration::from_secs(120);
/// A reply that is longer is given up.
const REPLY_BYTES_MAX: usize = 64 << 20;
/// From this code on it is an error.
const ERRORS: u16 = 8000;

/// A connection to BIRD.
#[derive(Debug)]
pub(super) struct ControlSocket {
    stream: BufReader<UnixStream>,
}

/// What BIRD answers: the last code, and the lines without codes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl ControlSocket {
    /// Connects, and reads the greeting.
    ///
    /// # Errors
    ///
    /// BIRD does not listen.
    pub(super) fn connect(path: &Path) -> Result<ControlSocket, NodesError> {
        let opened = UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(REPLY_MAX))?;
            Ok(ControlSocket {
                stream: BufReader::new(stream),
            })
        });
        let mut socket = opened.map_err(silent)?;
        socket.read().map_err(silent)?;
        Ok(socket)
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    ///
    /// BIRD does not answer.
    pub(super) fn ask(&mut self, line: &str) -> Result<Reply, NodesError> {
        let sent = self
            .stream
            .get_mut()
            .write_all(format!("{line}\n").as_bytes());
        sent.and_then(|()| self.read()).map_err(silent)
    }

    fn read(&mut self) -> io::Result<Reply> {
        let (mut reply, mut bytes, mut line) = (Reply::default(), 0, String::new());
        loop {
            line.clear();
            bytes += self.stream.read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if bytes > REPLY_BYTES_MAX {
                return Err(io::Error::other("the answer is too long"));
            }
            if reply.take(line.trim_end()) {
                return Ok(reply);
            }
        }
    }
}

impl Reply {
    /// Takes a line; whether it is the last.
    fn take(&mut self, line: &str) -> bool {
        let code = line.get(..4).and_then(|code| code.parse().ok());
        let (is_last, text) = match (code, line.get(4..5)) {
            (Some(code), Some("-")) => {
                self.code = code;
                (false, &line[5..])
            }
            (Some(code), _) => {
                self.code = code;
                (true, line.get(5..).unwrap_or_default())
            }
            (None, _) => (false, line.strip_prefix(' ').unwrap_or(line)),
        };
        if !text.trim().is_empty() {
            self.lines.push(text.trim().to_owned());
        }
        is_last
    }

    /// Whether BIRD did what it was asked.
    pub(super) fn is_success(&self) -> bool {
        self.code < ERRORS
    }

    /// The lines, for users.
    pub(super) fn text(&self) -> String {
        match self.is_success() {
            true => self.lines.join("\n"),
            // Before it stands which file was read.
            false => self.lines.last().cloned().unwrap_or_default(),
        }
    }
}

fn silent(error: io::Error) -> NodesError {
    NodesError::System("talk to BIRD", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str) -> Reply {
        let mut reply = Reply::default();
        let mut lines = text.lines();
        assert!(lines.any(|line| reply.take(line)), "{text}");
        assert_eq!(lines.next(), None);
        reply
    }

    #[test]
    fn a_table_is_read_to_its_end() {
        let table = reply("2002-Name Proto\n1002-device1 Device\n static1 Static\n1006-\n0000 \n");
        assert!(table.is_success());
        assert_eq!(table.text(), "Name Proto\ndevice1 Device\nstatic1 Static");
    }

    #[test]
    fn a_refusal_has_the_line_that_is_wrong() {
        let refused = reply("0002-Reading configuration from a.conf\n8002 a.conf:2:2 syntax error");
        assert!(!refused.is_success());
        assert_eq!(refused.text(), "a.conf:2:2 syntax error");
    }
}
