//! What routers do to frames of UDP over IPv4 on their way: they mark them, or give them another port.

use allosaur_engine::transmit::PortIndex;

use crate::world::Rewriter;

const TYPE_OF_SERVICE: usize = 15;
const NETWORK_CHECKSUM: usize = 24;
const PORTS: [usize; 2] = [34, 36];
const UDP_CHECKSUM: usize = 40;

/// A router that marks each frame of so many that may be marked.
pub(crate) fn marks_each(count: u32) -> Rewriter {
    let mut seen = 0;
    Box::new(move |_, frame| {
        let class = frame[TYPE_OF_SERVICE];
        seen += u32::from(class & 0b11 == 0b10);
        if seen == count {
            seen = 0;
            let word = u16::from_be_bytes([frame[TYPE_OF_SERVICE - 1], class | 0b11]);
            replace(frame, TYPE_OF_SERVICE - 1, word, NETWORK_CHECKSUM);
        }
    })
}

/// The port that a router gives a client later.
pub(crate) fn moved(port: u16) -> u16 {
    port ^ 0x4000
}

/// A router with address translation that forgets its clients after so many frames of theirs, and gives
/// them other ports.
pub(crate) fn moves_ports(after: u32) -> Rewriter {
    let mut seen = 0;
    Box::new(move |port: PortIndex, frame| {
        // Frames of clients leave port 0, and have their port as the source.
        seen += u32::from(port == 0);
        let at = PORTS[usize::from(port)];
        let now = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let is_client = port == 0;
        if seen > after && (is_client || now >= FIRST_MOVED) {
            replace(frame, at, moved(now), UDP_CHECKSUM);
        }
    })
}

/// Ports of clients are below it until they are moved.
const FIRST_MOVED: u16 = 0x4000;

/// Replaces a word, and makes up for it in a checksum (RFC 1624).
fn replace(frame: &mut [u8], at: usize, word: u16, checksum: usize) {
    let read = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let sum = u32::from(!read(frame, checksum)) + u32::from(!read(frame, at)) + u32::from(word);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    frame[checksum..checksum + 2].copy_from_slice(&(!sum as u16).to_be_bytes());
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
