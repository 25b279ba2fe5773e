//! One end of a TLS connection: bytes of the peer in, plaintext out, and the other way round.
//!
//! The only place that drives the library. After [`TlsSession::handle_bytes`], failed or not, and after
//! [`TlsSession::send`], `poll_transmit` has what is for the peer.

use std::fmt;
use std::io::{Read, Write};

use allosaur_engine::time::Nanos;
use rustls::{Connection, Error, HandshakeKind, ProtocolVersion};

use super::clock::CoreClock;
use super::settings::{TlsError, TlsVersion};

/// Bytes that are taken out of the library at once.
const CHUNK: usize = 1024;

/// One end of a TLS connection.
pub struct TlsSession {
    connection: Connection,
    clock: CoreClock,
    has_peer_closed: bool,
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsSession").finish_non_exhaustive()
    }
}

impl TlsSession {
    /// A connection of the library that begins now, on the core of this clock.
    pub(super) fn new(connection: Connection, clock: CoreClock) -> TlsSession {
        TlsSession {
            connection,
            clock,
            has_peer_closed: false,
        }
    }

    /// Takes bytes of the peer, any number; what it says inside the tunnel goes behind `plaintext`.
    /// `unix_time` is the time since 1970, by which certificates are judged.
    ///
    /// # Errors
    /// When the session is over. An alert may wait to be sent.
    pub fn handle_bytes(
        &mut self,
        unix_time: Nanos,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let taken = self.handle_records(unix_time, bytes, plaintext);
        taken.map_err(|error| library_error(&error))
    }

    /// The same with the error of the library.
    pub(super) fn handle_records(
        &mut self,
        unix_time: Nanos,
        mut bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.clock.set(unix_time);
        while !bytes.is_empty() {
            let read = self.connection.read_tls(&mut bytes);
            let read = read.map_err(|error| Error::General(error.to_string()))?;
            let state = self.connection.process_new_packets()?;
            self.has_peer_closed = state.peer_has_closed();
            let waiting = state.plaintext_bytes_to_read();
            for _ in 0..waiting.div_ceil(CHUNK) {
                let mut chunk = [0; CHUNK];
                // All that waits is there; an end of the peer's is no error of this message.
                let count = self.connection.reader().read(&mut chunk).unwrap_or(0);
                plaintext.extend_from_slice(&chunk[..count]);
            }
            if read == 0 {
                let reason = "bytes behind the end of the session";
                return Err(Error::General(reason.to_owned()));
            }
        }
        Ok(())
    }

    /// Puts what is for the peer behind `records`.
    pub fn poll_transmit(&mut self, records: &mut Vec<u8>) {
        while self.connection.wants_write() {
            let written = self.connection.write_tls(records);
            written.expect("memory takes all that is written to it");
        }
    }

    /// Says something inside the tunnel, which must be established.
    ///
    /// # Errors
    /// When the session is over.
    pub fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        let written = self.connection.writer().write_all(plaintext);
        written.map_err(|error| TlsError::Protocol(error.to_string()))
    }

    /// Says that nothing more will be said inside the tunnel.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
    }

    /// Whether the peer said that.
    pub fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }

    /// Whether the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Whether the handshake is through, as far as it is this side's.
    pub fn is_established(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// The version that both agreed on.
    pub fn version(&self) -> Option<TlsVersion> {
        match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => Some(TlsVersion::V1_2),
            ProtocolVersion::TLSv1_3 => Some(TlsVersion::V1_3),
            _ => None,
        }
    }

    /// Key material that only both ends know (RFC 5705, RFC 8446 section 7.5).
    ///
    /// # Errors
    /// Before the handshake is through.
    pub fn export_keying_material(&self, label: &[u8], output: &mut [u8]) -> Result<(), TlsError> {
        let exported = self
            .connection
            .export_keying_material(output, label, None)
            .map(|_| ());
        exported.map_err(|error| library_error(&error))
    }
}

/// What an error of the library says.
pub(super) fn library_error(error: &Error) -> TlsError {
    let text = error.to_string();
    match error {
        Error::InvalidCertificate(_) => TlsError::Certificate(text),
        Error::AlertReceived(_) => TlsError::Alert(text),
        Error::General(text) => TlsError::Protocol(text.clone()),
        _ => TlsError::Protocol(text),
    }
}
