//! How a connection begins: greetings, and who the peer is. Until then it may send a kilobyte.

use std::io;
use std::sync::Mutex;
use std::time::Instant;

use thiserror::Error;

use super::super::access::{AccessList, Admission};
use super::stream::PeerStream;
use super::wire::{
    FrameHeader, GREETING_REST_BYTES, Mechanism, OPENING, REFUSAL, SocketKind, command,
    greeting_rest, has_mechanism, part, read_command, ready, socket_type, text,
};

/// Bytes of one of its frames. A name and a token have 512.
const FRAME_BYTES_MAX: u64 = 1 << 10;
/// Bytes of a name that the log shows.
const NAME_SHOWN: usize = 64;

/// Why there is no connection.
#[derive(Debug, Error)]
pub(super) enum NoHandshake {
    #[error("it has gone: {0}")]
    Gone(#[from] io::Error),
    #[error("it does not speak ZeroMQ's protocol (ZMTP 2.0 or later)")]
    Protocol,
    #[error("a frame of its handshake has {0} bytes")]
    TooLong(u64),
    #[error("it has no name and token")]
    NoToken,
    #[error("it gives a name and token, and nobody is asked for one here")]
    Token,
    #[error("its socket is of a kind that none here talks to")]
    Socket,
    /// Which the log has already.
    #[error("it is not let in")]
    Refused,
}

/// Who is let in.
#[derive(Debug)]
pub(super) struct Access {
    list: Mutex<AccessList>,
    begun: Instant,
}

impl Access {
    pub(super) fn new(list: AccessList) -> Access {
        Access {
            list: Mutex::new(list),
            begun: Instant::now(),
        }
    }

    fn judge(&self, address: &str, name: &[u8], token: &[u8]) -> Admission {
        let now = self.begun.elapsed().as_nanos() as u64;
        let mut list = self.list.lock().expect("who judges does not panic");
        let admission = list.judge(now, address, name, token);
        tell(admission, address, name);
        admission
    }
}

/// Begins a connection with a peer of that address.
pub(super) async fn shake_hands(
    stream: &mut PeerStream,
    kind: SocketKind,
    address: &str,
    access: Option<&Access>,
) -> Result<(), NoHandshake> {
    stream.write(&OPENING).await?;
    stream.fill_to(OPENING.len()).await?;
    let opening = &stream.bytes()[..OPENING.len()];
    let (is_signed, version) = (opening[0] == 0xff && opening[9] & 1 == 1, opening[10]);
    if !is_signed || version == 0 {
        return Err(NoHandshake::Protocol);
    }
    stream.consume(OPENING.len());
    match (version, access) {
        (..3, None) => shake_hands_2(stream, kind).await,
        (..3, Some(_)) => Err(NoHandshake::NoToken),
        (_, None) => shake_hands_3(stream, kind).await,
        (_, Some(access)) => shake_hands_plain(stream, kind, address, access).await,
    }
}

/// ZMTP 2.0: each side tells the number of its socket, and a name that nobody needs here.
async fn shake_hands_2(stream: &mut PeerStream, kind: SocketKind) -> Result<(), NoHandshake> {
    let own = [vec![kind.number()], part(b"", false)].concat();
    stream.write(&own).await?;
    stream.fill_to(1).await?;
    let peer = stream.bytes()[0];
    stream.consume(1);
    frame(stream).await?;
    match kind.talks_to_number(peer) {
        true => Ok(()),
        false => Err(NoHandshake::Socket),
    }
}

async fn shake_hands_3(stream: &mut PeerStream, kind: SocketKind) -> Result<(), NoHandshake> {
    if !greet(stream, Mechanism::Null).await? {
        return Err(NoHandshake::Token);
    }
    stream.write(&ready(kind)).await?;
    let properties = expect(stream, b"READY").await?;
    check_socket(kind, &properties)
}

async fn shake_hands_plain(
    stream: &mut PeerStream,
    kind: SocketKind,
    address: &str,
    access: &Access,
) -> Result<(), NoHandshake> {
    if !greet(stream, Mechanism::Plain).await? {
        return Err(NoHandshake::NoToken);
    }
    let hello = expect(stream, b"HELLO").await?;
    let name_and_token = text(&hello).and_then(|(name, rest)| Some((name, text(rest)?.0)));
    let (name, token) = name_and_token.ok_or(NoHandshake::Protocol)?;
    if access.judge(address, name, token) != Admission::Granted {
        stream.write(REFUSAL).await?;
        return Err(NoHandshake::Refused);
    }
    stream.write(&command("WELCOME", b"")).await?;
    let properties = expect(stream, b"INITIATE").await?;
    stream.write(&ready(kind)).await?;
    check_socket(kind, &properties)
}

/// Sends and reads the rest of the greetings; whether the peer wants the same mechanism.
async fn greet(stream: &mut PeerStream, mechanism: Mechanism) -> Result<bool, NoHandshake> {
    stream.write(&greeting_rest(mechanism)).await?;
    stream.fill_to(GREETING_REST_BYTES).await?;
    let rest = &stream.bytes()[..GREETING_REST_BYTES];
    let is_same = has_mechanism(rest.try_into().expect("so many"), mechanism);
    stream.consume(GREETING_REST_BYTES);
    Ok(is_same)
}

fn check_socket(kind: SocketKind, properties: &[u8]) -> Result<(), NoHandshake> {
    match socket_type(properties) {
        Some(peer) if kind.talks_to(peer) => Ok(()),
        _ => Err(NoHandshake::Socket),
    }
}

/// What follows the name of the next command, which must be that.
async fn expect(stream: &mut PeerStream, name: &[u8]) -> Result<Vec<u8>, NoHandshake> {
    let (header, body) = frame(stream).await?;
    match read_command(&body) {
        Some((found, rest)) if header.is_command && found == name => Ok(rest.to_vec()),
        _ => Err(NoHandshake::Protocol),
    }
}

async fn frame(stream: &mut PeerStream) -> Result<(FrameHeader, Vec<u8>), NoHandshake> {
    let (header, bytes) = loop {
        match FrameHeader::parse(stream.bytes()) {
            Ok(Some(found)) => break found,
            Ok(None) => stream.fill().await?,
            Err(_) => return Err(NoHandshake::Protocol),
        }
    };
    if header.bytes > FRAME_BYTES_MAX {
        return Err(NoHandshake::TooLong(header.bytes));
    }
    stream.consume(bytes);
    let body_bytes = header.bytes as usize;
    stream.fill_to(body_bytes).await?;
    let body = stream.bytes()[..body_bytes].to_vec();
    stream.consume(body_bytes);
    Ok((header, body))
}

/// Logs who was refused. A client tries again many times a second; once blocked it is not told of.
fn tell(admission: Admission, address: &str, name: &[u8]) {
    let name = String::from_utf8_lossy(&name[..name.len().min(NAME_SHOWN)]);
    let name = name.escape_debug();
    match admission {
        Admission::Granted => tracing::debug!("RPC: '{name}' connected from {address}"),
        Admission::Refused { tries_left: 0 } => tracing::warn!(
            "RPC: refused '{name}' from {address}: wrong name or token; \
             the address is not listened to for a minute"
        ),
        Admission::Refused { .. } => {
            tracing::warn!("RPC: refused '{name}' from {address}: wrong name or token");
        }
        Admission::Blocked => {}
    }
}
