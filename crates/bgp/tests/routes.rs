//! Tables, their streams, and files of MRT.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_bgp::replay::{OwnValues, RouteReplay};
use allosaur_bgp::routes::generate::{RoutesError, internet, range};
use allosaur_bgp::routes::mrt::{self, MrtError, MrtWriter};
use allosaur_bgp::routes::table::{RouteGroup, RouteTable};
use allosaur_bgp::stream::{EncodeError, RouteStream, StreamEncoding};
use allosaur_bgp::wire::attributes::{AsSegment, AttributeEncoding, PathAttributes};
use allosaur_bgp::wire::framing::{HEADER_LEN, MESSAGE_LEN_MAX};
use allosaur_bgp::wire::header::MessageHeader;
use allosaur_bgp::wire::prefix::{AddressFamily, Prefix};
use allosaur_bgp::wire::update::{Update, UpdateFaults};

const OWN: OwnValues = OwnValues {
    local_as: 4_200_000_001,
    next_hop_ipv4: Ipv4Addr::new(198, 51, 100, 7),
    next_hop_ipv6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7),
};

fn encoding(four_octet_as: bool, external: bool) -> StreamEncoding {
    StreamEncoding {
        attributes: AttributeEncoding {
            four_octet_as,
            external,
        },
        message_len_max: MESSAGE_LEN_MAX,
    }
}

/// All messages of a stream in portions, as a session would get them.
fn replayed(stream: RouteStream, four_octet_as: bool) -> Vec<Update> {
    let mut replay = RouteReplay::new(Arc::new(stream), None);
    let mut updates = Vec::new();
    while !replay.is_done() {
        let mut out = Vec::new();
        replay.transmit(0, &OWN, 10_000, &mut out);
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let header = MessageHeader::parse(rest, MESSAGE_LEN_MAX)
                .expect("right")
                .expect("whole");
            let body = &rest[HEADER_LEN..header.length];
            let (update, faults) = Update::parse(body, four_octet_as).expect("right");
            assert_eq!(faults, UpdateFaults::default());
            updates.push(update);
            rest = &rest[header.length..];
        }
    }
    updates
}

fn prefixes(table: &RouteTable) -> Vec<Prefix> {
    let groups = table.groups().iter();
    groups
        .flat_map(|group| group.prefixes.iter().copied())
        .collect()
}

#[test]
fn a_seeded_table_has_each_prefix_once_and_is_the_same_again() {
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        let table = internet(family, 50_000, 7, 1).expect("a right count");
        assert_eq!(table.len(), 50_000);
        let unique: HashSet<Prefix> = prefixes(&table).into_iter().collect();
        assert_eq!(unique.len(), 50_000);
        assert_eq!(
            table,
            internet(family, 50_000, 7, 1).expect("a right count")
        );
        assert_ne!(
            table,
            internet(family, 50_000, 8, 1).expect("a right count")
        );
        // Others attributes, the same prefixes.
        let churned = internet(family, 50_000, 7, 2).expect("a right count");
        assert_eq!(prefixes(&churned), prefixes(&table));
        assert_ne!(churned, table);
        let mean = table.len() / table.groups().len();
        assert!(
            (4..=6).contains(&mean),
            "{mean} prefixes share their attributes"
        );
    }
    assert_eq!(
        internet(AddressFamily::Ipv4, 0, 1, 1),
        Err(RoutesError::Count(0))
    );
}

#[test]
fn a_range_ends_with_its_family() {
    let first: Prefix = "255.255.254.0/24".parse().expect("a prefix");
    let table = range(first, 2, PathAttributes::default()).expect("two are there");
    assert_eq!(prefixes(&table)[1].to_string(), "255.255.255.0/24");
    let error = range(first, 3, PathAttributes::default()).expect_err("no third");
    assert!(
        error
            .to_string()
            .starts_with("prefix: 3 routes from 255.255.254.0/24")
    );
    let first: Prefix = "2001:db8::/64".parse().expect("a prefix");
    let table = range(first, 3, PathAttributes::default()).expect("room");
    assert_eq!(prefixes(&table)[2].to_string(), "2001:db8:0:2::/64");
    for bad in ["10.0.0.0", "10.0.0.0/33", "::/129", "x/8"] {
        let error = bad.parse::<Prefix>().expect_err("no prefix");
        assert!(error.to_string().contains("198.51.100.0/24"), "{error}");
    }
}

#[test]
fn a_stream_announces_all_with_the_values_of_the_session() {
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        for four_octet_as in [true, false] {
            let table = internet(family, 3_000, 3, 3).expect("a right count");
            let encoding = encoding(four_octet_as, true);
            let stream = RouteStream::announce(&table, encoding).expect("it fits");
            assert_eq!(stream.routes(), 3_000);
            let mut announced = Vec::new();
            for update in replayed(stream, four_octet_as) {
                let path = &update.attributes.as_path;
                let AsSegment::Sequence(numbers) = &path[0] else {
                    panic!("{path:?}");
                };
                let first = if four_octet_as { OWN.local_as } else { 23_456 };
                assert_eq!(numbers[0], first);
                match family {
                    AddressFamily::Ipv4 => {
                        assert_eq!(update.next_hop_ipv4, Some(OWN.next_hop_ipv4))
                    }
                    AddressFamily::Ipv6 => {
                        assert_eq!(update.next_hop_ipv6, Some(OWN.next_hop_ipv6))
                    }
                }
                announced.extend(update.announced_ipv4);
                announced.extend(update.announced_ipv6);
            }
            assert_eq!(announced, prefixes(&table));
        }
    }
}

