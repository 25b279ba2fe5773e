//! IGMP, versions 1 to 3 (RFC 1112, RFC 2236, RFC 3376), for all clients of a namespace: one of
//! them, the designator, speaks for the groups of all.

mod wire;

use std::net::Ipv4Addr;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Example};
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::checksum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4Option, Ipv4Options, Ipv4View};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::ClientId;
use crate::counters::Counters;
use crate::frame::{Frame, FrameKind};
use crate::multicast::count::{Count, count_table};
use crate::multicast::groups::{Group, GroupError};
use crate::multicast::membership::{
    self, HasGroups, Membership, Protocol, Refusal, Verb, designated, text,
};
use crate::multicast::report::Message;
use crate::multicast::{Family, Mute};
use crate::namespace::Namespace;
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::read::{self, Listable};
use crate::spec::{Keys, Scope, Spec, namespace_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "igmp",
    frames: &[FrameKind::Igmp],
    commands: &[
        namespace_counters::<Igmp>("igmp_ns_cnt", Access::Api),
        membership::join_row::<Igmp>(
            "igmp_ns_add",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [[239, 1, 1, 1]]}"#,
                result: r#"true"#,
            },
        ),
        membership::leave_row::<Igmp>(
            "igmp_ns_remove",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [[239, 1, 1, 1]]}"#,
                result: r#"true"#,
            },
        ),
        membership::add_sources_row::<Igmp>(
            "igmp_ns_sg_add",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [{"g": [239, 1, 1, 1], "s": [10, 0, 0, 1]}]}"#,
                result: r#"true"#,
            },
        ),
        membership::remove_sources_row::<Igmp>(
            "igmp_ns_sg_remove",
            Example {
                params: r#"{"tun": {"vport": 0}, "vec": [{"g": [239, 1, 1, 1], "s": [10, 0, 0, 1]}]}"#,
                result: r#"true"#,
            },
        ),
        membership::page_row::<Igmp>(
            "igmp_ns_iter",
            Example {
                params: r#"{"tun": {"vport": 0}, "reset": true, "count": 255}"#,
                result: r#"{"empty": false, "stopped": false, "data": [{"g": [239, 1, 1, 1], "mode": 1}]}"#,
            },
        ),
        membership::settings_row::<Igmp>("igmp_ns_get_cfg"),
        membership::configure_row::<Igmp>("igmp_ns_set_cfg"),
    ],
    counters: &[("", <Ipv4 as Family>::META)],
    keys: Keys::Only(&["mtu", "dmac", "vec", "version"]),
    scope: Scope::Namespace,
    create: |_, init| {
        Ok(Box::new(Igmp {
            membership: Membership::new(init, 0)?,
        }))
    },
};

const PROTOCOL: IpProtocol = IpProtocol(2);
/// Who reports of version 3 are for.
const REPORT_GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// Who general queries are for.
const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// Who must know that a group is left.
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);

/// Internetwork control (RFC 3376 section 4).
const TYPE_OF_SERVICE: u8 = 0xc0;
/// As the reference has it in each packet.
const IDENTIFICATION: u16 = 0x00cc;

/// A source of a group.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename = "igmp.IgmpSGRecord", default)]
#[schemars(rename = "IgmpSource")]
pub(crate) struct IgmpSource {
    /// The group.
    g: read::Ipv4,
    /// The source.
    s: read::Ipv4,
}

impl Listable for IgmpSource {
    const LIST: &'static str = "[]*igmp.IgmpSGRecord";
}

impl From<IgmpSource> for ([u8; 4], [u8; 4]) {
    fn from(IgmpSource { g, s }: IgmpSource) -> Self {
        (g.into(), s.into())
    }
}

/// A group.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IgmpGroup {
    /// Its address.
    g: read::Ipv4,
    /// 1 from all sources, 2 from those of `sv`.
    mode: u8,
    /// Its sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    sv: Option<Vec<read::Ipv4>>,
}

impl HasGroups for Igmp {
    type Family = Ipv4;

    fn membership(&mut self) -> &mut Membership<Ipv4> {
        &mut self.membership
    }
}

/// IGMP of a namespace.
#[derive(Debug)]
struct Igmp {
    membership: Membership<Ipv4>,
}

/// Multicast over IPv4.
#[derive(Debug)]
pub(crate) struct Ipv4;

impl Family for Ipv4 {
    type Address = [u8; 4];
    const OVERHEAD_BYTES: usize = 74;
    const VERSION_MAX: u8 = 3;
    const TABLE: &'static str = "igmp";

