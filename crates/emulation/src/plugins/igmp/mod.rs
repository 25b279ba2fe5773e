//! IGMP, versions 1 to 3 (RFC 1112, RFC 2236, RFC 3376), for all clients of a namespace: one of
//! them, the designator, speaks for the groups of all.

mod wire;

use std::net::Ipv4Addr;

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::checksum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4Option, Ipv4Options, Ipv4View};
use serde_json::{Value, json};

use crate::client::ClientId;
use crate::counters::{self, Counters};
use crate::frame::{Frame, FrameKind};
use crate::multicast::count::{Count, count_table};
use crate::multicast::groups::{Group, GroupError};
use crate::multicast::membership::{Membership, Protocol, Refusal, Verb, designated, text};
use crate::multicast::report::Message;
use crate::multicast::{Family, Mute};
use crate::namespace::Namespace;
use crate::params::bytes;
use crate::plugin::{Call, Context, Keys, Method, Plugin, PluginError, Spec, Target, Timeout};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "igmp",
    frames: &[FrameKind::Igmp],
    methods: &[
        Method::new("igmp_ns_cnt", Target::Namespace, true),
        Method::new("igmp_ns_add", Target::Namespace, true),
        Method::new("igmp_ns_remove", Target::Namespace, true),
        Method::new("igmp_ns_sg_add", Target::Namespace, true),
        Method::new("igmp_ns_sg_remove", Target::Namespace, true),
        Method::new("igmp_ns_iter", Target::Namespace, true),
        Method::new("igmp_ns_get_cfg", Target::Namespace, true),
        Method::new("igmp_ns_set_cfg", Target::Namespace, true),
    ],
    counters: &[("", <Ipv4 as Family>::META)],
    keys: Keys::Only(&["mtu", "dmac", "vec", "version"]),
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
    const ADDRESS_TYPE: &'static str = "core.Ipv4Key";
    const PAIR_TYPE: &'static str = "igmp.IgmpSGRecord";
    const ITERATE_TYPE: &'static str = "ApiIgmpNsIterParams";
    const SET_TYPE: &'static str = "ApiIgmpSetParams";

    fn address(value: &Value) -> Result<[u8; 4], Error> {
        bytes(value, Self::ADDRESS_TYPE)
    }

    fn unspecified() -> [u8; 4] {
        [0; 4]
    }

    fn describe(group: &Group<[u8; 4]>) -> Value {
        match &group.sources {
            None => json!({"g": group.address, "mode": 1}),
            Some(sources) => json!({"g": group.address, "mode": 2, "sv": sources.0}),
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

    fn call(&mut self, context: &mut Context<'_>, call: &Call<'_>) -> Result<Value, Error> {
        let verb = call.method.strip_prefix("igmp_ns_");
        let Some(verb) = verb.and_then(Verb::of_method) else {
            return counters::report(call.params, &mut [&mut self.membership.host.counts]);
        };
        self.membership.call(context, verb, call.params)
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &dyn Counters),
    ) {
        if client.is_none() {
            show(0, &self.membership.host.counts);
        }
    }

    fn table_bytes(&self) -> usize {
        self.membership.host.groups().table_bytes()
    }
}
