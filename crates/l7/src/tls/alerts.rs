//! Alerts by the names of RFC 8446 section 6, and the counters of flows over TLS.

use std::sync::LazyLock;

use allosaur_engine::app::AppRow;
use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

/// Alerts that end handshakes: their numbers and names. The last is for all others.
const ALERTS: [(u8, &str); 23] = [
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (22, "record_overflow"),
    (40, "handshake_failure"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (112, "unrecognized_name"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
    (0xff, "other"),
];

/// How a session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// We sent this alert.
    Sent(u8),
    /// The peer sent this alert.
    Received(u8),
    /// The first bytes of the peer are no TLS.
    NoTls,
    /// The peer reset the connection within the handshake.
    Reset,
    /// It closed the connection within the handshake.
    Closed,
    /// The connection was given up within the handshake: the peer was silent, or the run is over.
    Unfinished,
}

/// The rows before those of alerts.
const HANDSHAKES_FULL: usize = 0;
const HANDSHAKES_RESUMED: usize = 1;
const NO_TLS: usize = 2;
const RESET: usize = 3;
const CLOSED: usize = 4;
const UNFINISHED: usize = 5;
const SENT: usize = 6;
const RECEIVED: usize = SENT + ALERTS.len();

static ROWS: LazyLock<Vec<AppRow>> = LazyLock::new(|| {
    let handshake = |kind| AppRow {
        name: "tls_handshakes",
        label: Some(("kind", kind)),
        help: "TLS handshakes that succeeded",
        unit: "handshakes",
        is_error: false,
        is_sparse: false,
    };
    let failure = |reason| AppRow {
        name: "tls_failures",
        label: Some(("reason", reason)),
        help: "TLS handshakes that failed without an alert",
        unit: "handshakes",
        is_error: true,
        is_sparse: false,
    };
    let sent = |alert| AppRow {
        name: "tls_alerts_sent",
        label: Some(("alert", alert)),
        help: "Fatal TLS alerts that were sent: what the peer said is refused",
        unit: "alerts",
        is_error: true,
        is_sparse: false,
    };
    let received = |alert| AppRow {
        name: "tls_alerts_received",
        label: Some(("alert", alert)),
        help: "Fatal TLS alerts that came: the peer refuses",
        unit: "alerts",
        is_error: true,
        is_sparse: false,
    };
    let mut rows = vec![handshake("full"), handshake("resumed")];
    rows.extend(["no_tls", "reset", "closed", "unfinished"].map(failure));
    rows.extend(ALERTS.map(|(_, name)| sent(name)));
    rows.extend(ALERTS.map(|(_, name)| received(name)));
    rows
});

/// What flows over TLS count.
pub fn rows() -> &'static [AppRow] {
    &ROWS
}

/// The row of a handshake that succeeded.
pub(super) fn handshake_row(is_resumed: bool) -> usize {
    if is_resumed {
        HANDSHAKES_RESUMED
    } else {
        HANDSHAKES_FULL
    }
}

impl Failure {
    /// What an error of the library means.
    pub(super) fn of(error: &Error) -> Failure {
        match error {
            Error::AlertReceived(alert) => Failure::Received(u8::from(*alert)),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => Failure::NoTls,
            other => Failure::Sent(u8::from(alert_for(other))),
        }
    }

    /// The row that counts it.
    pub(super) fn row(self) -> usize {
        match self {
            Failure::Sent(alert) => SENT + place(alert),
            Failure::Received(alert) => RECEIVED + place(alert),
            Failure::NoTls => NO_TLS,
            Failure::Reset => RESET,
            Failure::Closed => CLOSED,
            Failure::Unfinished => UNFINISHED,
        }
    }
}

fn place(alert: u8) -> usize {
    let place = ALERTS.iter().position(|(number, _)| *number == alert);
    place.unwrap_or(ALERTS.len() - 1)
}

/// The alert that the library sends for an error.
fn alert_for(error: &Error) -> AlertDescription {
    match error {
        Error::InvalidCertificate(error) => error.clone().into(),
        Error::InvalidMessage(error) => (*error).into(),
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => AlertDescription::ProtocolVersion,
        Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        Error::PeerMisbehaved(_) => AlertDescription::IllegalParameter,
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            AlertDescription::UnexpectedMessage
        }
        Error::DecryptError => AlertDescription::BadRecordMac,
        Error::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
        Error::NoCertificatesPresented => AlertDescription::CertificateRequired,
        Error::NoApplicationProtocol => AlertDescription::NoApplicationProtocol,
        _ => AlertDescription::InternalError,
    }
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

    use super::*;

    fn counted(failure: Failure) -> (&'static str, &'static str) {
        let row = rows()[failure.row()];
        (row.name, row.label.expect("it has one").1)
    }

    #[test]
    fn failures_are_counted_by_the_names_of_alerts() {
        let expired = Error::InvalidCertificate(CertificateError::Expired);
        let sent = counted(Failure::of(&expired));
        assert_eq!(sent, ("tls_alerts_sent", "certificate_expired"));
        let refused = Error::AlertReceived(AlertDescription::UnknownCA);
        let received = counted(Failure::of(&refused));
        assert_eq!(received, ("tls_alerts_received", "unknown_ca"));
        let new = Error::AlertReceived(AlertDescription::Unknown(200));
        assert_eq!(counted(Failure::of(&new)).1, "other");
        assert_eq!(counted(Failure::NoTls), ("tls_failures", "no_tls"));
        assert_eq!(counted(Failure::Unfinished).1, "unfinished");
    }
}
