//! The packets of a capture as bytes of a file, as they come.

use allosaur_engine::capture::{Captured, Origin};
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::file::pcap::PcapWriter;
use allosaur_packet::file::pcapng::{Direction, InterfaceDescription, PcapngWriter};
use allosaur_packet::file::{LinkType, Record, Resolution};

use crate::rx_taps::Format;

/// Snap length of a file whose packets are not cut.
const SNAP_BYTES_MAX: usize = 65_535;

/// A file that grows.
pub(super) struct Form {
    writer: Writer,
    snap_bytes: u32,
    /// Time zero of the packets, since 1970.
    epoch_ns: u64,
}

enum Writer {
    Pcap(PcapWriter),
    /// With the ports that were seen so far; the place of each is the number of its interface.
    PcapNg(PcapngWriter, Vec<PortIndex>),
}

impl Form {
    /// The start of a file whose packets are cut to `snap_bytes`; 0 is not at all.
    pub(super) fn new(format: Format, snap_bytes: usize, epoch_ns: u64) -> Form {
        let snap_bytes = match snap_bytes {
            0 => SNAP_BYTES_MAX,
            bytes => bytes.min(SNAP_BYTES_MAX),
        } as u32;
        let writer = match format {
            Format::Pcap => Writer::Pcap(PcapWriter::with_link(
                Resolution::Nanoseconds,
                LinkType::ETHERNET,
                snap_bytes,
            )),
            Format::PcapNg => Writer::PcapNg(PcapngWriter::without_interfaces(), Vec::new()),
        };
        Form {
            writer,
            snap_bytes,
            epoch_ns,
        }
    }

    /// Appends a packet. A pcapng file also says at which port it was seen and which way it went.
    pub(super) fn add(&mut self, packet: &Captured) {
        let record = Record {
            time_ns: self.epoch_ns + packet.at,
            data: &packet.bytes,
            original_len: packet.wire_bytes,
        };
        match &mut self.writer {
            Writer::Pcap(writer) => {
                if let Err(error) = writer.write(&record) {
                    tracing::warn!("a packet of a capture is lost: {error}");
                }
            }
            Writer::PcapNg(writer, ports) => {
                let interface = interface_of(packet.port, writer, ports, self.snap_bytes);
                let direction = match packet.origin {
                    Origin::Transmitted => Direction::Outbound,
                    Origin::Received => Direction::Inbound,
                };
                writer.write_at(&record, interface, direction);
            }
        }
    }

    /// What was not taken away yet.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.writer {
            Writer::Pcap(writer) => writer.bytes(),
            Writer::PcapNg(writer, _) => writer.bytes(),
        }
    }

    /// Forgets the bytes, after they went elsewhere.
    pub(super) fn clear(&mut self) {
        match &mut self.writer {
            Writer::Pcap(writer) => writer.clear(),
            Writer::PcapNg(writer, _) => writer.clear(),
        }
    }
}

/// The interface of a port, which is described before its first packet.
fn interface_of(
    port: PortIndex,
    writer: &mut PcapngWriter,
    ports: &mut Vec<PortIndex>,
    snap_bytes: u32,
) -> u32 {
    if let Some(interface) = ports.iter().position(|&known| known == port) {
        return interface as u32;
    }
    ports.push(port);
    writer.add_interface(&InterfaceDescription {
        name: &format!("port {port}"),
        link_type: LinkType::ETHERNET,
        snap_length: snap_bytes,
    })
}

#[cfg(test)]
mod tests {
    use allosaur_packet::file::pcap::PcapReader;
    use allosaur_packet::file::pcapng::PcapngReader;

    use super::*;

    fn captured(port: PortIndex, origin: Origin, at: u64) -> Captured {
        Captured {
            at,
            port,
            origin,
            index: 1,
            wire_bytes: 64,
            bytes: [port; 60].into(),
        }
    }

    #[test]
    fn pcapng_says_port_and_direction() {
        let mut form = Form::new(Format::PcapNg, 0, 1_000);
        let mut file = form.bytes().to_vec();
        let seen = [
            (3, Origin::Received),
            (1, Origin::Transmitted),
            (3, Origin::Transmitted),
        ];
        for (n, (port, origin)) in seen.into_iter().enumerate() {
            form.clear();
            form.add(&captured(port, origin, n as u64));
            file.extend(form.bytes());
        }
        let packets: Result<Vec<_>, _> = PcapngReader::new(&file).expect("a file").collect();
        let packets = packets.expect("whole packets");
        let found = packets.iter().map(|packet| {
            (
                packet.interface.number,
                packet.direction,
                packet.record.time_ns,
            )
        });
        let expected = [
            (0, Some(Direction::Inbound), 1_000),
            (1, Some(Direction::Outbound), 1_001),
            (0, Some(Direction::Outbound), 1_002),
        ];
        assert!(found.eq(expected), "{packets:?}");
        assert!(
            packets
                .iter()
                .all(|packet| packet.record.original_len == 64)
        );
        for name in ["port 3", "port 1"] {
            let is_there = file.windows(6).any(|bytes| bytes == name.as_bytes());
            assert!(is_there, "{name}");
        }
    }

    #[test]
    fn pcap_has_the_packets_in_one_row() {
        let mut form = Form::new(Format::Pcap, 20, 0);
        form.add(&captured(0, Origin::Received, 5));
        form.add(&captured(1, Origin::Transmitted, 6));
        let reader = PcapReader::new(form.bytes()).expect("a file");
        assert_eq!(reader.snap_length(), 20);
        let records: Result<Vec<_>, _> = reader.collect();
        let records = records.expect("whole packets");
        let times: Vec<u64> = records.iter().map(|record| record.time_ns).collect();
        assert_eq!(times, [5, 6]);
        assert!(records.iter().all(|record| record.data.len() == 20));
    }
}
