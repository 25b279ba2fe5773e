//! What flows that speak HTTP count: clients what they sent and what came back, servers what they were
//! asked and what they answered.

use std::sync::LazyLock;

use allosaur_engine::app::{AppRow, ApplicationContext};

/// Methods by name. The last is for all others.
const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other",
];
/// Statuses that have a row of their own (RFC 9110, and those in wide use), with their names. The last is
/// for all others.
const STATUSES: [(u16, &str); 47] = [
    (100, "100"),
    (101, "101"),
    (103, "103"),
    (200, "200"),
    (201, "201"),
    (202, "202"),
    (203, "203"),
    (204, "204"),
    (206, "206"),
    (300, "300"),
    (301, "301"),
    (302, "302"),
    (303, "303"),
    (304, "304"),
    (307, "307"),
    (308, "308"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (406, "406"),
    (407, "407"),
    (408, "408"),
    (409, "409"),
    (410, "410"),
    (411, "411"),
    (412, "412"),
    (413, "413"),
    (414, "414"),
    (415, "415"),
    (416, "416"),
    (417, "417"),
    (421, "421"),
    (422, "422"),
    (425, "425"),
    (426, "426"),
    (428, "428"),
    (429, "429"),
    (431, "431"),
    (451, "451"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
    (u16::MAX, "other"),
];

/// Why a request is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A status that the profile does not expect.
    Status,
    /// A body that is shorter or longer than the profile expects.
    BodyLength,
    /// A body with another hash than the profile expects.
    BodyHash,
    /// What came is no HTTP/1.
    Malformed,
    /// A head that never ends.
    HeadTooLong,
    /// The peer closed within a message.
    Truncated,
    /// The peer closed in place of an answer.
    Closed,
    /// The peer reset the connection before the end of the answer.
    Reset,
    /// No answer in time.
    Timeout,
}

const REASONS: [(&str, Failure); 9] = [
    ("status", Failure::Status),
    ("body_length", Failure::BodyLength),
    ("body_hash", Failure::BodyHash),
    ("malformed", Failure::Malformed),
    ("head_too_long", Failure::HeadTooLong),
    ("truncated", Failure::Truncated),
    ("closed", Failure::Closed),
    ("reset", Failure::Reset),
    ("timeout", Failure::Timeout),
];

const REQUESTS: usize = 0;
const RESPONSES: usize = REQUESTS + METHODS.len();
const FAILURES: usize = RESPONSES + STATUSES.len();
const SENT_BYTES: usize = FAILURES + REASONS.len();
const RECEIVED_BYTES: usize = SENT_BYTES + 1;
const UNSENT: usize = RECEIVED_BYTES + 1;
/// Ours is the first of the lists.
const LIST: usize = 0;

static ROWS: LazyLock<Vec<AppRow>> = LazyLock::new(|| {
    let row = |name, label, help, unit| AppRow {
        name,
        label: Some(label),
        help,
        unit,
        is_error: false,
        is_sparse: false,
    };
    let requests = METHODS.map(|method| AppRow {
        is_sparse: true,
        ..row(
            "http_requests",
            ("method", method),
            "HTTP requests: of clients that were sent, of servers that arrived",
            "requests",
        )
    });
    let responses = STATUSES.map(|(_, status)| AppRow {
        is_sparse: true,
        ..row(
            "http_responses",
            ("status", status),
            "HTTP responses by status: of clients that arrived whole, of servers that were sent",
            "responses",
        )
    });
    let failures = REASONS.map(|(reason, _)| AppRow {
        is_error: true,
        ..row(
            "http_failures",
            ("reason", reason),
            "HTTP requests without the response that was expected",
            "requests",
        )
    });
    let bodies = ["sent", "received"].map(|direction| {
        row(
            "http_body_bytes",
            ("direction", direction),
            "Content of HTTP messages, without heads and chunks",
            "bytes",
        )
    });
    let unsent = AppRow {
        is_sparse: true,
        ..row(
            "http_requests_unsent",
            ("reason", "server_closed"),
            "HTTP requests that were left when the server closed the connection between two",
            "requests",
        )
    };
    let mut rows = Vec::new();
    rows.extend(requests);
    rows.extend(responses);
    rows.extend(failures);
    rows.extend(bodies);
    rows.push(unsent);
    rows
});

/// What flows that speak HTTP count.
pub fn rows() -> &'static [AppRow] {
    &ROWS
}

/// Counts for a flow.
pub(super) struct Count<'a, 'c>(pub(super) &'a mut ApplicationContext<'c>);

impl Count<'_, '_> {
    /// A request or a response by its row, see [`method_row`] and [`status_row`].
    pub(super) fn message(&mut self, row: usize) {
        self.0.rows.add(LIST, row, 1);
    }

    pub(super) fn failure(&mut self, failure: Failure) {
        self.failures(failure, 1);
    }

    /// The same for so many requests.
    pub(super) fn failures(&mut self, failure: Failure, requests: u32) {
        let place = REASONS.iter().position(|(_, known)| *known == failure);
        let row = FAILURES + place.unwrap_or(0);
        self.0.rows.add(LIST, row, requests.into());
    }

    pub(super) fn sent_bytes(&mut self, bytes: u64) {
        self.0.rows.add(LIST, SENT_BYTES, bytes);
    }

    pub(super) fn received_bytes(&mut self, bytes: u64) {
        self.0.rows.add(LIST, RECEIVED_BYTES, bytes);
    }

    pub(super) fn unsent(&mut self, requests: u32) {
        self.0.rows.add(LIST, UNSENT, requests.into());
    }
}

/// The row of requests with a method.
pub(super) fn method_row(method: &str) -> usize {
    let place = METHODS.iter().position(|known| *known == method);
    REQUESTS + place.unwrap_or(METHODS.len() - 1)
}

/// The row of responses with a status.
pub(super) fn status_row(status: u16) -> usize {
    let place = STATUSES.binary_search_by_key(&status, |(known, _)| *known);
    RESPONSES + place.unwrap_or(STATUSES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(row: usize) -> &'static str {
        rows()[row].label.expect("each has one").1
    }

    #[test]
    fn rows_have_the_names_of_what_they_count() {
        let (_, others) = STATUSES.split_last().expect("there are some");
        for (status, name) in others {
            assert_eq!(status.to_string(), *name);
            assert_eq!(label(status_row(*status)), *name);
        }
        assert!(STATUSES.is_sorted());
        assert_eq!(label(status_row(599)), "other");
        assert_eq!(label(method_row("PUT")), "PUT");
        assert_eq!(label(method_row("BREW")), "other");
        for (place, (reason, _)) in REASONS.iter().enumerate() {
            assert_eq!(label(FAILURES + place), *reason);
        }
        assert_eq!(label(UNSENT), "server_closed");
        assert_eq!(rows().len(), UNSENT + 1);
    }
}
