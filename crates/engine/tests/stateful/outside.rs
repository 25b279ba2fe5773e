//! Frames from outside: made in a line, changed in any way, and judged when they were sent.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_engine::encapsulation::{Encapsulation, LinkPrefix};
use allosaur_engine::session::LinkAddresses;
use allosaur_engine::session::wire::{self, Addresses, Arrival, Content, Envelope, Received};
use allosaur_engine::tcp::{Segment, Seq};
use allosaur_packet::MacAddress;
use allosaur_packet::frame;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

/// Decisions, one byte after the other; zeros when there are no more.
pub(crate) struct Bytes<'a> {
    left: &'a [u8],
}

impl Bytes<'_> {
    pub(crate) fn new(left: &[u8]) -> Bytes<'_> {
        Bytes { left }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let (first, rest) = self.left.split_first().unwrap_or((&0, &[]));
        self.left = rest;
        *first
    }

    pub(crate) fn short(&mut self) -> u32 {
        u32::from(self.byte()) << 8 | u32::from(self.byte())
    }

    pub(crate) fn word(&mut self) -> u32 {
        self.short() << 16 | self.short()
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// So many bytes that look random, from a few.
    pub(crate) fn garbage(&mut self, count: usize) -> Vec<u8> {
        let mut state = u64::from(self.word()) | 1;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        (0..count).map(next).collect()
    }
}

/// Who writes to whom: addresses and ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) addresses: Addresses,
    pub(crate) ports: (u16, u16),
}

impl Ends {
    /// Client `client` from `port` to the server that `world::profile` has.
    pub(crate) fn to_server(client: u32, port: u16) -> Ends {
        let server = Ipv4Addr::new(48, 0, 0, 1);
        Ends {
            addresses: Addresses::V4(client.into(), server),
            ports: (port, 80),
        }
    }

    /// The same over IPv6, with any prefix.
    pub(crate) fn to_server_v6(prefix: u32, client: u32, port: u16) -> Ends {
        let client = Ipv6Addr::from(u128::from(prefix) << 96 | u128::from(client));
        let server = Ipv6Addr::from(0x3000_0001_u128);
        Ends {
            addresses: Addresses::V6(client, server),
            ports: (port, 80),
        }
    }

    fn link(&self) -> LinkPrefix {
        let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
        let is_v6 = matches!(self.addresses, Addresses::V6(..));
        let link = LinkAddresses {
            own: mac(1),
            peer: mac(2),
            encapsulation: Encapsulation::Ethernet,
        };
        link.prefix(is_v6)
    }

    fn envelope<'a>(&self, link: &'a LinkPrefix) -> Envelope<'a> {
        Envelope {
            link,
            addresses: self.addresses,
            ports: self.ports,
            type_of_service: 0,
            time_to_live: 64,
            identification: 7,
        }
    }

    /// The frame around a segment; its data is all `x`.
    pub(crate) fn segment(&self, segment: &Segment) -> Vec<u8> {
        self.frame(&Content::Tcp(segment))
    }

    /// A segment in a few words.
    pub(crate) fn flags(&self, flags: TcpFlags, seq: u32, ack: u32) -> Vec<u8> {
        self.segment(&Segment {
            flags,
            seq: Seq(seq),
            ack: Seq(ack),
            window: 0xffff,
            ..Segment::default()
        })
    }

    /// The frame around a datagram.
    pub(crate) fn datagram(&self, bytes: u16) -> Vec<u8> {
        self.frame(&Content::Udp(bytes))
    }

    fn frame(&self, content: &Content<'_>) -> Vec<u8> {
        let link = self.link();
        let envelope = self.envelope(&link);
        let mut frame = vec![0; envelope.frame_bytes(content)];
        envelope.write(content, &mut frame, |data| {
            data.fill(b'x');
            Sum::of(data)
        });
        frame
    }
}

/// What a frame says, if it is of TCP or UDP and right.
pub(crate) fn read(bytes: &[u8]) -> Option<Received> {
    wire::read(bytes, &frame::parse(bytes)).ok()
}

/// Says what is wrong with a frame that an engine sent.
pub(crate) fn judge(bytes: &[u8], bytes_max: usize) -> Result<(), String> {
    if !(60..=bytes_max).contains(&bytes.len()) {
        return Err(format!("a frame has {} bytes", bytes.len()));
    }
    let layout = frame::parse(bytes);
    wire::read(bytes, &layout).map_err(|refusal| format!("{refusal:?} in what is sent"))?;
    let end = usize::from(layout.end_offset);
    if bytes[end..].iter().any(|byte| *byte != 0) {
        return Err("padding is not zeros".into());
    }
    if bytes.len() > 60 && end != bytes.len() {
        return Err("a frame is longer than its packet".into());
    }
    Ok(())
}

/// The same frame, or nearly: its segment told otherwise, its bytes flipped, cut or repeated.
pub(crate) fn change(bytes: &mut Bytes<'_>, frame: &[u8]) -> Vec<u8> {
    match bytes.byte() % 8 {
        0..=3 => tell_otherwise(bytes, frame).unwrap_or_else(|| frame.to_vec()),
        4 => {
            let mut changed = frame.to_vec();
            for _ in 0..=bytes.byte() % 4 {
                let place = bytes.short() as usize % changed.len();
                changed[place] ^= bytes.byte();
            }
            changed
        }
        5 => frame[..bytes.short() as usize % (frame.len() + 1)].to_vec(),
        6 => {
            let from = bytes.short() as usize % frame.len();
            let mut changed = frame.to_vec();
            changed.extend_from_slice(&frame[from..]);
            changed
        }
        _ => frame.to_vec(),
    }
}

/// A right frame of the same flow, or of its neighbor, that says something else.
fn tell_otherwise(bytes: &mut Bytes<'_>, frame: &[u8]) -> Option<Vec<u8>> {
    let received = read(frame)?;
    let mut ends = Ends {
        addresses: received.addresses,
        ports: received.ports,
    };
    match bytes.byte() % 16 {
        0 => ends.ports.0 = ends.ports.0.wrapping_add(1),
        1 => ends.ports.1 = bytes.short() as u16,
        2 => ends.ports = (0, 0),
        _ => {}
    }
    let Arrival::Tcp(mut segment) = received.arrival else {
        return Some(ends.datagram((bytes.short() % 1400) as u16));
    };
    const ACK: TcpFlags = TcpFlags::ACK;
    let kinds = [
        segment.flags,
        ACK,
        TcpFlags::RST,
        TcpFlags::SYN,
        ACK | TcpFlags::RST,
        ACK | TcpFlags::SYN,
        ACK | TcpFlags::FIN,
        TcpFlags(bytes.byte()),
    ];
    segment.flags = bytes.pick(&kinds);
    let far = bytes.pick(&[0, 0, 1, 1_460, 30_000, 40_000, 1 << 20, 1 << 31]);
    let seq = segment.seq;
    segment.seq = bytes.pick(&[seq, seq, seq + far, seq - far]);
    let ack = segment.ack;
    segment.ack = bytes.pick(&[ack, ack, ack + far, ack - far]);
    segment.window = bytes.pick(&[segment.window, 0xffff, 0, 1]);
    segment.len = bytes.pick(&[segment.len, 0, 0, 1, 1_000]);
    if let Some((value, echo)) = segment.timestamps {
        let value = value.wrapping_add(bytes.pick(&[0, 0, 1, 100_000, 1 << 31]));
        segment.timestamps = bytes.pick(&[Some((value, echo)), Some((value, echo)), None]);
    }
    Some(ends.segment(&segment))
}
