//! Multicast listener discovery, versions 1 and 2 (RFC 2710, RFC 3810): the groups of users, and
//! those in which clients must be for neighbor discovery.

use std::net::Ipv6Addr;

use allosaur_api::json_schema::JsonSchema;
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv6::Icmpv6View;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::network::ipv6_options::Ipv6OptionsView;
use serde::{Deserialize, Serialize};

use crate::multicast::count::{Count, count_table};
use crate::multicast::groups::{Group, GroupError};
use crate::multicast::membership::{Protocol, Refusal, Verb, designated, text};
use crate::multicast::report::Message;
use crate::multicast::{Counts, Family, Mute, Query};
use crate::plugin::Context;
use crate::read::{self, Listable};

/// A query, and the two reports of version 1.
pub(super) const QUERY: u8 = 130;
pub(super) const REPORT1: u8 = 131;
pub(super) const DONE: u8 = 132;
const REPORT2: u8 = 143;

/// Bytes of a message of version 1, and of a query of version 2 before its sources.
const MESSAGE1_BYTES: usize = 24;
const QUERY2_BYTES_MIN: usize = 28;
/// Bytes of a report of version 2 before its records.
const REPORT2_BYTES_MIN: usize = 8;

/// Who reports of version 2 are for.
const REPORT_GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
/// Network control.
const TRAFFIC_CLASS: u8 = 0xc0;
/// Hop-by-hop options before ICMPv6: router alert of value 0 (MLD, RFC 2711), padding as the
/// reference has it.
const ROUTER_ALERT: [u8; 8] = [IpProtocol::ICMPV6.0, 0, ROUTER_ALERT_KIND, 2, 0, 0, 0, 0];
const ROUTER_ALERT_KIND: u8 = 5;

/// Multicast over IPv6.
#[derive(Debug)]
pub(super) struct Ipv6;

impl Family for Ipv6 {
    type Address = [u8; 16];
    const OVERHEAD_BYTES: usize = 118;
    const VERSION_MAX: u8 = 2;
    const TABLE: &'static str = "mld";

    count_table! {
        AddSource;
        RemoveSource;
        AddSourceError;
        RemoveSourceError;
        SourceAnswers;
        BlockReports;
        AllowReports;
        ChangeToInclude;
        Total: "pktRxTotal", "total messages received", "pkts", Info;
        TooShort;
        BadTtl;
        BadChecksum;
        NoKey: "pktRxNoKey", "received mld but can't find port,vlan keys", "pkts", Error;
        V1Queries: "pktRxv1Queries", "received MLD queries", "pkts", Info;
        V2Queries: "pktRxv2Queries", "received IGMPv2 queries", "pkts", Info;
        BadQueries;
        GeneralQueries;
        GroupQueries;
        SourceQueries;
        SourceQueriesDropped;
        QueriesWhileAnswering;
        ReportsReceived;
        NoRouterAlert;
        ChangeReports;
        Answers;
        Add;
        Remove;
        AddError;
        RemoveError;
        NoDesignator: "pktNoDesignatorClient", "No designator client was defined. MLD will not work without it", "pkts", Error;
        NoDesignatorAddress: "pktNoDesignatorClientIPv6", "no designator client with this valid IPv4 addr ", "pkts", Error;
        RateTooHigh;
    }
}

/// A source of a group.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename = "ipv6.MldSGRecord", default)]
#[schemars(rename = "MldSource")]
pub(crate) struct MldSource {
    /// The group.
    g: read::Ipv6,
    /// The source.
    s: read::Ipv6,
}

impl Listable for MldSource {
    const LIST: &'static str = "[]*ipv6.MldSGRecord";
}

