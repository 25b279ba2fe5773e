//! Any bytes of a peer and any message of ours: the check that the fuzz target makes too, with the inputs that
//! it begins with.

mod check;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use allosaur_bgp::wire::attributes::{AsSegment, PathAttributes, PathOrigin, UnknownAttribute};
use allosaur_bgp::wire::framing::HEADER_LEN;
use allosaur_bgp::wire::notification::Notification;
use allosaur_bgp::wire::open::{Capability, Open};
use allosaur_bgp::wire::prefix::{AddressFamily, Prefix};
use allosaur_bgp::wire::update::{Update, UpdateFaults};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

#[test]
fn seeds_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/bgp");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("there are seeds") {
        let path = entry.expect("the folder can be read").path();
        println!("{}", path.display());
        check::check(&fs::read(path).expect("a seed can be read"));
        count += 1;
    }
    assert!(count > 0);
}

fn prefix(family: AddressFamily) -> BoxedStrategy<Prefix> {
    let bits = any::<u128>();
    let of = move |(bits, length): (u128, u8)| {
        let address = match family {
            AddressFamily::Ipv4 => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            AddressFamily::Ipv6 => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        Prefix::new(address, length).expect("a length of the family")
    };
    (bits, 0..=family.bits()).prop_map(of).boxed()
}

fn segment() -> impl Strategy<Value = AsSegment> {
    let numbers = || vec(any::<u32>(), 1..256);
    prop_oneof![
        numbers().prop_map(AsSegment::Sequence),
        numbers().prop_map(AsSegment::Set)
    ]
}

prop_compose! {
    fn attributes()(
        origin in prop_oneof![Just(PathOrigin::Igp), Just(PathOrigin::Egp), Just(PathOrigin::Incomplete)],
        as_path in vec(segment(), 0..4),
        multi_exit_disc in option::of(any::<u32>()),
        local_pref in any::<u32>(),
        atomic_aggregate in any::<bool>(),
        aggregator in option::of((any::<u32>(), any::<u32>().prop_map(Ipv4Addr::from_bits))),
        communities in vec(any::<u32>(), 0..80),
        large_communities in vec(any::<[u32; 3]>(), 0..30),
        other in option::of((33_u8..=255, vec(any::<u8>(), 0..300))),
    ) -> PathAttributes {
        let unknown = |(kind, value)| UnknownAttribute { flags: 0xc0, kind, value };
        PathAttributes {
            origin,
            as_path,
            multi_exit_disc,
            local_pref: Some(local_pref),
            atomic_aggregate,
            aggregator,
            communities,
            large_communities,
            others: other.map(unknown).into_iter().collect(),
        }
    }
}

prop_compose! {
    fn update()(
        withdrawn_ipv4 in vec(prefix(AddressFamily::Ipv4), 0..20),
        withdrawn_ipv6 in vec(prefix(AddressFamily::Ipv6), 1..20),
        announced_ipv4 in vec(prefix(AddressFamily::Ipv4), 1..20),
        announced_ipv6 in vec(prefix(AddressFamily::Ipv6), 1..20),
        next_hop_ipv4 in any::<u32>(),
        next_hop_ipv6 in any::<u128>(),
        attributes in attributes(),
    ) -> Update {
        Update {
            withdrawn_ipv4,
            withdrawn_ipv6,
            announced_ipv4,
            announced_ipv6,
            next_hop_ipv4: Some(Ipv4Addr::from_bits(next_hop_ipv4)),
            next_hop_ipv6: Some(Ipv6Addr::from_bits(next_hop_ipv6)),
            attributes,
            end_of_rib: None,
        }
    }
}

fn capability() -> impl Strategy<Value = Capability> {
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(afi, safi)| Capability::Multiprotocol { afi, safi }),
        Just(Capability::RouteRefresh),
        Just(Capability::ExtendedMessage),
        any::<u32>()
            .prop_filter("0 is no number", |number| *number != 0)
            .prop_map(Capability::FourOctetAs),
        (
            any::<bool>(),
            0_u16..4096,
            vec(any::<(u16, u8, bool)>(), 0..64)
        )
            .prop_map(|(restarted, restart_time_s, families)| {
                Capability::GracefulRestart {
                    restarted,
                    restart_time_s,
                    families,
                }
            }),
        (70_u8..=255, vec(any::<u8>(), 0..256))
            .prop_map(|(code, value)| Capability::Other { code, value }),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_right(bytes in vec(any::<u8>(), 0..300)) {
        check::check(&bytes);
    }

    #[test]
    fn an_update_is_read_as_it_was_written(update in update()) {
        let mut out = Vec::new();
        update.emit(true, &mut out);
        let read = Update::parse(&out[HEADER_LEN..], true);
        prop_assert_eq!(read, Ok((update, UpdateFaults::default())));
        // Changed bytes are read or refused.
        for at in (HEADER_LEN..out.len()).step_by(7) {
            let mut changed = out.clone();
            changed[at] ^= 0x41;
            check::check(&changed[HEADER_LEN..]);
        }
    }

    #[test]
    fn an_open_is_read_as_it_was_written(
        two_octet_as in 1_u16..,
        hold_time_s in 3_u16..,
        identifier in 1_u32..,
        capabilities in vec(capability(), 0..10),
    ) {
        let identifier = Ipv4Addr::from_bits(identifier);
        let open = Open { two_octet_as, hold_time_s, identifier, capabilities };
        let mut out = Vec::new();
        open.emit(&mut out);
        prop_assert_eq!(Open::parse(&out[HEADER_LEN..]), Ok(open));
    }

    #[test]
    fn a_notification_is_read_as_it_was_written(
        code in any::<u8>(), subcode in any::<u8>(), data in vec(any::<u8>(), 0..4000)
    ) {
        let notification = Notification { code, subcode, data };
        let mut out = Vec::new();
        notification.emit(&mut out);
        prop_assert_eq!(Notification::parse(&out[HEADER_LEN..]), Some(notification));
    }
}

/// The seeds get somewhere: as the table of a file, and as messages that a session takes.
#[test]
fn seeds_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/bgp");
    let seed = |number: u8| fs::read(folder.join(format!("{number:02}"))).expect("a seed");
    assert!(Open::parse(&seed(0)).is_ok());
    for number in 1..5 {
        let (_, faults) = Update::parse(&seed(number), true).expect("a right update");
        assert_eq!(faults, UpdateFaults::default());
    }
    let table = allosaur_bgp::routes::mrt::read(&seed(6), AddressFamily::Ipv4, 9).expect("a table");
    assert_eq!(table.len(), 1);
}
