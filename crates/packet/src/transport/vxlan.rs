//! VXLAN (RFC 7348): a header of 8 bytes in UDP, and behind it the Ethernet frame that it carries.

use crate::frame::{Layout, Transport};

/// The UDP port where it listens (RFC 7348, section 8).
pub const PORT: u16 = 4789;
/// The header (RFC 7348, section 5).
pub const HEADER_BYTES: usize = 8;
/// The flag that says that there is a network number.
pub const HAS_VNI: u8 = 0x08;

/// The frame that a frame of this layout carries to [`PORT`]; `None` where it carries none.
#[inline]
pub fn inner_frame<'f>(frame: &'f [u8], layout: &Layout) -> Option<&'f [u8]> {
    let at = usize::from(layout.transport_offset) + 2;
    if layout.transport != Transport::Udp || frame.get(at..at + 2)? != PORT.to_be_bytes() {
        return None;
    }
    let datagram = frame.get(usize::from(layout.payload_offset)..)?;
    let (header, inner) = datagram.split_first_chunk::<HEADER_BYTES>()?;
    (header[0] == HAS_VNI).then_some(inner)
}