impl From<MldSource> for ([u8; 16], [u8; 16]) {
    fn from(MldSource { g, s }: MldSource) -> Self {
        (g.into(), s.into())
    }
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MldGroup {
    /// Its address.
    ipv6: read::Ipv6,
    /// Whether a user asked for it.
    management: bool,
    /// How many addresses of clients are in it.
    refc: u32,
    /// 1 from all sources, 2 from those of `sv`.
    mode: u8,
    /// Its sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    sv: Option<Vec<read::Ipv6>>,
}

impl Protocol for Ipv6 {
    const GROUP: &'static str = "mc-ipv6";
    const ITERATE_TYPE: &'static str = "ApiMldNsIterParams";
    const SET_TYPE: &'static str = "ApiMldSetParams";

    type Wire = read::Ipv6;
    type Source = MldSource;
    type Description = MldGroup;

    fn describe(group: &Group<[u8; 16]>) -> MldGroup {
        let sources = group.sources.as_ref();
        MldGroup {
            ipv6: group.address.into(),
            management: group.managed,
            refc: group.users,
            mode: if sources.is_some() { 2 } else { 1 },
            sv: sources.map(|sources| sources.0.iter().copied().map(Into::into).collect()),
        }
    }

    fn refuse(ns: &str, refusal: &Refusal<[u8; 16]>) -> Option<String> {
        let (g, s) = (text(refusal.group), text(refusal.source));
        let refused = match (refusal.verb, refusal.error) {
            (_, GroupError::Full) => return None,
            (Verb::AddSources, GroupError::SourceExists) => {
                format!("source-ipv6 {s} already exist for g: {g}")
            }
            (Verb::AddSources, GroupError::NotManaged) => {
                format!("add(s,g) ({s},{g}) should be be added by RPC")
            }
            (Verb::RemoveSources, GroupError::SourceMissing) => {
                format!("source-ipv6 {s} does not exist g:{g}")
            }
            (Verb::Remove, GroupError::NotManaged) => {
                format!("mc-ipv6 {g} wasn't added by management and can't be removed")
            }
            (Verb::AddSources | Verb::RemoveSources | Verb::Remove, _) => return None,
            (_, GroupError::ExistsFiltered) => format!("mc-ipv6 {g} already is in filter mode"),
            _ => format!("mc-ipv6 {g} already exist by management"),
        };
        Some(format!(" {ns} {refused}"))
    }

