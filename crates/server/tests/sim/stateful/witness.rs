//! Somebody who reads all frames at both ends, and knows what each side has to say.

use std::collections::HashMap;
use std::net::IpAddr;

use allosaur_engine::session::wire::{self, Addresses, Arrival};
use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_packet::frame;
use allosaur_packet::transport::tcp::TcpFlags;
use allosaur_server::sim::stateful::{LinkWatch, Passing};

use super::profiles::Talk;

/// One way of a connection: who says it, from where, to where.
type Way = (IpAddr, u16, IpAddr, u16);

/// Frames of one side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) tcp_left: u64,
    pub(crate) udp_left: u64,
    pub(crate) left: u64,
    pub(crate) arrived: u64,
}

/// The witness.
pub(crate) struct Witness<'a> {
    talks: &'a HashMap<u16, Talk>,
    /// The number of the SYN of each way.
    first: HashMap<Way, u32>,
    /// Clients, servers.
    pub(crate) seen: [Seen; 2],
    /// What was wrong.
    pub(crate) problems: Vec<String>,
    /// All that was seen, in one number.
    pub(crate) digest: u64,
}

impl Witness<'_> {
    pub(crate) fn new(talks: &HashMap<u16, Talk>) -> Witness<'_> {
        Witness {
            talks,
            first: HashMap::new(),
            seen: Default::default(),
            problems: Vec::new(),
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    fn read(&mut self, side: Side, bytes: &[u8]) -> Result<(), String> {
        let layout = frame::parse(bytes);
        let received = wire::read(bytes, &layout).map_err(|refusal| format!("{refusal:?}"))?;
        let (from, to): (IpAddr, IpAddr) = match received.addresses {
            Addresses::V4(from, to) => (from.into(), to.into()),
            Addresses::V6(from, to) => (from.into(), to.into()),
        };
        let place = usize::from(side == Side::Server);
        let served = match side {
            Side::Client => received.ports.1,
            Side::Server => received.ports.0,
        };
        let data = layout.payload(bytes);
        let segment = match received.arrival {
            Arrival::Udp(_) => {
                self.seen[place].udp_left += 1;
                let talk = self.talks.get(&served).ok_or("UDP to nobody")?;
                let is_known = talk.messages[place].iter().any(|message| message == data);
                return is_known
                    .then_some(())
                    .ok_or("a message that nobody wrote".to_owned());
            }
            Arrival::Tcp(segment) => segment,
        };
        self.seen[place].tcp_left += 1;
        let way = (from, received.ports.0, to, received.ports.1);
        if segment.has(TcpFlags::SYN) {
            self.first.insert(way, segment.seq.0);
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let first = self.first.get(&way).ok_or("data before any SYN")?;
        let talk = self.talks.get(&served).ok_or("TCP to nobody")?;
        let start = segment.seq.0.wrapping_sub(first.wrapping_add(1)) as usize;
        let said = talk.streams[place].get(start..start + data.len());
        match said {
            Some(said) if said == data => Ok(()),
            Some(_) => Err(format!("other bytes than written, at {start}")),
            None => Err(format!("{} bytes at {start}, beyond the end", data.len())),
        }
    }
}

impl LinkWatch for Witness<'_> {
    fn see(&mut self, at: Nanos, side: Side, passing: Passing, bytes: &[u8]) {
        let place = usize::from(side == Side::Server);
        if passing == Passing::Arrives {
            self.seen[place].arrived += 1;
            return;
        }
        self.seen[place].left += 1;
        for &byte in bytes.iter().chain(&at.to_le_bytes()) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if let Err(problem) = self.read(side, bytes) {
            self.problems.push(format!("{side} at {at} ns: {problem}"));
        }
    }
}
