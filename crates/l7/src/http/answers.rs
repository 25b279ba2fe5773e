//! What servers say, made once for all flows: an answer for each path, and one for each mistake of a
//! client.

use allosaur_engine::app::{BufferIndex, Buffers};
use allosaur_engine::time::Nanos;

use super::head::BadHead;
use super::rows::status_row;
use super::settings::{
    HttpRoute, HttpServerSettings, HttpSettingsError, check_count, check_headers, check_path,
    has_header, refused, write_headers,
};

/// What a server answers.
#[derive(Debug)]
pub(super) struct Answer {
    /// The head, where the connection stays.
    pub(super) head: Vec<u8>,
    /// The same where it is closed.
    pub(super) last_head: Vec<u8>,
    pub(super) body: Option<BufferIndex>,
    /// Of the body.
    pub(super) body_bytes: u32,
    pub(super) chunk_bytes: u32,
    pub(super) delay: Nanos,
    /// Where it is counted.
    pub(super) row: usize,
}

/// All answers of a server.
#[derive(Debug)]
pub(super) struct Answers {
    /// By their place in the settings; then those without a path.
    answers: Vec<Answer>,
    paths: Vec<String>,
}

/// Answers that have no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotFound,
    Malformed,
    TooLong,
    Coding,
    Version,
}

const REFUSALS: [(Refusal, u16, &str); 5] = [
    (Refusal::NotFound, 404, "Not Found"),
    (Refusal::Malformed, 400, "Bad Request"),
    (Refusal::TooLong, 431, "Request Header Fields Too Large"),
    (Refusal::Coding, 501, "Not Implemented"),
    (Refusal::Version, 505, "HTTP Version Not Supported"),
];

impl From<BadHead> for Refusal {
    fn from(problem: BadHead) -> Refusal {
        match problem {
            BadHead::Malformed => Refusal::Malformed,
            BadHead::TooLong => Refusal::TooLong,
            BadHead::Coding => Refusal::Coding,
            BadHead::Version => Refusal::Version,
        }
    }
}

impl Answers {
    /// Those of these settings.
    pub(super) fn new(
        settings: &HttpServerSettings,
        buffers: &Buffers,
    ) -> Result<Answers, HttpSettingsError> {
        check_count("routes", settings.routes.len())?;
        let mut answers = Vec::new();
        for (i, route) in settings.routes.iter().enumerate() {
            answers.push(answer(&format!("routes[{i}]"), route, buffers)?);
        }
        answers.extend(REFUSALS.map(|(_, status, reason)| refusal(status, reason)));
        let paths = settings.routes.iter().map(|route| route.path.clone());
        Ok(Answers {
            answers,
            paths: paths.collect(),
        })
    }

    pub(super) fn at(&self, place: u16) -> &Answer {
        &self.answers[usize::from(place)]
    }

    /// The answer for a path.
    pub(super) fn find(&self, path: &str) -> u16 {
        let fits = |known: &String| match known.strip_suffix('*') {
            Some(begin) => path.starts_with(begin),
            None => path == known,
        };
        match self.paths.iter().position(fits) {
            Some(place) => place as u16,
            None => self.refusal(Refusal::NotFound),
        }
    }

    /// The answer to a mistake.
    pub(super) fn refusal(&self, refusal: Refusal) -> u16 {
        let place = REFUSALS.iter().position(|(known, ..)| *known == refusal);
        (self.paths.len() + place.unwrap_or(0)) as u16
    }
}

fn answer(field: &str, route: &HttpRoute, buffers: &Buffers) -> Result<Answer, HttpSettingsError> {
    check_path(&format!("{field}.path"), &route.path)?;
    check_headers(field, &route.headers)?;
    let status = route.status;
    if !(200..=599).contains(&status) {
        return refused(
            format!("{field}.status"),
            format!("is {status}; it must be from 200 to 599"),
        );
    }
    let has_none = matches!(status, 204 | 304);
    if has_none && route.body.is_some() {
        return refused(
            format!("{field}.body"),
            format!("stands beside status {status}, which has none: leave one of the two out"),
        );
    }
    let body_bytes = route.body.map_or(0, |body| buffers.len(body));
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    if has_none {
    } else if route.chunk_bytes > 0 {
        head.push_str("Transfer-Encoding: chunked\r\n");
    } else {
        head.push_str(&format!("Content-Length: {body_bytes}\r\n"));
    }
    write_headers(&route.headers, &mut head);
    let (keeps, closes) = match has_header(&route.headers, "connection") {
        true => ("", ""),
        // Clients of HTTP/1.0 want to be told.
        false => ("Connection: keep-alive\r\n", "Connection: close\r\n"),
    };
    Ok(Answer {
        last_head: format!("{head}{closes}\r\n").into_bytes(),
        head: format!("{head}{keeps}\r\n").into_bytes(),
        body: route.body.filter(|_| body_bytes > 0),
        body_bytes,
        chunk_bytes: if has_none { 0 } else { route.chunk_bytes },
        delay: route.delay,
        row: status_row(status),
    })
}

fn refusal(status: u16, reason: &str) -> Answer {
    let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\n");
    Answer {
        last_head: format!("{head}Connection: close\r\n\r\n").into_bytes(),
        head: format!("{head}Connection: keep-alive\r\n\r\n").into_bytes(),
        body: None,
        body_bytes: 0,
        chunk_bytes: 0,
        delay: 0,
        row: status_row(status),
    }
}

/// The reason phrase (RFC 9110, section 15), which nobody reads but people.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "-",
    }
}
