//! As much of HTTP/1 as is needed to count answers by their class: whether what a program sends asks for
//! one, and what the first bytes of an answer say (RFC 9112, sections 3 and 4).

use super::buffers::{BufferIndex, Buffers};

/// How much of a buffer is searched for the end of its first line.
const LINE_BYTES_MAX: usize = 8192;
/// What a status line begins with, before the minor version: a digit, a space and the status follow.
const VERSION: &[u8] = b"HTTP/1.";
/// The place of the minor version, and of the first digit of the status.
const MINOR: u8 = VERSION.len() as u8;
const CLASS: u8 = MINOR + 2;

/// What an answer is by its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusClass {
    /// 1 to 5: the first digit of the status.
    Of(u8),
    /// It begins with no status line.
    Other,
}

/// How far the beginning of a status line has been read: it may come in several segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusLine(u8);

impl StatusLine {
    /// Reads on. `None` while more must come to know what it is.
    pub(super) fn read(&mut self, data: &[u8]) -> Option<StatusClass> {
        for byte in data {
            let is_right = match self.0 {
                MINOR => byte.is_ascii_digit(),
                CLASS => {
                    let class = byte.wrapping_sub(b'0');
                    let is_class = (1..=5).contains(&class);
                    return Some(match is_class {
                        true => StatusClass::Of(class),
                        false => StatusClass::Other,
                    });
                }
                at => *byte == VERSION.get(usize::from(at)).copied().unwrap_or(b' '),
            };
            if !is_right {
                return Some(StatusClass::Other);
            }
            self.0 += 1;
        }
        None
    }
}

/// Whether a buffer begins with a request of HTTP/1.
pub(super) fn is_request(buffers: &Buffers, buffer: BufferIndex) -> bool {
    let len = (buffers.len(buffer) as usize).min(LINE_BYTES_MAX);
    let mut bytes = vec![0; len];
    buffers.copy_to(buffer, 0, &mut bytes);
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let has_end = line.is_some_and(|line| line.len() < len);
    let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_method =
        method.is_some_and(|word| !word.is_empty() && word.iter().all(u8::is_ascii_uppercase));
    let is_version = version.is_some_and(|word| {
        let minor = word.strip_prefix(VERSION).unwrap_or_default();
        minor.len() == 1 && minor[0].is_ascii_digit()
    });
    let is_target = target.is_some_and(|word| !word.is_empty());
    has_end && is_method && is_target && is_version && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::BufferSpec;

    fn asks(bytes: &[u8]) -> bool {
        let spec = BufferSpec {
            base: bytes.to_vec(),
            bytes: None,
            fill: Vec::new(),
        };
        let buffers = Buffers::new(&[spec]).expect("one small buffer");
        is_request(&buffers, BufferIndex(0))
    }

    #[test]
    fn requests_have_a_method_a_target_and_a_version() {
        for request in [
            &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"POST /x?y=z HTTP/1.0\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\n\r\n",
            b"GET /3384 HTTP/1.1\n",
        ] {
            assert!(asks(request), "{:?}", String::from_utf8_lossy(request));
        }
        for other in [
            &b""[..],
            b"GET / HTTP/1.1",
            b"get / HTTP/1.1\r\n",
            b"GET  HTTP/1.1\r\n",
            b"GET / HTTP/2.0\r\n",
            b"GET / HTTP/1.10\r\n",
            b"GET / x HTTP/1.1\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"\r\nGET / HTTP/1.1\r\n",
            &[0x16, 3, 1, 2, 0, 1],
        ] {
            assert!(!asks(other), "{:?}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_status_is_read_however_its_line_is_cut() {
        for (answer, expected) in [
            (&b"HTTP/1.1 200 OK\r\n"[..], StatusClass::Of(2)),
            (b"HTTP/1.0 503 Busy\r\n", StatusClass::Of(5)),
            (b"HTTP/1.1 100 Continue\r\n", StatusClass::Of(1)),
            (b"HTTP/1.1 600 What\r\n", StatusClass::Other),
            (b"HTTP/2.0 200 OK\r\n", StatusClass::Other),
            (b"HTTP/1.x 200 OK\r\n", StatusClass::Other),
            (b"<html>this is no answer", StatusClass::Other),
        ] {
            for cut in 0..answer.len() {
                let mut line = StatusLine::default();
                let (front, rest) = answer.split_at(cut);
                let class = line.read(front).or_else(|| line.read(rest));
                assert_eq!(class, Some(expected), "cut at {cut}");
            }
        }
        assert_eq!(StatusLine::default().read(b"HTTP/1.1 "), None);
    }
}
