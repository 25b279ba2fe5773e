//! Any bytes as a pcapng file: what can be read is written and read to the same. The start of a
//! file is given, so that mutations get further than its magic.

use allosaur_packet::file::pcapng::{PcapngReader, PcapngWriter, SNAP_LENGTH};
use allosaur_packet::file::{self, LinkType};

pub(crate) fn check(bytes: &[u8]) {
    let _ = file::read(bytes).map_err(|error| error.to_string());
    let mut file = PcapngWriter::new(LinkType::ETHERNET).into_bytes();
    file.extend_from_slice(bytes);
    let mut writer = PcapngWriter::new(LinkType::ETHERNET);
    let mut records = Vec::new();
    let reader = PcapngReader::new(&file).expect("the start of the file is good");
    for packet in reader.map_while(Result::ok) {
        if packet.record.data.len() <= SNAP_LENGTH as usize {
            writer.write(&packet.record);
            records.push(packet.record);
        }
    }
    let again = file::read(writer.bytes()).expect("a written file is good");
    assert_eq!(again.records, records);
}
