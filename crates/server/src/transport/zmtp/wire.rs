//! Bytes of ZMTP, the protocol of ZeroMQ over TCP (RFC 23/ZMTP 3.0; 2.0 of libzmq 3): greetings,
//! headers of frames, commands. Pure.

use thiserror::Error;

/// A signature, and the version that is spoken: all that is said before the peer has told its own.
pub(super) const OPENING: [u8; 11] = [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3];
/// The rest of the greeting of ZMTP 3.
pub(super) const GREETING_REST_BYTES: usize = 53;
/// In the longest header of a frame.
pub(super) const HEADER_BYTES_MAX: usize = 9;

const MECHANISM_BYTES: usize = 20;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Which sockets a connection is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketKind {
    /// Ours for requests; theirs is REQ, DEALER or ROUTER.
    Router,
    /// Ours for what is published; theirs is SUB or XSUB.
    Pub,
}

impl SocketKind {
    /// Its name, and its number in ZMTP 2.0.
    fn name(self) -> (&'static str, u8) {
        match self {
            SocketKind::Router => ("ROUTER", 6),
            SocketKind::Pub => ("PUB", 1),
        }
    }

    pub(super) fn number(self) -> u8 {
        self.name().1
    }

    /// Whether a peer's socket of that name may talk to ours.
    pub(super) fn talks_to(self, peer: &[u8]) -> bool {
        match self {
            SocketKind::Router => [&b"REQ"[..], b"DEALER", b"ROUTER"].contains(&peer),
            SocketKind::Pub => [&b"SUB"[..], b"XSUB"].contains(&peer),
        }
    }

    /// The same for the numbers of ZMTP 2.0.
    pub(super) fn talks_to_number(self, peer: u8) -> bool {
        match self {
            SocketKind::Router => [3, 5, 6].contains(&peer),
            SocketKind::Pub => [2, 10].contains(&peer),
        }
    }
}

/// How a peer shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    /// Not at all.
    Null,
    /// By a name and a token (RFC 24/ZMTP-PLAIN).
    Plain,
}

impl Mechanism {
    fn name(self) -> &'static [u8] {
        match self {
            Mechanism::Null => b"NULL",
            Mechanism::Plain => b"PLAIN",
        }
    }
}

/// Our greeting behind the opening: the minor version 0, the mechanism, whether we are its server.
pub(super) fn greeting_rest(mechanism: Mechanism) -> [u8; GREETING_REST_BYTES] {
    let mut rest = [0; GREETING_REST_BYTES];
    let name = mechanism.name();
    rest[1..=name.len()].copy_from_slice(name);
    rest[1 + MECHANISM_BYTES] = u8::from(mechanism == Mechanism::Plain);
    rest
}

/// Whether a peer's greeting behind its opening asks for that mechanism.
pub(super) fn has_mechanism(rest: &[u8; GREETING_REST_BYTES], mechanism: Mechanism) -> bool {
    let name = &rest[1..=MECHANISM_BYTES];
    let bytes = name.iter().position(|byte| *byte == 0);
    name[..bytes.unwrap_or(MECHANISM_BYTES)] == *mechanism.name()
}

/// The beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Whether another part of the same message follows.
    pub(super) more: bool,
    pub(super) is_command: bool,
    /// Of what follows.
    pub(super) bytes: u64,
}

/// What bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what it sent is no frame of ZeroMQ")]
pub(super) struct NoFrame;

impl FrameHeader {
    /// Reads the first bytes of a frame: the header and its length; `None` when bytes are missing.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(FrameHeader, usize)>, NoFrame> {
        let Some(&flags) = bytes.first() else {
            return Ok(None);
        };
        let is_command = flags & COMMAND != 0;
        if flags & !(MORE | LONG | COMMAND) != 0 || (is_command && flags & MORE != 0) {
            return Err(NoFrame);
        }
        let (size, header_bytes) = match flags & LONG {
            0 => (bytes.get(1).map(|size| u64::from(*size)), 2),
            _ => {
                let size = bytes.get(1..HEADER_BYTES_MAX);
                let size = size.map(|size| u64::from_be_bytes(size.try_into().expect("eight")));
                (size, HEADER_BYTES_MAX)
            }
        };
        let header = |bytes| FrameHeader {
            more: flags & MORE != 0,
            is_command,
            bytes,
        };
        Ok(size.map(|size| (header(size), header_bytes)))
    }

    /// Appends it.
    pub(super) fn emit(self, to: &mut Vec<u8>) {
        let mut flags = u8::from(self.more) * MORE + u8::from(self.is_command) * COMMAND;
        match u8::try_from(self.bytes) {
            Ok(bytes) => to.extend([flags, bytes]),
            Err(_) => {
                flags |= LONG;
                to.push(flags);
                to.extend(self.bytes.to_be_bytes());
            }
        }
    }
}

