//! Takes messages out of a stream of bytes, and holds no more of one than its limits say. Pure.
//!
//! A request has an envelope, as REQ sockets make it: parts of proxies, an empty part, and then the
//! request. What comes without, from a DEALER, has no reply that anybody could read: it is left out.

use thiserror::Error;

use super::wire::{FrameHeader, NoFrame};

/// Bytes of a message on the wire, with all its parts and their headers. Who sends more is
/// disconnected; what is smaller and still too large for a request is answered by an error.
pub(super) const WIRE_BYTES_MAX: u64 = 64 << 20;
/// Bytes and parts between the sender's name and the request: those of proxies.
const ROUTE_BYTES_MAX: usize = 4 << 10;
const ROUTE_PARTS_MAX: usize = 16;
/// Bytes of a command.
const COMMAND_BYTES_MAX: u64 = 1 << 10;
/// What is kept of a frame that is too large: whether it is zipped, and how long it says it is.
const KEPT_BYTES: usize = 8;

/// Why a peer is disconnected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Violation {
    #[error(transparent)]
    NoFrame(#[from] NoFrame),
    #[error("it sent a message of more than {} MiB", WIRE_BYTES_MAX >> 20)]
    TooLong,
    #[error("it sent a command of {0} bytes")]
    Command(u64),
}

/// A request that has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) route: Vec<Vec<u8>>,
    /// All of it, or its first bytes when it is too large.
    pub(super) frame: Vec<u8>,
    /// Its other bytes, then.
    pub(super) left_out: usize,
}

/// What the next bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Part of something: more bytes are needed.
    Incomplete,
    /// The begin of a message, which may not begin yet.
    Held,
    /// A part begins for which so many bytes will be held, with those before it.
    Begins(usize),
    Command(Vec<u8>),
    Request(Request),
}

/// Where in a message the parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before its first part.
    Start,
    Route,
    Body,
    /// Nobody could be answered: up to its end, nothing is kept.
    Ignored,
}

/// Takes them out.
///
/// Drive it like this: [`take`](MessageReader::take) with all bytes that are there, which says how
/// many it has used; until it says [`Event::Incomplete`] or [`Event::Held`].
#[derive(Debug)]
pub(super) struct MessageReader {
    frame_bytes_max: usize,
    place: Place,
    wire_bytes: u64,
    /// The part or command at hand, and what is missing of it.
    at_hand: Option<(FrameHeader, u64)>,
    command: Vec<u8>,
    /// The part of the route at hand.
    hop: Vec<u8>,
    request: Request,
}

impl MessageReader {
    /// For requests of at most so many bytes.
    pub(super) fn new(frame_bytes_max: usize) -> MessageReader {
        MessageReader {
            frame_bytes_max,
            place: Place::Start,
            wire_bytes: 0,
            at_hand: None,
            command: Vec::new(),
            hop: Vec::new(),
            request: Request::default(),
        }
    }