    count_table! {
        SourceAnswers;
        BlockReports;
        AllowReports;
        ChangeToInclude;
        Total;
        TooShort;
        BadTtl;
        BadChecksum;
        NoKey;
        V1Queries;
        V2Queries;
        V3Queries;
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
        AddSource;
        RemoveSource;
        AddSourceError;
        RemoveSourceError;
        Add;
        Remove;
        AddError;
        RemoveError;
        NoDesignator;
        NoDesignatorAddress;
        RateTooHigh;
    }
}

impl Protocol for Ipv4 {
    const GROUP: &'static str = "mc-ipv4";
    const ITERATE_TYPE: &'static str = "ApiIgmpNsIterParams";
    const SET_TYPE: &'static str = "ApiIgmpSetParams";

    type Wire = read::Ipv4;
    type Source = IgmpSource;
    type Description = IgmpGroup;

    fn describe(group: &Group<[u8; 4]>) -> IgmpGroup {
        let sources = group.sources.as_ref();
        IgmpGroup {
            g: group.address.into(),
            mode: if sources.is_some() { 2 } else { 1 },
            sv: sources.map(|sources| sources.0.iter().copied().map(Into::into).collect()),
        }
    }

    fn refuse(ns: &str, refusal: &Refusal<[u8; 4]>) -> Option<String> {
        let (g, s) = (text(refusal.group), text(refusal.source));
        match (refusal.verb, refusal.error) {
            (Verb::AddSources, GroupError::SourceExists) => {
                Some(format!("{ns} g:{g} source-ipv4 {s} already exist"))
            }
            (Verb::RemoveSources, GroupError::SourceMissing) => {
                Some(format!(" {ns} g:{g} source-ipv4 s:{s} does not exist"))
            }
            _ => None,
        }
    }

    fn transmit(
        context: &mut Context<'_>,
        designator: MacAddress,
        message: &Message<'_, [u8; 4]>,
        version: u8,
    ) -> Result<(), Mute> {
        let client = designated(context, designator)?;
        let (mac, source) = (client.mac, client.ipv4);
        if source.is_unspecified() {
            return Err(Mute::NoAddress);
        }
        let destination = match *message {
            Message::Records { .. } => REPORT_GROUP,
            Message::Report(group) => group.into(),
            // Version 1 leaves in silence (RFC 1112).
            Message::Leave(_) if version == 1 => return Err(Mute::Unknown),
            Message::Leave(_) => ALL_ROUTERS,
        };
        let mut options = Ipv4Options::EMPTY;
        let fits = options.push(Ipv4Option::RouterAlert(0));
        fits.expect("one option fits");
        let ip = Ipv4Header {
            type_of_service: TYPE_OF_SERVICE,
            identification: IDENTIFICATION,
            dont_fragment: false,
            time_to_live: 1,
            options,
            ..Ipv4Header::new(source, destination, PROTOCOL)
        };
        let payload = context.send_ipv4(mac, group_mac(destination), &ip, wire::length(message));
        wire::write(message, version, payload);
        Ok(())
    }
}

/// The address to which packets of a group go (RFC 1112 section 6.4).
fn group_mac(group: Ipv4Addr) -> MacAddress {
    let [_, b, c, d] = group.octets();
    MacAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d])
}

impl Plugin for Igmp {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        _init: &Value,
    ) -> Result<(), PluginError> {
        self.membership.add_client(context, client);
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, _client: ClientId) {}

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let counts = &mut self.membership.host.counts;
        let Ok(ip) = Ipv4View::new_checked(frame.packet()) else {
            return counts.count(Count::TooShort);
        };
        let segment = ip.payload();
        if segment.len() < wire::MESSAGE_BYTES_MIN {
            return counts.count(Count::TooShort);
        }
        if checksum(segment) != 0 {
            return counts.count(Count::BadChecksum);
        }
        if ip.time_to_live() != 1 {
            return counts.count(Count::BadTtl);
        }
        if wire::is_report(segment) {
            return counts.count(Count::ReportsReceived);
        }
        if !ip
            .options()
            .any(|option| matches!(option, Ipv4Option::RouterAlert(_)))
        {
            counts.count(Count::NoRouterAlert);
        }
        match wire::query(segment) {
            None => counts.count(Count::BadQueries),
            Some(query) if query.group.is_none() && ip.destination() != ALL_SYSTEMS => {
                counts.count(Count::BadQueries);
            }
            // Routers of version 1 are long gone: as in the reference, they get no answer.
            Some(query) if query.version == 1 => counts.count(Count::V1Queries),
            Some(query) => {
                counts.count(match query.version {
                    2 => Count::V2Queries,
                    _ => Count::V3Queries,
                });
                self.membership.handle_query(context, &query);
            }
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, _timeout: Timeout) {
        self.membership.handle_timeout(context);
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if client.is_none() {
            show(0, &mut self.membership.host.counts);
        }
    }

    fn table_bytes(&self) -> usize {
        self.membership.host.groups().table_bytes()
    }
}