/// A part of a message, whole.
pub(super) fn part(body: &[u8], more: bool) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER_BYTES_MAX + body.len());
    let header = FrameHeader {
        more,
        is_command: false,
        bytes: body.len() as u64,
    };
    header.emit(&mut frame);
    frame.extend_from_slice(body);
    frame
}

/// A command, whole: its name and what follows.
pub(super) fn command(name: &str, rest: &[u8]) -> Vec<u8> {
    let bytes = 1 + name.len() + rest.len();
    let mut frame = Vec::with_capacity(HEADER_BYTES_MAX + bytes);
    let header = FrameHeader {
        more: false,
        is_command: true,
        bytes: bytes as u64,
    };
    header.emit(&mut frame);
    frame.push(name.len() as u8);
    frame.extend_from_slice(name.as_bytes());
    frame.extend_from_slice(rest);
    frame
}

/// The command that refuses a name and token, as libzmq writes it and its clients understand it: the
/// length of its name, 5, and the first letter are one byte there, `5E`. RFC 24/ZMTP-PLAIN has both.
pub(super) const REFUSAL: &[u8] = b"\x04\x09\x5eRROR\x03400";

/// The name of a command and what follows.
pub(super) fn read_command(body: &[u8]) -> Option<(&[u8], &[u8])> {
    text(body)
}

/// A text behind its length of a byte, and what follows.
pub(super) fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

/// The READY command of a socket.
pub(super) fn ready(kind: SocketKind) -> Vec<u8> {
    let mut properties = Vec::new();
    for (name, value) in [("Socket-Type", kind.name().0), ("Identity", "")] {
        properties.push(name.len() as u8);
        properties.extend_from_slice(name.as_bytes());
        properties.extend((value.len() as u32).to_be_bytes());
        properties.extend_from_slice(value.as_bytes());
    }
    command("READY", &properties)
}

/// The kind of socket that the properties of a peer name.
pub(super) fn socket_type(mut properties: &[u8]) -> Option<&[u8]> {
    loop {
        let (name, rest) = text(properties)?;
        let (length, rest) = rest.split_at_checked(4)?;
        let length = u32::from_be_bytes(length.try_into().expect("four"));
        let (value, rest) = rest.split_at_checked(length as usize)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        properties = rest;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_greeting_names_its_mechanism() {
        for mechanism in [Mechanism::Null, Mechanism::Plain] {
            let rest = greeting_rest(mechanism);
            assert!(has_mechanism(&rest, mechanism));
            let other = match mechanism {
                Mechanism::Null => Mechanism::Plain,
                Mechanism::Plain => Mechanism::Null,
            };
            assert!(!has_mechanism(&rest, other));
        }
        assert!(!has_mechanism(
            &[b'x'; GREETING_REST_BYTES],
            Mechanism::Null
        ));
    }

    #[test]
    fn sockets_that_do_not_fit_are_told_apart() {
        let ready = ready(SocketKind::Router);
        let (header, at) = FrameHeader::parse(&ready).expect("a frame").expect("whole");
        assert!(header.is_command && header.bytes as usize == ready.len() - at);
        let (name, properties) = read_command(&ready[at..]).expect("a command");
        assert_eq!(name, b"READY");
        assert_eq!(socket_type(properties), Some(&b"ROUTER"[..]));
        assert!(SocketKind::Router.talks_to(b"REQ") && !SocketKind::Router.talks_to(b"SUB"));
        assert!(SocketKind::Pub.talks_to(b"SUB") && !SocketKind::Pub.talks_to(b"REQ"));
        assert_eq!(socket_type(b"\x0bSocket-Type\0\0\0\xffREQ"), None);
    }

    proptest! {
        #[test]
        fn a_header_comes_back(more: bool, is_command: bool, bytes: u64) {
            let header = FrameHeader { more: more && !is_command, is_command, bytes };
            let mut frame = Vec::new();
            header.emit(&mut frame);
            for short in 0..frame.len() {
                prop_assert_eq!(FrameHeader::parse(&frame[..short]), Ok(None));
            }
            prop_assert_eq!(FrameHeader::parse(&frame), Ok(Some((header, frame.len()))));
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = FrameHeader::parse(&bytes);
            let _ = read_command(&bytes);
            let _ = socket_type(&bytes);
        }
    }
}
