//! A peer from outside, by hand: it hears what a flow of ours says, and answers as a script wants.

use allosaur_engine::session::wire::{self, Addresses, Arrival, Content, Envelope};
use allosaur_engine::tcp::{Segment, Seq};
use allosaur_packet::frame;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use crate::world::{MS, World, ethernet_link, mac};

/// What the peer does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// A client asks for a connection.
    Syn,
    /// A server takes it.
    SynAck,
    /// It acknowledges all that it heard.
    Ack,
    /// So many bytes, with such an acknowledgment.
    Data(usize),
    /// Bytes that say something.
    Text(&'static str),
    /// The end, with an acknowledgment.
    Fin,
    /// The end, by one who read nothing of what it heard.
    DeafFin,
    Rst,
    /// A datagram.
    Message(usize),
    /// Time passes.
    Wait(u64),
}

/// The peer of one flow of ours, on the port behind `port` of ours.
pub(crate) struct Peer {
    port: u8,
    /// From it to us.
    addresses: Addresses,
    ports: (u16, u16),
    /// Its next number.
    next: Seq,
    /// What it acknowledges: the end of what it read.
    read: Seq,
}

impl Peer {
    /// The peer of the flow that our client on port 0 has begun.
    pub(crate) fn of_client(world: &World) -> Peer {
        let (_, frame) = &world.heard.as_ref().expect("it listens")[0];
        let received = wire::read(frame, &frame::parse(frame)).expect("what is sent is right");
        Peer {
            port: 0,
            addresses: turned(received.addresses),
            ports: (received.ports.1, received.ports.0),
            next: Seq(5_000),
            read: Seq(0),
        }
    }

    /// A client from outside, which asks our server on port 1.
    pub(crate) fn of_server(addresses: Addresses) -> Peer {
        Peer {
            port: 1,
            addresses,
            ports: (4_000, 80),
            next: Seq(5_000),
            read: Seq(0),
        }
    }

    /// Does one thing after the other.
    pub(crate) fn play(&mut self, world: &mut World, script: &[Act]) {
        for act in script {
            self.act(world, *act);
            world.run_for(MS);
        }
    }

    fn act(&mut self, world: &mut World, act: Act) {
        match act {
            Act::Wait(span) => return world.run_for(span),
            Act::Message(bytes) => {
                let bytes = vec![b'm'; bytes];
                let content = Content::Udp(bytes.len() as u16);
                return self.frame(world, &content, &bytes);
            }
            Act::DeafFin => {}
            _ => self.read = self.heard(world).unwrap_or(self.read),
        }
        let (flags, data) = match act {
            Act::Syn => (TcpFlags::SYN, Vec::new()),
            Act::SynAck => (TcpFlags::SYN | TcpFlags::ACK, Vec::new()),
            Act::Data(bytes) => (TcpFlags::ACK, vec![b'x'; bytes]),
            Act::Text(text) => (TcpFlags::ACK, text.as_bytes().to_vec()),
            Act::Fin | Act::DeafFin => (TcpFlags::ACK | TcpFlags::FIN, Vec::new()),
            Act::Rst => (TcpFlags::RST | TcpFlags::ACK, Vec::new()),
            _ => (TcpFlags::ACK, Vec::new()),
        };
        let segment = Segment {
            seq: self.next,
            ack: self.read,
            flags,
            len: data.len() as u32,
            window: 0xffff,
            mss: flags.contains(TcpFlags::SYN).then_some(1_460),
            ..Segment::default()
        };
        self.next += segment.span();
        self.frame(world, &Content::Tcp(&segment), &data);
    }

    /// The end of what our flow has said.
    fn heard(&self, world: &World) -> Option<Seq> {
        let frames = world.heard.as_ref().expect("it listens").iter();
        let ours = frames.filter(|(port, _)| *port == self.port);
        let read = ours.filter_map(|(_, frame)| wire::read(frame, &frame::parse(frame)).ok());
        let segments = read.filter_map(|received| match received.arrival {
            Arrival::Tcp(segment) => Some(segment.seq + segment.span()),
            Arrival::Udp(_) => None,
        });
        segments.reduce(Seq::max)
    }

    fn frame(&self, world: &mut World, content: &Content<'_>, data: &[u8]) {
        let envelope = Envelope {
            link: &ethernet_link(mac(1), mac(2), matches!(self.addresses, Addresses::V6(..))),
            addresses: self.addresses,
            ports: self.ports,
            type_of_service: 0,
            time_to_live: 64,
            identification: 7,
        };
        let mut frame = vec![0; envelope.frame_bytes(content)];
        envelope.write(content, &mut frame, |place| {
            place.copy_from_slice(data);
            Sum::of(data)
        });
        world.inject(self.port, frame);
    }
}

fn turned(addresses: Addresses) -> Addresses {
    match addresses {
        Addresses::V4(from, to) => Addresses::V4(to, from),
        Addresses::V6(from, to) => Addresses::V6(to, from),
    }
}
