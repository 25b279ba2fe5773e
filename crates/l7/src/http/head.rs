//! What the head of a message says, as far as it is needed: who asks for what, how it was answered, where
//! the body ends, and whether the connection stays (RFC 9112).

use std::mem::MaybeUninit;

use super::body::Body;

/// Header lines of a head at most.
const HEADERS_MAX: usize = 100;

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) body: Body,
    /// Whether another request may follow on the connection.
    pub(super) keeps_alive: bool,
}

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestHead<'a> {
    pub(super) method: &'a str,
    /// The path, without what is asked of it behind a `?`.
    pub(super) path: &'a str,
    pub(super) body: Body,
    pub(super) keeps_alive: bool,
    /// The client waits for 100 (Continue) before it sends the body.
    pub(super) expects_continue: bool,
}

/// Why a head is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHead {
    /// It is no HTTP/1, or says two things at once.
    Malformed,
    /// It has more lines than a head may have.
    TooLong,
    /// A version that is none of HTTP/1's.
    Version,
    /// A transfer coding that is not known.
    Coding,
}

impl From<httparse::Error> for BadHead {
    fn from(error: httparse::Error) -> BadHead {
        match error {
            httparse::Error::TooManyHeaders => BadHead::TooLong,
            httparse::Error::Version => BadHead::Version,
            _ => BadHead::Malformed,
        }
    }
}

/// What headers say of body and connection.
#[derive(Debug, Default)]
struct Framing {
    length: Option<u64>,
    is_chunked: bool,
    /// A transfer coding that ends with the connection.
    is_coded: bool,
    closes: bool,
    keeps: bool,
    expects_continue: bool,
}

impl Framing {
    fn of(headers: &[httparse::Header<'_>]) -> Result<Framing, BadHead> {
        let mut framing = Framing::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let length = parse_length(header.value)?;
                // "If the message is received ... with differing values": section 6.3, rule 5.
                if framing.length.is_some_and(|before| before != length) {
                    return Err(BadHead::Malformed);
                }
                framing.length = Some(length);
            } else if is("transfer-encoding") {
                let last = elements(header.value).last().unwrap_or_default();
                framing.is_chunked = last.eq_ignore_ascii_case(b"chunked");
                framing.is_coded = !framing.is_chunked;
            } else if is("connection") {
                // What it mostly says is one word.
                if header.value.eq_ignore_ascii_case(b"keep-alive") {
                    framing.keeps = true;
                    continue;
                }
                for element in elements(header.value) {
                    framing.closes |= element.eq_ignore_ascii_case(b"close");
                    framing.keeps |= element.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is("expect") {
                framing.expects_continue |= header.value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        Ok(framing)
    }

    fn keeps_alive(&self, version: Option<u8>) -> bool {
        !self.closes && (version == Some(1) || self.keeps)
    }
}

fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

fn parse_length(value: &[u8]) -> Result<u64, BadHead> {
    // A single number, as nearly all are.
    if let Some(length) = parse_digits(value) {
        return Ok(length);
    }
    let mut all = elements(value).map(|element| parse_digits(element).ok_or(BadHead::Malformed));
    let first = all.next().ok_or(BadHead::Malformed)??;
    for other in all {
        if other? != first {
            return Err(BadHead::Malformed);
        }
    }
    Ok(first)
}

/// A number of digits only, if it fits.
fn parse_digits(text: &[u8]) -> Option<u64> {
    let add = |number: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        let shifted = number.checked_mul(10).filter(|_| digit < 10)?;
        shifted.checked_add(digit.into())
    };
    match text {
        [] => None,
        text => text.iter().try_fold(0, add),
    }
}

impl ResponseHead {
    /// Reads a whole head; `is_to_head` says that the request was HEAD, whose response has no body.
    pub(super) fn parse(head: &[u8], is_to_head: bool) -> Result<ResponseHead, BadHead> {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        let parsed = config.parse_response_with_uninit_headers(&mut response, head, &mut headers);
        if !parsed?.is_complete() {
            return Err(BadHead::Malformed);
        }
        let status = response.code.ok_or(BadHead::Malformed)?;
        if !(100..=599).contains(&status) {
            return Err(BadHead::Malformed);
        }
        let framing = Framing::of(response.headers)?;
        let has_none = is_to_head || status < 200 || matches!(status, 204 | 304);
        // Section 6.3, in its order.
        let body = match (has_none, framing.length) {
            (true, _) => Body::Length(0),
            _ if framing.is_chunked => Body::chunked(),
            (false, Some(length)) if !framing.is_coded => Body::Length(length),
            _ => Body::UntilClose,
        };
        let ends = body == Body::UntilClose || (framing.is_chunked && framing.length.is_some());
        Ok(ResponseHead {
            status,
            body,
            keeps_alive: framing.keeps_alive(response.version) && !ends,
        })
    }
}

impl RequestHead<'_> {
    /// Reads a whole head.
    pub(super) fn parse(head: &[u8]) -> Result<RequestHead<'_>, BadHead> {
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut []);
        match request.parse_with_uninit_headers(head, &mut headers) {
            Ok(parsed) if parsed.is_complete() => {}
            Err(httparse::Error::Version) if !names_version(head) => {
                return Err(BadHead::Malformed);
            }
            Err(problem) => return Err(problem.into()),
            Ok(_) => return Err(BadHead::Malformed),
        }
        let method = request.method.ok_or(BadHead::Malformed)?;
        let target = request.path.ok_or(BadHead::Malformed)?;
        let framing = Framing::of(request.headers)?;
        let body = match (framing.is_chunked, framing.length) {
            // A length beside chunks may hide a second request: section 6.1.
            (true, Some(_)) => return Err(BadHead::Malformed),
            (true, None) => Body::chunked(),
            (false, _) if framing.is_coded => return Err(BadHead::Coding),
            (false, length) => Body::Length(length.unwrap_or(0)),
        };
        Ok(RequestHead {
            method,
            path: path_of(target),
            body,
            keeps_alive: framing.keeps_alive(request.version),
            expects_continue: framing.expects_continue && !matches!(body, Body::Length(0)),
        })
    }
}