#[test]
fn within_an_autonomous_system_paths_stay_and_a_preference_is_there() {
    let table = internet(AddressFamily::Ipv4, 500, 3, 3).expect("a right count");
    let stream = RouteStream::announce(&table, encoding(true, false)).expect("it fits");
    for (update, group) in replayed(stream, true).iter().zip(table.groups()) {
        assert_eq!(update.attributes.as_path, group.attributes.as_path);
        assert_eq!(update.attributes.local_pref, Some(100));
    }
}

#[test]
fn a_full_first_segment_gets_one_in_front() {
    let path = vec![AsSegment::Sequence(vec![64_500; 255])];
    let attributes = PathAttributes {
        as_path: path.clone(),
        ..PathAttributes::default()
    };
    let first: Prefix = "198.51.100.0/24".parse().expect("a prefix");
    let table = range(first, 1, attributes).expect("one");
    let stream = RouteStream::announce(&table, encoding(true, true)).expect("it fits");
    let updates = replayed(stream, true);
    let expected = [AsSegment::Sequence(vec![OWN.local_as]), path[0].clone()];
    assert_eq!(updates[0].attributes.as_path, expected);
}

#[test]
fn withdrawals_fill_their_messages() {
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        let table = internet(family, 5_000, 3, 3).expect("a right count");
        let stream = RouteStream::withdraw(&table, encoding(true, true));
        assert!(stream.message_count() < 12, "{}", stream.message_count());
        let updates = replayed(stream, true);
        let withdrawn: Vec<Prefix> = updates
            .iter()
            .flat_map(|u| u.withdrawn_ipv4.iter().chain(&u.withdrawn_ipv6).copied())
            .collect();
        assert_eq!(withdrawn, prefixes(&table));
    }
}

#[test]
fn attributes_that_no_message_holds_are_refused() {
    let group = RouteGroup {
        attributes: PathAttributes {
            communities: vec![1; 1_100],
            ..PathAttributes::default()
        },
        prefixes: vec!["198.51.100.0/24".parse().expect("a prefix")],
    };
    let table = RouteTable::new(AddressFamily::Ipv4, vec![group]);
    let error = RouteStream::announce(&table, encoding(true, true)).expect_err("too long");
    let EncodeError::AttributesTooLong { length, .. } = error;
    assert!(length > MESSAGE_LEN_MAX);
    assert!(
        error
            .to_string()
            .contains("shorten its AS path or communities")
    );
}

#[test]
fn a_pace_is_kept_in_routes_per_second() {
    let first: Prefix = "10.0.0.0/24".parse().expect("a prefix");
    let table = range(first, 10_000, PathAttributes::default()).expect("room");
    let stream = Arc::new(RouteStream::announce(&table, encoding(true, true)).expect("it fits"));
    let mut replay = RouteReplay::new(stream, Some(1_000));
    let (mut now_ns, mut routes, mut out) = (5_000_000_000, 0, Vec::new());
    while !replay.is_done() {
        out.clear();
        let sent = replay.transmit(now_ns, &OWN, usize::MAX, &mut out);
        assert!(sent > 0, "nothing at its time");
        routes += sent;
        if !replay.is_done() {
            assert!(replay.due_ns() > now_ns);
            now_ns = replay.due_ns();
        }
    }
    assert_eq!(routes, 10_000);
    // The last message leaves when all before it took their time.
    let took_ms = (now_ns - 5_000_000_000) / 1_000_000;
    assert!((8_900..10_000).contains(&took_ms), "{took_ms} ms");
}

#[test]
fn an_mrt_file_is_read_as_it_was_written() {
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        let table = internet(family, 2_000, 11, 12).expect("a right count");
        let mut writer = MrtWriter::new(1_700_000_000, 64_500);
        writer.write(&table);
        let file = writer.into_bytes();
        let read = mrt::read(&file, family, usize::MAX).expect("it was written");
        let mut expected: Vec<Prefix> = prefixes(&table);
        let mut got = prefixes(&read);
        expected.sort();
        got.sort();
        assert_eq!(got, expected);
        let part = mrt::read(&file, family, 10).expect("it was written");
        assert_eq!(part.len(), 10);
        for cut in [file.len() - 1, file.len() - 30, 5] {
            let error = mrt::read(&file[..cut], family, usize::MAX).expect_err("cut short");
            assert!(matches!(error, MrtError::CutShort { .. }), "{error}");
            assert!(error.to_string().contains("cut short"));
        }
        let other = match family {
            AddressFamily::Ipv4 => AddressFamily::Ipv6,
            AddressFamily::Ipv6 => AddressFamily::Ipv4,
        };
        let error = mrt::read(&file, other, usize::MAX).expect_err("none of them");
        assert!(
            matches!(error, MrtError::NoRoute { records: 2001, .. }),
            "{error}"
        );
    }
    let error = mrt::read(b"\x1f\x8bxyz", AddressFamily::Ipv4, 1).expect_err("compressed");
    assert!(error.to_string().contains("gunzip"));
}
