//! Which format a capture file has, and reading it as a whole.

use super::erf::{self, ErfReader};
use super::pcap::{self, PcapReader};
use super::pcapng::{self, PcapngReader};
use super::record::{Capture, CaptureError, LinkType};

/// Reads a capture file of any format.
///
/// # Errors
/// When the bytes are no capture, or a damaged one; the error says where and what to do.
pub fn read(bytes: &[u8]) -> Result<Capture<'_>, CaptureError> {
    if pcap::is_pcap(bytes) {
        let reader = PcapReader::new(bytes)?;
        let link_type = reader.link_type();
        return Ok(Capture {
            link_type,
            records: reader.collect::<Result<_, _>>()?,
        });
    }
    if !pcapng::is_pcapng(bytes) && erf::is_erf(bytes) {
        let reader = ErfReader::new(bytes)?;
        let link_type = reader.link_type();
        let records = reader.map(|packet| packet.map(|packet| packet.record));
        return Ok(Capture {
            link_type,
            records: records.collect::<Result<_, _>>()?,
        });
    }
    read_pcapng(bytes)
}

fn read_pcapng(bytes: &[u8]) -> Result<Capture<'_>, CaptureError> {
    let mut reader = PcapngReader::new(bytes)?;
    let mut link_type = None;
    let mut records = Vec::new();
    while let Some(packet) = reader.next().transpose()? {
        let found = packet.interface.link_type;
        let expected = *link_type.get_or_insert(found);
        if found != expected {
            let (record, offset) = (records.len() as u64, packet.offset);
            return Err(CaptureError::MixedLinkTypes {
                record,
                offset,
                found,
                expected,
            });
        }
        records.push(packet.record);
    }
    // Without a frame nothing can be wrong about their kind.
    let first = || {
        reader
            .interfaces()
            .first()
            .map(|interface| interface.link_type)
    };
    let link_type = link_type.or_else(first).unwrap_or(LinkType::ETHERNET);
    Ok(Capture { link_type, records })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::pcap::PcapWriter;
    use crate::file::pcapng::PcapngWriter;
    use crate::file::{Record, Resolution};

    #[test]
    fn each_format_is_recognised() {
        let mut pcap = PcapWriter::new(Resolution::Nanoseconds);
        pcap.write_frame(7, &[1, 2]).unwrap();
        let mut pcapng = PcapngWriter::new(LinkType::ETHERNET);
        pcapng.write_frame(7, &[1, 2]);
        let capture = read(pcap.bytes()).unwrap();
        assert_eq!(capture.records, [Record::whole(7, &[1, 2])]);
        assert_eq!(read(pcapng.bytes()).as_ref(), Ok(&capture));
        // 31 of 2^32 parts of a second are 7 ns; the FCS is 4 bytes of zeros.
        let erf = [
            31, 0, 0, 0, 0, 0, 0, 0, 2, 4, 0, 24, 0, 0, 0, 6, 0, 0, 1, 2, 0, 0, 0, 0,
        ];
        assert_eq!(read(&erf), Ok(capture));
    }

    #[test]
    fn other_files_are_named() {
        let cases: [(&[u8], &str); 5] = [
            (b"", "this is an empty file"),
            (b"\x1f\x8b\x08", "Unpack it first (gunzip)"),
            (b"\x28\xb5\x2f\xfd", "Unpack it first (unzstd)"),
            (b"{\"a\":1}", "begins with 7b 22 61 22, not a capture"),
            (b"\xd4\xc3", "begins with d4 c3, not a capture"),
        ];
        for (bytes, text) in cases {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn frames_of_two_kinds_are_refused() {
        let mut bytes = PcapngWriter::new(LinkType::RAW_IP).into_bytes();
        assert_eq!(read(&bytes).unwrap().link_type, LinkType::RAW_IP);
        for link_type in [LinkType::RAW_IP, LinkType::ETHERNET] {
            let mut writer = PcapngWriter::new(link_type);
            writer.write_frame(0, &[1]);
            bytes.extend(writer.into_bytes());
        }
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains("the link type is ethernet, that"), "{error}");
    }
}
