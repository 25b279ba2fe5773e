//! Posting a finished file to a web server, as a form with one file (RFC 7578).

use std::sync::Arc;
use std::time::Duration;

use allosaur_emulation::exports::{Post, PostReport};
use chrono::Local;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::files::Finished;

/// How long a post may take.
const POST_MAX: Duration = Duration::from_secs(180);
/// How long to wait before a post without a reply is made again, which is done once.
pub(super) const RETRY_WAIT: Duration = Duration::from_secs(60);
/// The most of a reply that is read.
const REPLY_BYTES_MAX: usize = 64 << 10;
/// The most of it that is told.
const MESSAGE_CHARS_MAX: usize = 200;
/// Times that users see.
const TIME: &str = "%Y-%m-%d %H:%M:%S%.3f";
/// What TRex says in every post; collectors look that it is there.
const TIMESTAMP: &str = "20200116111214";
const VERSION: &str = "1";

/// Posts a file; tells what came of it. `may_retry` says whether it is tried again without a reply.
pub(super) async fn post(to: Arc<Post>, file: Arc<Finished>, may_retry: bool) -> PostReport {
    let sent = timeout(POST_MAX, exchange(&to, &file)).await;
    let sent = sent.unwrap_or_else(|_| Err(format!("no reply in {} s", POST_MAX.as_secs())));
    let (reply, message) = match sent {
        Ok((status, message)) => {
            let name = status.canonical_reason().unwrap_or_default();
            (Ok((status.as_u16(), name.to_owned())), message)
        }
        Err(error) => (Err(error), String::new()),
    };
    PostReport {
        name: file.name.clone(),
        time: Local::now().format(TIME).to_string(),
        will_retry: may_retry && reply.is_err(),
        reply,
        message,
        bytes: file.bytes.len() as u64,
        templates: file.templates,
        records: file.records,
    }
}

/// What is told of a file that could not be read.
pub(super) fn unread(name: String, error: &std::io::Error) -> PostReport {
    PostReport {
        name,
        time: Local::now().format(TIME).to_string(),
        will_retry: false,
        reply: Err(error.to_string()),
        message: String::new(),
        bytes: 0,
        templates: 0,
        records: 0,
    }
}

async fn exchange(to: &Post, file: &Finished) -> Result<(StatusCode, String), String> {
    let uri: Uri = to
        .url
        .parse()
        .map_err(|error| format!("{}: {error}", to.url))?;
    let authority = uri
        .authority()
        .ok_or_else(|| format!("{} has no host", to.url))?;
    let port = authority.port_u16().unwrap_or(80);
    let host = authority.host().trim_matches(['[', ']']);
    let request = request(to, &uri, file)?;
    let words = |error: &dyn std::error::Error| error.to_string();
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|e| words(&e))?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| words(&error))?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await;
    let reply = match response {
        Ok(response) => Ok(read(response).await),
        Err(error) => Err(words(&error)),
    };
    connection.abort();
    reply
}

async fn read(response: Response<hyper::body::Incoming>) -> (StatusCode, String) {
    let status = response.status();
    let body = Limited::new(response.into_body(), REPLY_BYTES_MAX)
        .collect()
        .await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    (status, text.chars().take(MESSAGE_CHARS_MAX).collect())
}

fn request(to: &Post, uri: &Uri, file: &Finished) -> Result<Request<Full<Bytes>>, String> {
    let boundary = boundary(&file.bytes);
    let mut request = Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(
            HOST,
            uri.authority().map_or("", |authority| authority.as_str()),
        )
        .header(USER_AGENT, "allosaur")
        .header(
            CONTENT_TYPE,
            format!("multipart/form-data; boundary={boundary}"),
        )
        .header("x-exporter-filename", &file.name)
        .header("x-exporter-timestamp", TIMESTAMP)
        .header("x-exporter-version", VERSION);
    if file.is_compressed {
        request = request.header(CONTENT_ENCODING, "gzip");
    }
    for (name, value) in &to.header_fields {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(form(&boundary, file).into()));
    request.map_err(|error| error.to_string())
}

fn form(boundary: &str, file: &Finished) -> Vec<u8> {
    let Finished { name, bytes, .. } = file;
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"sendfile\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    [
        head.as_bytes(),
        bytes,
        format!("\r\n--{boundary}--\r\n").as_bytes(),
    ]
    .concat()
}

/// A text that is not in the bytes.
fn boundary(bytes: &[u8]) -> String {
    let mut number = bytes.len();
    loop {
        let text = format!("allosaur-{number:016x}");
        let is_in = bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes());
        if !is_in {
            return text;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Finished {
        Finished {
            name: "x.ipfix".to_owned(),
            bytes: bytes.to_vec(),
            is_compressed: false,
            templates: 1,
            records: 2,
        }
    }

    #[test]
    fn the_boundary_is_not_in_the_file() {
        let first = boundary(&[0; 25]);
        let second = boundary(first.as_bytes());
        assert!(first != second && second.len() == 25, "{first} {second}");
    }

    #[test]
    fn a_form_has_the_file_between_its_boundaries() {
        let form = form("b", &file(b"content"));
        let text = String::from_utf8(form).expect("it is text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a header and a body");
        assert!(
            head.starts_with("--b\r\n") && head.contains("filename=\"x.ipfix\""),
            "{head}"
        );
        assert_eq!(body, "content\r\n--b--\r\n");
    }

    #[test]
    fn a_wrong_field_of_the_header_is_an_error() {
        let to = Post {
            url: "http://127.0.0.1:1/".to_owned(),
            header_fields: vec![("a b".to_owned(), String::new())],
            posts_max: 0,
            repeats: 0,
            repeat_wait_ns: 0,
        };
        let uri = Uri::from_static("http://127.0.0.1:1/");
        assert!(request(&to, &uri, &file(b"")).is_err());
    }
}
