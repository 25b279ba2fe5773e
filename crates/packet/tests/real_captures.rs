//! Captures of real applications (`tests/data`), read, taken apart and written again.

use std::fs;
use std::path::{Path, PathBuf};

use allosaur_packet::file::pcap::{PcapReader, PcapWriter};
use allosaur_packet::file::pcapng::PcapngWriter;
use allosaur_packet::file::{self, Capture, LinkType, Resolution};
use allosaur_packet::frame::{self, Fragment, Health, Layout, Network, Transport};
use allosaur_packet::link::ethernet::EthernetHeader;
use allosaur_packet::link::vlan::VlanHeader;
use allosaur_packet::network::checksum::{self, Sum};
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4View};
use allosaur_packet::network::ipv6::{Ipv6Header, Ipv6View};
use allosaur_packet::transport::tcp::{TcpHeader, TcpView};
use allosaur_packet::transport::udp::{UdpHeader, UdpView};

/// The captures in a folder of the recorded data, sorted by name.
fn captures(folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(folder);
    let entries = fs::read_dir(&data).unwrap_or_else(|e| panic!("{}: {e}", data.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "pcap")
    });
    paths.sort();
    assert!(!paths.is_empty(), "{} has no pcap file", data.display());
    paths
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).expect("a readable file")))
        .collect()
}

/// Runs a check over every capture there is.
fn for_each_capture(check: impl Fn(&Path, &[u8], &Capture<'_>)) {
    for (path, bytes) in ["pcap", "golden-stateless"].into_iter().flat_map(captures) {
        let capture = file::read(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        check(&path, &bytes, &capture);
    }
}

#[test]
fn every_capture_is_read_and_written_again() {
    for_each_capture(|path, bytes, capture| {
        let name = path.display();
        assert_eq!(capture.link_type, LinkType::ETHERNET, "{name}");
        assert!(!capture.records.is_empty(), "{name}");

        let reader = PcapReader::new(bytes).unwrap();
        let mut same = PcapWriter::with_link(
            reader.resolution(),
            reader.link_type(),
            reader.snap_length(),
        );
        let mut finer = PcapWriter::new(Resolution::Nanoseconds);
        let mut other = PcapngWriter::new(capture.link_type);
        for record in &capture.records {
            same.write(record).unwrap();
            finer.write(record).unwrap();
            other.write(record);
        }
        // Some files hold frames above their own snapshot length, which a writer cuts.
        let cut = capture
            .records
            .iter()
            .any(|r| r.data.len() > reader.snap_length() as usize);
        assert!(
            same.bytes() == bytes || cut,
            "{name}: not the same file again"
        );
        assert!(
            file::read(finer.bytes()).as_ref() == Ok(capture),
            "{name}: pcap"
        );
        assert!(
            file::read(other.bytes()).as_ref() == Ok(capture),
            "{name}: pcapng"
        );
    });
}

#[test]
fn every_cut_of_a_capture_is_an_error_with_its_place() {
    let smallest = captures("pcap")
        .into_iter()
        .min_by_key(|(_, bytes)| bytes.len());
    let (_, bytes) = smallest.expect("there are captures");
    let whole = file::read(&bytes).unwrap().records.len();
    for cut in 24..bytes.len() {
        match file::read(&bytes[..cut]) {
            Ok(capture) => assert!(capture.records.len() < whole, "cut at {cut}"),
            Err(error) => assert!(error.to_string().starts_with("record "), "{error}"),
        }
    }
}

#[test]
fn the_headers_of_every_frame_go_both_ways() {
    for_each_capture(|path, _, capture| {
        for (index, record) in capture.records.iter().enumerate() {
            let layout = frame::parse(record.data);
            let rebuilt = rebuild(record.data, &layout);
            let place = format!("{}, frame {index}: {layout}", path.display());
            assert_eq!(rebuilt, record.data, "{place}");
            assert_ne!(layout.health, Health::Malformed, "{place}");
        }
    });
}

/// The frame with every header that has a struct parsed and emitted. The checksums are those of
/// the frame: some captures have wrong ones, on purpose.
fn rebuild(frame: &[u8], layout: &Layout) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    let (network, transport) = (
        usize::from(layout.network_offset),
        usize::from(layout.transport_offset),
    );
    EthernetHeader::parse(frame).unwrap().emit(&mut bytes);
    for index in 0..usize::from(layout.vlan_count) {
        VlanHeader::parse(&frame[14 + 4 * index..])
            .unwrap()
            .emit(&mut bytes[14 + 4 * index..]);
    }
    match layout.network {
        Network::Ipv4 => {
            Ipv4Header::parse(&frame[network..])
                .unwrap()
                .emit(&mut bytes[network..]);
            let checksum = Ipv4View::new_checked(&frame[network..]).unwrap().checksum();
            Ipv4View::new_checked(&mut bytes[network..])
                .unwrap()
                .set_checksum(checksum);
        }
        Network::Ipv6 => Ipv6Header::parse(&frame[network..])
            .unwrap()
            .emit(&mut bytes[network..]),
        _ => {}
    }
    let segment = &frame[transport..];
    match layout.transport {
        Transport::Tcp => {
            TcpHeader::parse(segment)
                .unwrap()
                .emit(&mut bytes[transport..]);
            let checksum = TcpView::new_checked(segment).unwrap().checksum();
            TcpView::new_checked(&mut bytes[transport..])
                .unwrap()
                .set_checksum(checksum);
        }
        Transport::Udp => {
            UdpHeader::parse(segment)
                .unwrap()
                .emit(&mut bytes[transport..]);
            let checksum = UdpView::new_checked(segment).unwrap().checksum();
            UdpView::new_checked(&mut bytes[transport..])
                .unwrap()
                .set_checksum(checksum);
        }
        _ => {}
    }
    bytes
}

#[test]
fn the_checksums_of_real_frames_are_ours() {
    // Captured with right checksums; others were taken before the card filled them in.
    let names = [
        "dns.pcap",
        "delay_10_http_get_0.pcap",
        "delay_10_https_0.pcap",
    ];
    for (path, bytes) in captures("pcap") {
        if !names.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let capture = file::read(&bytes).unwrap();
        for record in capture.records {
            let layout = frame::parse(record.data);
            let network = &record.data[usize::from(layout.network_offset)..];
            assert!(Ipv4View::new_checked(network).unwrap().has_right_checksum());
            let segment = layout.segment(record.data);
            let pseudo = pseudo_header(network, &layout, segment.len());
            match layout.transport {
                Transport::Tcp => {
                    assert!(
                        TcpView::new_checked(segment)
                            .unwrap()
                            .has_right_checksum(pseudo)
                    );
                }
                Transport::Udp => {
                    assert!(
                        UdpView::new_checked(segment)
                            .unwrap()
                            .has_right_checksum(pseudo)
                    );
                }
                other => panic!("{}: {other:?}", path.display()),
            }
            assert_eq!(layout.fragment, Fragment::No);
        }
    }
}

fn pseudo_header(network: &[u8], layout: &Layout, segment_bytes: usize) -> Sum {
    let length = u16::try_from(segment_bytes).unwrap();
    if layout.network == Network::Ipv6 {
        let view = Ipv6View::new_checked(network).unwrap();
        let (source, destination) = (view.source(), view.destination());
        return checksum::pseudo_header_v6(source, destination, layout.protocol, length.into());
    }
    let view = Ipv4View::new_checked(network).unwrap();
    checksum::pseudo_header_v4(view.source(), view.destination(), layout.protocol, length)
}
