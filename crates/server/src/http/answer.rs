//! What a request is answered with.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::sync::oneshot;

use super::host::Hosts;
use super::limits::Limits;
use crate::counters::Counters;
use crate::metrics::{self, Catalog, TextFormat};

const PLAIN: &str = "text/plain; charset=utf-8";
const INDEX: &str =
    "Allosaur\n\n/metrics  all counters, for Prometheus\n/healthz  whether the server is well\n";

/// Somebody wants to know what there is to be counted.
pub type CatalogRequest = oneshot::Sender<Arc<Catalog>>;

/// What answers are made of.
pub(super) struct Sources {
    pub(super) counters: Counters,
    pub(super) limits: Limits,
    pub(super) hosts: Hosts,
    /// To control.
    pub(super) requests: SyncSender<CatalogRequest>,
    /// Wakes control.
    pub(super) notify: Box<dyn Fn() + Send + Sync>,
}

/// Answers a request; its body is not read.
pub(super) async fn answer<B>(request: Request<B>, sources: Arc<Sources>) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let text = "only GET and HEAD are answered here\n";
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, text);
        let allowed = "GET, HEAD".parse().expect("it is a valid value");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    if let Some(host) = sources.hosts.foreign(request.uri(), request.headers()) {
        let text = format!(
            "'{host:.100}' is no name of this server: ask for its address, or start it with --http-host \
             and this name\n"
        );
        return plain(StatusCode::MISDIRECTED_REQUEST, text);
    }
    match request.uri().path() {
        "/" => plain(StatusCode::OK, INDEX),
        "/metrics" => metrics(form(request.headers()), &sources).await,
        "/healthz" => health(&sources).await,
        _ => {
            let text = "there is nothing of this name; / says what there is\n";
            plain(StatusCode::NOT_FOUND, text)
        }
    }
}

async fn metrics(form: TextFormat, sources: &Sources) -> Response<Full<Bytes>> {
    let catalog = match sources.catalog().await {
        Ok(catalog) => catalog,
        Err(problem) => return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
    };
    let kind = match form {
        TextFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        TextFormat::Plain => "text/plain; version=0.0.4; charset=utf-8",
    };
    let text = metrics::text(&catalog, &sources.counters, form);
    typed(StatusCode::OK, kind, text)
}

async fn health(sources: &Sources) -> Response<Full<Bytes>> {
    let problems = match sources.catalog().await {
        Ok(catalog) => catalog.problems.join("\n"),
        Err(problem) => problem.to_owned(),
    };
    if problems.is_empty() {
        return plain(StatusCode::OK, "ok\n");
    }
    plain(StatusCode::SERVICE_UNAVAILABLE, format!("{problems}\n"))
}

impl Sources {
    async fn catalog(&self) -> Result<Arc<Catalog>, &'static str> {
        let (request, catalog) = oneshot::channel();
        self.requests
            .try_send(request)
            .map_err(|error| match error {
                TrySendError::Full(_) => "too many requests wait for control: try again later",
                TrySendError::Disconnected(_) => "the server ends",
            })?;
        (self.notify)();
        let answered = tokio::time::timeout(self.limits.control, catalog).await;
        let answered = answered.map_err(|_| "the control thread does not answer")?;
        answered.map_err(|_| "the server ends")
    }
}

/// OpenMetrics, unless a client asks for another text and does not know it: browsers, and scrapers
/// of before 2018.
fn form(headers: &HeaderMap) -> TextFormat {
    let accepted = headers.get_all(ACCEPT).iter();
    let accepted: Vec<&str> = accepted.filter_map(|value| value.to_str().ok()).collect();
    let has = |kind: &str| accepted.iter().any(|value| value.contains(kind));
    match has("text/") && !has("application/openmetrics-text") {
        true => TextFormat::Plain,
        false => TextFormat::OpenMetrics,
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    typed(status, PLAIN, text)
}

fn typed(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let response = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "no-store");
    let response = response.body(Full::new(text.into()));
    response.expect("its headers are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(kinds: &[&str]) -> TextFormat {
        let mut headers = HeaderMap::new();
        for kind in kinds {
            headers.append(ACCEPT, kind.parse().expect("a valid value"));
        }
        form(&headers)
    }

    #[test]
    fn only_who_does_not_know_openmetrics_and_wants_text_gets_the_older_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        for kinds in [
            &[][..],
            &["*/*"],
            &[prometheus],
            &["text/plain", prometheus],
        ] {
            assert_eq!(accepting(kinds), TextFormat::OpenMetrics, "{kinds:?}");
        }
        for kinds in [
            &["text/plain"][..],
            &["text/html,application/xml;q=0.9,*/*;q=0.8"],
        ] {
            assert_eq!(accepting(kinds), TextFormat::Plain, "{kinds:?}");
        }
    }
}