    fn transmit(
        context: &mut Context<'_>,
        designator: MacAddress,
        message: &Message<'_, [u8; 16]>,
        _version: u8,
    ) -> Result<(), Mute> {
        let client = designated(context, designator)?;
        let (mac, source) = (client.mac, client.link_local());
        let (destination, length) = match *message {
            Message::Records { bytes, .. } => (REPORT_GROUP, REPORT2_BYTES_MIN + bytes.len()),
            // As the reference does it; RFC 2710 section 4 has done messages go to all routers.
            Message::Report(group) | Message::Leave(group) => (group.into(), MESSAGE1_BYTES),
        };
        let ip = Ipv6Header {
            traffic_class: TRAFFIC_CLASS,
            hop_limit: 1,
            ..Ipv6Header::new(source, destination, IpProtocol::HOP_BY_HOP)
        };
        let bytes = ROUTER_ALERT.len() + length;
        let payload = context.send_ipv6(mac, MacAddress::of_group(destination), &ip, bytes);
        let (options, out) = payload.split_at_mut(ROUTER_ALERT.len());
        options.copy_from_slice(&ROUTER_ALERT);
        match *message {
            Message::Records { count, bytes } => {
                out[0] = REPORT2;
                out[6..8].copy_from_slice(&count.to_be_bytes());
                out[REPORT2_BYTES_MIN..].copy_from_slice(bytes);
            }
            Message::Report(group) | Message::Leave(group) => {
                let is_done = matches!(message, Message::Leave(_));
                out[0] = if is_done { DONE } else { REPORT1 };
                out[8..24].copy_from_slice(&group);
            }
        }
        let length = length as u32;
        let sum = pseudo_header_v6(source, destination, IpProtocol::ICMPV6, length);
        Icmpv6View::new_unchecked(out).fill_checksum(sum);
        Ok(())
    }
}

/// Reads a query, as hosts must (RFC 3810 section 6.2); what is wrong with it is counted. The
/// source is not looked at.
pub(super) fn query(
    packet: &[u8],
    ip: &Ipv6Header,
    segment: &[u8],
    counts: &mut Counts<Ipv6>,
) -> Option<Query<[u8; 16]>> {
    let wrong = if ip.hop_limit != 1 {
        Count::BadTtl
    } else if !has_router_alert(packet, ip) {
        Count::NoRouterAlert
    } else if segment.len() < MESSAGE1_BYTES {
        Count::TooShort
    } else if let Some(query) = read(segment) {
        counts.count(if query.version == 1 {
            Count::V1Queries
        } else {
            Count::V2Queries
        });
        return Some(query);
    } else {
        Count::BadQueries
    };
    counts.count(wrong);
    None
}

fn has_router_alert(packet: &[u8], ip: &Ipv6Header) -> bool {
    let options = packet.get(ip.buffer_len()..).unwrap_or_default();
    ip.next_header == IpProtocol::HOP_BY_HOP
        && Ipv6OptionsView::new_checked(options).is_ok_and(|view| {
            let mut options = view.options();
            options.any(|option| option.kind == ROUTER_ALERT_KIND)
        })
}

/// A query by its length: 24 bytes are version 1, 28 and more version 2, others nothing (RFC 3810
/// section 8.1).
fn read(segment: &[u8]) -> Option<Query<[u8; 16]>> {
    let code = u16::from_be_bytes([segment[4], segment[5]]);
    let group = *segment.get(8..)?.first_chunk::<16>()?;
    if group != [0; 16] && group[0] != 0xff {
        return None;
    }
    let group = Some(group).filter(|group| *group != [0; 16]);
    if segment.len() == MESSAGE1_BYTES {
        return Some(Query {
            version: 1,
            group,
            has_sources: false,
            max_response: Nanos::from(code) * MILLISECOND,
        });
    }
    let sources = segment.get(26..QUERY2_BYTES_MIN)?;
    let sources = usize::from(u16::from_be_bytes([sources[0], sources[1]]));
    let is_general = group.is_none() && sources != 0;
    if is_general || segment.len() < QUERY2_BYTES_MIN + 16 * sources {
        return None;
    }
    Some(Query {
        version: 2,
        group,
        has_sources: sources != 0,
        max_response: response_ms(code) * MILLISECOND,
    })
}

/// A response code (RFC 3810 section 5.1.3): from 32768 on a floating point number.
fn response_ms(code: u16) -> u64 {
    let (exponent, mantissa) = (code >> 12 & 7, code & 0xfff);
    match code {
        0x8000.. => (u64::from(mantissa) | 0x1000) << (exponent + 3),
        _ => code.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_length_of_a_query_is_its_version() {
        let mut bytes = vec![0; 24];
        bytes[4..6].copy_from_slice(&0x9234_u16.to_be_bytes());
        let first = read(&bytes).expect("a query of version 1");
        assert_eq!((first.version, first.group), (1, None));
        assert_eq!(first.max_response, 0x9234 * MILLISECOND);
        bytes.extend([2, 125, 0, 0]);
        let second = read(&bytes).expect("a query of version 2");
        assert_eq!(second.max_response, (0x1234 << 4) * MILLISECOND);
        for cut in 25..28 {
            assert_eq!(read(&bytes[..cut]), None, "{cut} bytes");
        }
        bytes[27] = 1;
        assert_eq!(read(&bytes), None, "a source without a group");
        bytes[8] = 0xff;
        assert_eq!(read(&bytes), None, "a source that is not there");
        bytes.extend([0; 16]);
        assert!(read(&bytes).is_some_and(|query| query.has_sources));
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(
            bytes in prop::collection::vec(any::<u8>(), 0..90),
            hop_limit in 0u8..3,
            next in prop::sample::select(vec![0u8, 58]),
        ) {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, hop_limit];
            packet.resize(40, 0);
            packet.extend(&bytes);
            let ip = Ipv6Header::parse(&packet).expect("a whole header");
            query(&packet, &ip, &bytes, &mut Counts::default());
        }
    }
}