    /// Uses bytes up to the next event.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        may_begin: bool,
    ) -> Result<(usize, Event), Violation> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some((header, missing)) = &mut self.at_hand else {
                let Some((header, header_bytes)) = FrameHeader::parse(rest)? else {
                    return Ok((used, Event::Incomplete));
                };
                if !header.is_command && self.place == Place::Start && !may_begin {
                    return Ok((used, Event::Held));
                }
                used += header_bytes;
                self.begin(header, header_bytes)?;
                match self.held() {
                    0 => continue,
                    held => return Ok((used, Event::Begins(held))),
                }
            };
            let n = (*missing).min(rest.len() as u64) as usize;
            *missing -= n as u64;
            used += n;
            let (header, is_whole) = (*header, *missing == 0);
            self.keep(header, &rest[..n]);
            if !is_whole {
                return Ok((used, Event::Incomplete));
            }
            self.at_hand = None;
            if let Some(event) = self.end(header) {
                return Ok((used, event));
            }
        }
    }

    /// Bytes that are held of the request when the part at hand is whole.
    fn held(&self) -> usize {
        match (self.place, self.at_hand) {
            (Place::Body, Some((header, missing))) if !header.is_command => {
                let bytes = self.request.frame.len() as u64 + missing;
                match bytes > self.frame_bytes_max as u64 {
                    true => 0,
                    false => bytes as usize,
                }
            }
            _ => 0,
        }
    }

    fn begin(&mut self, header: FrameHeader, header_bytes: usize) -> Result<(), Violation> {
        self.at_hand = Some((header, header.bytes));
        if header.is_command {
            return match header.bytes > COMMAND_BYTES_MAX {
                true => Err(Violation::Command(header.bytes)),
                false => Ok(()),
            };
        }
        if self.place == Place::Start {
            self.place = Place::Route;
            self.wire_bytes = 0;
        }
        let bytes = header.bytes.saturating_add(header_bytes as u64);
        self.wire_bytes = self.wire_bytes.saturating_add(bytes);
        match self.wire_bytes > WIRE_BYTES_MAX {
            true => Err(Violation::TooLong),
            false => Ok(()),
        }
    }

    fn keep(&mut self, header: FrameHeader, bytes: &[u8]) {
        if header.is_command {
            self.command.extend_from_slice(bytes);
            return;
        }
        match self.place {
            Place::Route => {
                let route = self.request.route.iter().map(Vec::len).sum::<usize>();
                if route + self.hop.len() + bytes.len() > ROUTE_BYTES_MAX
                    || self.request.route.len() > ROUTE_PARTS_MAX
                {
                    self.place = Place::Ignored;
                    return;
                }
                self.hop.extend_from_slice(bytes);
            }
            Place::Body => self.keep_of_request(bytes),
            Place::Start | Place::Ignored => {}
        }
    }

    fn keep_of_request(&mut self, bytes: &[u8]) {
        let Request {
            frame, left_out, ..
        } = &mut self.request;
        if *left_out == 0 && frame.len() + bytes.len() <= self.frame_bytes_max {
            frame.extend_from_slice(bytes);
            return;
        }
        let room = KEPT_BYTES.saturating_sub(frame.len()).min(bytes.len());
        frame.extend_from_slice(&bytes[..room]);
        *left_out += bytes.len() - room;
        if frame.len() > KEPT_BYTES {
            *left_out += frame.len() - KEPT_BYTES;
            *frame = frame[..KEPT_BYTES].to_vec();
        }
    }

    /// A part or a command is whole.
    fn end(&mut self, header: FrameHeader) -> Option<Event> {
        if header.is_command {
            return Some(Event::Command(std::mem::take(&mut self.command)));
        }
        let hop = std::mem::take(&mut self.hop);
        match self.place {
            Place::Route if hop.is_empty() => self.place = Place::Body,
            Place::Route => self.request.route.push(hop),
            Place::Body if !header.more => {
                self.place = Place::Start;
                return Some(Event::Request(std::mem::take(&mut self.request)));
            }
            Place::Start | Place::Body | Place::Ignored => {}
        }
        if !header.more {
            tracing::debug!("a message without an envelope was dropped");
            self.place = Place::Start;
            self.request = Request::default();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::wire::{command, part};
    use super::*;

    fn message(parts: &[&[u8]]) -> Vec<u8> {
        let frames = parts.iter().enumerate();
        let frames = frames.map(|(n, body)| part(body, n + 1 < parts.len()));
        frames.collect::<Vec<_>>().concat()
    }

    /// All events, when so many bytes come at a time.
    fn events(bytes: &[u8], step: usize, max: usize) -> Result<Vec<Event>, Violation> {
        let mut reader = MessageReader::new(max);
        let (mut events, mut there, mut used) = (Vec::new(), 0, 0);
        while there < bytes.len() {
            there = (there + step).min(bytes.len());
            loop {
                let (n, event) = reader.take(&bytes[used..there], true)?;
                used += n;
                match event {
                    Event::Incomplete => break,
                    Event::Begins(held) => assert!(held <= max),
                    event => events.push(event),
                }
                let held = reader.request.frame.len() + reader.hop.len() + reader.command.len();
                assert!(held <= max + ROUTE_BYTES_MAX + COMMAND_BYTES_MAX as usize);
            }
        }
        Ok(events)
    }

    fn request(route: &[&[u8]], frame: &[u8], left_out: usize) -> Event {
        Event::Request(Request {
            route: route.iter().map(|hop| hop.to_vec()).collect(),
            frame: frame.to_vec(),
            left_out,
        })
    }

    #[test]
    fn requests_come_out_however_their_bytes_arrive() {
        let bytes = [
            message(&[b"", b"one"]),
            message(&[b"bare"]),
            command("PING", b"\0\0"),
            message(&[b"proxy", b"", b"4", b"", b"2"]),
            message(&[b"a", b""]),
            message(&[b"", &[7; 900]]),
        ]
        .concat();
        for step in [1, 2, 7, 100, bytes.len()] {
            let expected = [
                request(&[], b"one", 0),
                Event::Command(b"\x04PING\0\0".to_vec()),
                request(&[b"proxy"], b"42", 0),
                request(&[], &[7; 900], 0),
            ];
            assert_eq!(events(&bytes, step, 1000).expect("frames"), expected);
        }
    }

    #[test]
    fn of_what_is_too_large_only_its_size_is_kept() {
        let whole = message(&[b"", &[7; 5000]]);
        let in_parts: Vec<&[u8]> = vec![&[7; 100]; 50];
        let in_parts = message(&[&[&b""[..]][..], &in_parts].concat());
        for bytes in [whole, in_parts] {
            for step in [1, 99, bytes.len()] {
                let found = events(&bytes, step, 1000).expect("frames");
                assert_eq!(found, [request(&[], &[7; 8], 4992)]);
            }
        }
    }

    #[test]
    fn who_sends_without_an_end_is_told_off() {
        for part_bytes in [0, 1000, 1 << 20] {
            let mut reader = MessageReader::new(1000);
            let more = part(&vec![7; part_bytes], true);
            let mut sent = 0;
            let violation = loop {
                assert!(sent <= WIRE_BYTES_MAX + more.len() as u64);
                sent += more.len() as u64;
                let mut used = 0;
                let mut step = || -> Result<(), Violation> {
                    loop {
                        let (n, event) = reader.take(&more[used..], true)?;
                        used += n;
                        if event == Event::Incomplete {
                            return Ok(());
                        }
                    }
                };
                if let Err(violation) = step() {
                    break violation;
                }
            };
            assert_eq!(violation, Violation::TooLong);
        }
        let huge = [&[2][..], &u64::MAX.to_be_bytes()].concat();
        assert_eq!(events(&huge, 9, 1000), Err(Violation::TooLong));
        let command = [&[6][..], &(63_u64 << 20).to_be_bytes()].concat();
        let violation = Violation::Command(63 << 20);
        assert_eq!(events(&command, 9, 1000), Err(violation));
    }

    #[test]
    fn a_message_that_may_not_begin_waits_and_commands_go_before_it() {
        let bytes = [command("PING", b""), message(&[b"", b"next"])].concat();
        let mut reader = MessageReader::new(1000);
        let (used, event) = reader.take(&bytes, false).expect("frames");
        assert_eq!(event, Event::Command(b"\x04PING".to_vec()));
        let held = reader.take(&bytes[used..], false).expect("frames");
        assert_eq!(held, (0, Event::Held));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(0..9_u8, 0..300), step in 1..50_usize) {
            let _ = events(&bytes, step, 20);
        }
    }
}
