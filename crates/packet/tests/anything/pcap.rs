//! Any bytes as a pcap file: what can be read is written and read to the same.

use allosaur_packet::file::pcap::{PcapReader, PcapWriter};

pub(crate) fn check(bytes: &[u8]) {
    let Ok(reader) = PcapReader::new(bytes) else {
        return;
    };
    // The longest snapshot length: records may be longer than the file says they are.
    let mut writer = PcapWriter::with_link(reader.resolution(), reader.link_type(), u32::MAX);
    let mut records = Vec::new();
    for record in reader {
        match record {
            // A fraction above a second may carry the last second of 2106 over the end.
            Ok(record) if writer.write(&record).is_ok() => records.push(record),
            Ok(_) => {}
            Err(error) => {
                let _ = error.to_string();
            }
        }
    }
    let again: Vec<_> = PcapReader::new(writer.bytes())
        .expect("a written file has a good header")
        .collect::<Result<_, _>>()
        .expect("a written file has good records");
    assert_eq!(again, records);
}