/// Whether the first line ends in a version of HTTP, whichever.
fn names_version(head: &[u8]) -> bool {
    let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let last = line.and_then(|line| line.split(|byte| *byte == b' ').next_back());
    last.is_some_and(|word| word.starts_with(b"HTTP/"))
}

/// The path of a target: in its absolute form, too, as a proxy sends it (section 3.2.2).
fn path_of(target: &str) -> &str {
    let target = match target.starts_with('/') {
        true => target,
        false => match target.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
            None => target,
        },
    };
    let query = target.bytes().position(|byte| byte == b'?');
    &target[..query.unwrap_or(target.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn response(head: &str, is_to_head: bool) -> Result<(Body, bool), BadHead> {
        let parsed = ResponseHead::parse(head.as_bytes(), is_to_head)?;
        Ok((parsed.body, parsed.keeps_alive))
    }

    #[test]
    fn the_end_of_a_response_is_where_the_rfc_says() {
        let ok = |more: &str| format!("HTTP/1.1 200 OK\r\n{more}\r\n");
        let length = ok("Content-Length: 7\r\n");
        assert_eq!(response(&length, false), Ok((Body::Length(7), true)));
        assert_eq!(response(&length, true), Ok((Body::Length(0), true)));
        let chunked = ok("Transfer-Encoding: gzip, Chunked\r\n");
        assert_eq!(response(&chunked, false), Ok((Body::chunked(), true)));
        let both = ok("Transfer-Encoding: chunked\r\nContent-Length: 7\r\n");
        assert_eq!(response(&both, false), Ok((Body::chunked(), false)));
        assert_eq!(response(&ok(""), false), Ok((Body::UntilClose, false)));
        let none = "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n";
        assert_eq!(response(none, false), Ok((Body::Length(0), true)));
        let same = ok("Content-Length: 7, 7\r\nContent-Length: 7\r\n");
        assert_eq!(response(&same, false), Ok((Body::Length(7), true)));
        for bad in [
            ok("Content-Length: 7\r\nContent-Length: 8\r\n"),
            ok("Content-Length: +7\r\n"),
            ok("Content-Length:\r\n"),
            "HTTP/1.1 600 What\r\n\r\n".to_owned(),
            "ICY 200 OK\r\n\r\n".to_owned(),
        ] {
            assert!(response(&bad, false).is_err(), "{bad}");
        }
    }

    #[test]
    fn connections_stay_by_version_and_header() {
        for (version, header, keeps) in [
            ("1.1", "", true),
            ("1.1", "Connection: Upgrade, Close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: keep-alive\r\n", true),
        ] {
            let head = format!("HTTP/{version} 200 OK\r\nContent-Length: 0\r\n{header}\r\n");
            assert_eq!(
                response(&head, false).map(|told| told.1),
                Ok(keeps),
                "{head}"
            );
            let head = format!("GET / HTTP/{version}\r\n{header}\r\n");
            let told = RequestHead::parse(head.as_bytes()).expect("it is right");
            assert_eq!(told.keeps_alive, keeps, "{head}");
        }
    }

    #[test]
    fn a_request_names_its_path() {
        for (target, path) in [
            ("/a/b?c=d", "/a/b"),
            ("http://site.example/a?x", "/a"),
            ("http://site.example", "/"),
            ("*", "*"),
            ("/to?u=http://x/y", "/to"),
        ] {
            let head = format!("GET {target} HTTP/1.1\r\n\r\n");
            let told = RequestHead::parse(head.as_bytes()).expect("it is right");
            assert_eq!((told.method, told.path), ("GET", path));
        }
    }

    #[test]
    fn requests_that_say_two_things_are_refused() {
        let request = |more: &str| {
            let head = format!("POST / HTTP/1.1\r\n{more}\r\n");
            RequestHead::parse(head.as_bytes()).map(|told| (told.body, told.expects_continue))
        };
        let both = request("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n");
        assert_eq!(both, Err(BadHead::Malformed));
        assert_eq!(request("Transfer-Encoding: gzip\r\n"), Err(BadHead::Coding));
        let waits = request("Content-Length: 9\r\nExpect: 100-continue\r\n");
        assert_eq!(waits, Ok((Body::Length(9), true)));
        let many = "a: b\r\n".repeat(HEADERS_MAX + 1);
        assert_eq!(request(&many), Err(BadHead::TooLong));
        let old = RequestHead::parse(b"GET / HTTP/2.0\r\n\r\n");
        assert_eq!(old, Err(BadHead::Version));
        let text = RequestHead::parse(b"what is this\r\n\r\n");
        assert_eq!(text, Err(BadHead::Malformed));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = RequestHead::parse(&bytes);
            let _ = ResponseHead::parse(&bytes, false);
        }
    }
}
