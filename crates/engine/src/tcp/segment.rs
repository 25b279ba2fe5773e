//! A segment: what its headers say, without its bytes.

use allosaur_packet::transport::tcp::TcpFlags;
use allosaur_packet::transport::tcp_options::SackBlocks;

use super::seq::Seq;
use super::tunables::{MSS_BYTES_DEFAULT, MSS_BYTES_MIN};

/// A segment that arrived, or one to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The number of its first byte, or of its SYN.
    pub seq: Seq,
    /// The next byte that its sender expects, when `flags` has ACK.
    pub ack: Seq,
    /// The control bits.
    pub flags: TcpFlags,
    /// The window field as it is on the wire, not scaled.
    pub window: u16,
    /// Bytes of data.
    pub len: u32,
    /// Only in what is sent: where the data begins, in bytes from the oldest that is not
    /// acknowledged.
    pub offset: u32,
    /// The largest segment that its sender takes (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// The shift count of its sender's windows (RFC 7323, section 2.2).
    pub window_scale: Option<u8>,
    /// SACK-permitted (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// TSval and TSecr (RFC 7323, section 3.2).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018, section 3).
    pub sack: SackBlocks,
    /// Of one that arrived: further segments that were coalesced into it (generic receive offload), as
    /// they differ from it in nothing but their numbers; `len` counts their data.
    pub coalesced: u32,
    /// The data that comes before the last of them.
    pub last_offset: u32,
    /// Of one that arrived: CE (RFC 3168, section 5). Of one to send: ECT(0).
    pub ecn: bool,
}

impl Segment {
    /// The length in sequence numbers: data, SYN and FIN.
    pub fn span(&self) -> u32 {
        let counted = |flag| u32::from(self.flags.contains(flag));
        self.len + counted(TcpFlags::SYN) + counted(TcpFlags::FIN)
    }

    /// The segment behind it, with this many bytes, is coalesced into it.
    pub fn coalesce(&mut self, bytes: u32) {
        self.last_offset = self.len;
        self.len += bytes;
        self.coalesced += 1;
    }

    /// Becomes the segment that is `segments` behind it, each with as many bytes.
    #[inline]
    pub fn advance(&mut self, segments: u32) {
        self.seq += segments * self.len;
        self.offset += segments * self.len;
    }

    /// Whether it has all of these bits.
    #[inline]
    pub fn has(&self, flags: TcpFlags) -> bool {
        self.flags.contains(flags)
    }

    /// Whether it may open a connection: a SYN without ACK and RST, and without FIN. One that opens and
    /// closes at once is a scan; BSD and Linux drop such a segment, too.
    #[inline]
    pub fn opens_connection(&self) -> bool {
        let others = TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN;
        self.flags.0 & (TcpFlags::SYN | others).0 == TcpFlags::SYN.0
    }

    /// The same SYN of ours, with an MSS that fits the frames of the port (RFC 6691: without any options).
    #[must_use]
    #[inline]
    pub fn clamped(&self, mss_max: u16) -> Segment {
        Segment {
            mss: Some(self.mss.unwrap_or(MSS_BYTES_DEFAULT).min(mss_max)),
            ..*self
        }
    }

    /// The same SYN of the peer; its MSS is not below the least that makes sense either.
    #[must_use]
    pub fn received_within(&self, mss_max: u16) -> Segment {
        let mss = self.mss.map(|bytes| bytes.max(MSS_BYTES_MIN));
        Segment { mss, ..*self }.clamped(mss_max)
    }

    /// The reset that answers this segment where there is no connection (RFC 9293, section
    /// 3.10.7.1); `None` for a reset.
    pub fn reset_in_reply(&self) -> Option<Segment> {
        if self.has(TcpFlags::RST) {
            return None;
        }
        let reset = Segment {
            flags: TcpFlags::RST,
            ..Segment::default()
        };
        Some(if self.has(TcpFlags::ACK) {
            Segment {
                seq: self.ack,
                ..reset
            }
        } else {
            Segment {
                flags: TcpFlags::RST | TcpFlags::ACK,
                ack: self.seq + self.span(),
                ..reset
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_answers_what_belongs_to_no_connection() {
        let syn = Segment {
            seq: Seq(7),
            flags: TcpFlags::SYN,
            ..Segment::default()
        };
        let reset = syn.reset_in_reply().expect("a reset");
        assert_eq!((reset.seq, reset.ack), (Seq(0), Seq(8)));
        assert!(reset.has(TcpFlags::RST | TcpFlags::ACK));
        assert!(reset.reset_in_reply().is_none(), "resets are not answered");
        let data = Segment {
            ack: Seq(99),
            flags: TcpFlags::ACK,
            len: 5,
            ..syn
        };
        let reset = data.reset_in_reply().expect("a reset");
        assert_eq!((reset.seq, reset.flags), (Seq(99), TcpFlags::RST));
    }
}
