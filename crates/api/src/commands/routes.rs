//! Commands of BGP speakers: routers of the server's own, which announce tables of routes to devices.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::layers::{ipv4, some_ipv4, some_ipv6, some_mac};
use crate::command::{Access, Command, Empty, Example, Types};
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::method::{Method, RouteMethod};

/// The TCP port of BGP.
pub const BGP_PORT: u16 = 179;
/// Most characters of the name of a speaker or of a table.
pub const ROUTE_NAME_CHARS_MAX: usize = 64;
/// Most bytes of a key for TCP-MD5, as the kernel takes it.
pub const MD5_BYTES_MAX: usize = 80;
/// Most routes of a table.
pub const ROUTES_MAX: u32 = 3_000_000;
/// Most autonomous systems or communities of a table's routes: more do not fit a message.
const LIST_MAX: usize = 200;

/// Parameters of `routes_add_speaker`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AddSpeaker {
    /// Its name, which is not taken.
    pub name: String,
    /// Its AS number.
    pub asn: u32,
    /// Its BGP Identifier, an IPv4 address.
    #[serde(deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub router_id: Ipv4Addr,
    /// The hold time that it offers, in seconds: 0 for none, else 3 at least.
    #[serde(default = "hold_time_s")]
    pub hold_time_s: u16,
    /// The port whose node it is on; with `node`.
    #[serde(default, rename = "port_id")]
    pub port: Option<u8>,
    /// The MAC address of the Linux node that it is on; without, it is where the server is.
    #[serde(default, deserialize_with = "some_mac")]
    #[schemars(with = "Option<String>")]
    pub node: Option<[u8; 6]>,
    /// The address that its connections come from, IPv4 or IPv6. Of a node it must be the node's.
    #[serde(default, deserialize_with = "some_ip")]
    #[schemars(with = "Option<String>", extend("x-default" = "as the system chooses"))]
    pub address: Option<IpAddr>,
    /// The TCP port on which it waits for peers that open the connection.
    #[serde(default = "bgp_port")]
    pub tcp_port: u16,
}

/// Parameters of `routes_add_session`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AddBgpSession {
    /// The speaker.
    pub speaker: String,
    /// The peer's address, by which the session is called.
    #[serde(deserialize_with = "ip")]
    #[schemars(with = "String")]
    pub peer: IpAddr,
    /// The peer's AS number.
    #[serde(default)]
    #[schemars(extend("x-default" = "any"))]
    pub peer_asn: Option<u32>,
    /// The peer's TCP port.
    #[serde(default = "bgp_port")]
    pub peer_port: u16,
    /// The peer opens the connection.
    #[serde(default)]
    pub passive: bool,
    /// The key by which segments are signed (TCP-MD5, RFC 2385), 1 to 80 bytes.
    #[serde(default)]
    pub md5: Option<String>,
    /// The next hop of IPv4 routes.
    #[serde(default, deserialize_with = "some_ipv4")]
    #[schemars(with = "Option<String>", extend("x-default" = "the speaker's address"))]
    pub next_hop_ipv4: Option<Ipv4Addr>,
    /// The next hop of IPv6 routes.
    #[serde(default, deserialize_with = "some_ipv6")]
    #[schemars(with = "Option<String>", extend("x-default" = "the speaker's address"))]
    pub next_hop_ipv6: Option<Ipv6Addr>,
    /// The families that it offers.
    #[serde(default)]
    #[schemars(extend("x-default" = "those that have a next hop"))]
    pub families: Option<Vec<RouteFamily>>,
    /// Messages of up to 65,535 bytes are offered (RFC 8654).
    #[serde(default)]
    pub extended_messages: bool,
    /// For how many seconds the peer is asked to keep the routes while the session is away (RFC 4724).
    #[serde(default)]
    #[schemars(extend("x-default" = "not at all"))]
    pub restart_time_s: Option<u16>,
    /// How long to wait before another connection is tried.
    #[serde(default = "connect_retry_s")]
    pub connect_retry_s: u16,
}

/// A family of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RouteFamily {
    /// IPv4 unicast.
    Ipv4,
    /// IPv6 unicast.
    Ipv6,
}

/// Parameters of `routes_announce`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AnnounceRoutes {
    /// The speaker.
    pub speaker: String,
    /// What the table is called, to withdraw it.
    pub name: String,
    /// Where its routes come from.
    #[serde(deserialize_with = "route_source")]
    pub routes: RouteSource,
    /// Routes per second; without, as fast as peers take them.
    #[serde(default)]
    pub rate: Option<u32>,
}

/// Where the routes of a table come from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "lowercase", deny_unknown_fields)]
pub enum RouteSource {
    /// Prefixes one behind the other, with the same attributes.
    Range(RouteRange),
    /// Prefixes and attributes with proportions like the internet's.
    Seed(RouteSeed),
    /// A file that the server reads: MRT, TABLE_DUMP_V2.
    Mrt(RouteMrt),
}

/// Prefixes one behind the other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteRange {
    /// The first prefix, such as `198.18.0.0/24` or `2001:db8::/48`.
    pub first: String,
    /// How many, 1 to 3,000,000.
    pub count: u32,
    /// The AS path behind the speaker's own number.
    #[serde(default)]
    pub as_path: Vec<u32>,
    /// Communities, as `65000:100`.
    #[serde(default)]
    pub communities: Vec<String>,
    /// MULTI_EXIT_DISC.
    #[serde(default)]
    pub med: Option<u32>,
    /// LOCAL_PREF, on sessions within an autonomous system.
    #[serde(default)]
    pub local_pref: Option<u32>,
}

/// Routes made of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteSeed {
    /// Their family.
    pub family: RouteFamily,
    /// How many, 1 to 3,000,000.
    pub count: u32,
    /// The same seed makes the same prefixes.
    #[serde(default = "one")]
    pub seed: u64,
    /// The same seed gives them the same attributes.
    #[serde(default = "one")]
    pub attribute_seed: u64,
}

/// Routes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteMrt {
    /// The file, on the server's machine.
    pub path: String,
    /// Which of its routes.
    pub family: RouteFamily,
    /// How many of them at most, 1 to 3,000,000.
    #[serde(default = "routes_max")]
    pub count: u32,
}

/// Reply of `routes_announce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoutesAnnounced {
    /// Routes of the table.
    pub routes: usize,
    /// Their family.
    pub family: RouteFamily,
    /// Sessions on which they are being sent; others get them when they come up.
    pub sessions: usize,
}

/// Parameters of `routes_withdraw`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WithdrawRoutes {
    /// The speaker.
    pub speaker: String,
    /// The table.
    pub name: String,
    /// Routes per second; without, as fast as peers take them.
    #[serde(default)]
    pub rate: Option<u32>,
}

/// Parameters of `routes_flap`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct FlapRoutes {
    /// The speaker.
    pub speaker: String,
    /// The table.
    pub name: String,
    /// How often its routes are withdrawn and announced again.
    #[serde(default = "once")]
    pub times: u32,
    /// Withdrawals, and announcements, per second.
    pub rate: u32,
    /// The share of the table's routes that flap, in percent.
    #[serde(default = "all_percent")]
    pub share: f64,
}

/// Parameters of `routes_show`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ShowRoutes {
    /// The speaker; without, all.
    #[serde(default)]
    pub speaker: Option<String>,
}

/// Parameters of `routes_remove`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct RemoveRoutes {
    /// The speaker.
    pub speaker: String,
    /// The session of this peer alone; without, the speaker with all of its sessions and tables.
    #[serde(default, deserialize_with = "some_ip")]
    #[schemars(with = "Option<String>")]
    pub peer: Option<IpAddr>,
}

/// Reply of `routes_show`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RoutesShown {
    /// The speakers, by their names.
    pub speakers: Vec<SpeakerInfo>,
}

/// A speaker.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpeakerInfo {
    /// Its name.
    pub name: String,
    /// Its AS number.
    pub asn: u32,
    /// Its BGP Identifier.
    #[schemars(with = "String")]
    pub router_id: Ipv4Addr,
    /// The hold time that it offers.
    pub hold_time_s: u16,
    /// The network namespace that it is in; `null` is the server's own.
    pub namespace: Option<String>,
    /// The address that its connections come from.
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// What it announces.
    pub tables: Vec<AnnouncedTableInfo>,
    /// Its sessions.
    pub sessions: Vec<BgpSessionInfo>,
    /// Bytes of memory of encoded tables, which all its sessions share.
    pub shared_bytes: usize,
}

/// A table that is announced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnnouncedTableInfo {
    /// Its name.
    pub name: String,
    /// The family of its routes.
    pub family: RouteFamily,
    /// How many it has.
    pub routes: usize,
    /// Bytes of the messages that it was encoded into.
    pub encoded_bytes: usize,
    /// Routes per second, where that was said.
    pub rate: Option<u32>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BgpSessionInfo {
    /// The peer's address.
    #[schemars(with = "String")]
    pub peer: IpAddr,
    /// The peer's AS number, once it has told it, or as it was asked for.
    pub peer_asn: Option<u32>,
    /// Idle, Connect, Active, OpenSent, OpenConfirm or Established (RFC 4271).
    pub state: &'static str,
    /// For how long it is established.
    pub established_s: Option<f64>,
    /// The hold time that both ends agreed upon; 0 is none.
    pub hold_time_s: Option<u16>,
    /// The families that both ends have.
    pub families: Vec<RouteFamily>,
    /// Why it ended the last time, or could not be made.
    pub last_error: Option<String>,
    /// Tables that wait to be sent, announcements and withdrawals together.
    pub queued: usize,
    /// Seconds since the last routes were queued.
    pub queued_s: Option<f64>,
    /// Seconds from then until the last byte was handed to the kernel; `null` while some wait.
    pub sent_s: Option<f64>,
    /// Seconds from then until the peer's kernel had acknowledged all; `null` until it has.
    pub acknowledged_s: Option<f64>,
    /// What it has counted.
    pub counters: BgpCounters,
}

/// What a session counts, from its begin on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BgpCounters {
    /// How often it came to be established.
    pub established: u64,
    /// Routes announced to the peer.
    pub announced: u64,
    /// Routes withdrawn from the peer.
    pub withdrawn: u64,
    /// Bytes that the kernel took.
    pub bytes_sent: u64,
    /// Bytes that the peer has not acknowledged.
    pub bytes_unacknowledged: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// UPDATE messages received.
    pub updates_received: u64,
    /// Routes that the peer announced.
    pub announcements_received: u64,
    /// Routes of the peer that were ignored, since their path has the speaker's own AS number.
    pub looped_received: u64,
    /// Routes that the peer withdrew.
    pub withdrawals_received: u64,
    /// UPDATE messages whose routes counted as withdrawn for an error in them (RFC 7606).
    pub treated_as_withdrawn: u64,
    /// Attributes that were ignored for an error in them (RFC 7606).
    pub discarded_attributes: u64,
    /// NOTIFICATION messages sent.
    pub notifications_sent: u64,
    /// NOTIFICATION messages received.
    pub notifications_received: u64,
    /// Connections that could not be opened.
    pub connections_failed: u64,
}

fn hold_time_s() -> u16 {
    90
}

fn connect_retry_s() -> u16 {
    5
}

fn bgp_port() -> u16 {
    BGP_PORT
}

fn routes_max() -> u32 {
    ROUTES_MAX
}

fn one() -> u64 {
    1
}

fn once() -> u32 {
    1
}

fn all_percent() -> f64 {
    100.0
}

/// Reads an address of either family.
fn ip<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format_args!(
            "is '{text:.64}'; give an IPv4 or IPv6 address such as 192.0.2.1 or 2001:db8::1"
        ))
    })
}

/// Reads where routes come from; of anything but an object it is said so.
fn route_source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RouteSource, D::Error> {
    let fields = serde_json::Map::deserialize(deserializer)?;
    let source = serde_json::from_value(serde_json::Value::Object(fields));
    source.map_err(|error| D::Error::custom(format_args!("cannot be read: {error}")))
}

/// Reads an address that may be missing.
fn some_ip<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpAddr>, D::Error> {
    ip(deserializer).map(Some)
}

impl AddSpeaker {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse(fields: &Fields<'_>) -> Result<AddSpeaker, FieldError> {
        let params: AddSpeaker = fields.read()?;
        check_name(fields, "name", &params.name)?;
        if params.asn == 0 {
            return Err(fields.bad("asn", "is 0; give 1 to 4294967295"));
        }
        if params.router_id.is_unspecified() {
            return Err(fields.bad(
                "router_id",
                "is 0.0.0.0; give an IPv4 address of the speaker",
            ));
        }
        if matches!(params.hold_time_s, 1 | 2) {
            let problem = format!(
                "is {}; give 0 for none, or 3 at least (RFC 4271)",
                params.hold_time_s
            );
            return Err(fields.bad("hold_time_s", problem));
        }
        match (params.node, params.port) {
            (Some(_), None) => fields.required("port_id", params.port).map(drop)?,
            (None, Some(_)) => fields.required("node", params.node).map(drop)?,
            _ => {}
        }
        if params.tcp_port == 0 {
            return Err(fields.bad("tcp_port", "is 0; give 1 to 65535"));
        }
        Ok(params)
    }
}

impl AddBgpSession {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse(fields: &Fields<'_>) -> Result<AddBgpSession, FieldError> {
        let params: AddBgpSession = fields.read()?;
        if params.peer_asn == Some(0) {
            return Err(fields.bad("peer_asn", "is 0; give 1 to 4294967295, or none for any"));
        }
        if params.peer.is_unspecified() || params.peer.is_multicast() {
            let problem = format!("is {}; give the address of one router", params.peer);
            return Err(fields.bad("peer", problem));
        }
        if params.peer_port == 0 {
            return Err(fields.bad("peer_port", "is 0; give 1 to 65535"));
        }
        let key_bytes = params.md5.as_ref().map(String::len);
        if let Some(bytes) = key_bytes.filter(|bytes| !(1..=MD5_BYTES_MAX).contains(bytes)) {
            let problem = format!("has {bytes} bytes; give 1 to {MD5_BYTES_MAX}");
            return Err(fields.bad("md5", problem));
        }
        if params.families.as_ref().is_some_and(Vec::is_empty) {
            return Err(fields.bad("families", "is empty; give 'ipv4', 'ipv6' or both"));
        }
        if params.restart_time_s.is_some_and(|seconds| seconds > 4095) {
            return Err(fields.bad(
                "restart_time_s",
                "is above 4095, which is the most (RFC 4724)",
            ));
        }
        if params.connect_retry_s == 0 {
            return Err(fields.bad("connect_retry_s", "is 0; give 1 to 65535"));
        }
        // A router drops a route whose next hop is itself, and says nothing.
        let own = [
            ("next_hop_ipv4", params.next_hop_ipv4.map(IpAddr::V4)),
            ("next_hop_ipv6", params.next_hop_ipv6.map(IpAddr::V6)),
        ];
        for (name, next_hop) in own {
            if next_hop == Some(params.peer) {
                let problem = format!(
                    "is {}, the peer itself, which ignores such routes: give an address of this side",
                    params.peer
                );
                return Err(fields.bad(name, problem));
            }
        }
        Ok(params)
    }
}

impl AnnounceRoutes {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse(fields: &Fields<'_>) -> Result<AnnounceRoutes, FieldError> {
        let params: AnnounceRoutes = fields.read()?;
        check_name(fields, "name", &params.name)?;
        check_rate(fields, params.rate)?;
        let count = match &params.routes {
            RouteSource::Range(range) => range.count,
            RouteSource::Seed(seed) => seed.count,
            RouteSource::Mrt(mrt) => mrt.count,
        };
        if !(1..=ROUTES_MAX).contains(&count) {
            let problem = format!("has count {count}; give 1 to {ROUTES_MAX}");
            return Err(fields.bad("routes", problem));
        }
        if let RouteSource::Range(range) = &params.routes {
            for (name, length) in [
                ("as_path", range.as_path.len()),
                ("communities", range.communities.len()),
            ] {
                if length > LIST_MAX {
                    let problem = format!("has {length} in {name}; the most is {LIST_MAX}");
                    return Err(fields.bad("routes", problem));
                }
            }
        }
        Ok(params)
    }
}

impl WithdrawRoutes {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse(fields: &Fields<'_>) -> Result<WithdrawRoutes, FieldError> {
        let params: WithdrawRoutes = fields.read()?;
        check_rate(fields, params.rate)?;
        Ok(params)
    }
}

impl FlapRoutes {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse(fields: &Fields<'_>) -> Result<FlapRoutes, FieldError> {
        let params: FlapRoutes = fields.read()?;
        check_rate(fields, Some(params.rate))?;
        if params.times == 0 {
            return Err(fields.bad("times", "is 0; give 1 at least"));
        }
        if !(params.share > 0.0 && params.share <= 100.0) {
            let problem = format!(
                "is {}; give more than 0 and at most 100 percent",
                params.share
            );
            return Err(fields.bad("share", problem));
        }
        Ok(params)
    }
}

fn check_name(fields: &Fields<'_>, field: &str, name: &str) -> Result<(), FieldError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > ROUTE_NAME_CHARS_MAX || !name.chars().all(is_plain) {
        let problem = format!(
            "is '{name:.64}'; give 1 to {ROUTE_NAME_CHARS_MAX} letters, digits, '-', '_' or '.'"
        );
        return Err(fields.bad(field, problem));
    }
    Ok(())
}

fn check_rate(fields: &Fields<'_>, rate: Option<u32>) -> Result<(), FieldError> {
    match rate {
        Some(0) => Err(fields.bad("rate", "is 0; give 1 route per second at least")),
        _ => Ok(()),
    }
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Routes(RouteMethod::AddSpeaker),
        name: "routes_add_speaker",
        access: Access::Api,
        doc: "Makes a BGP speaker, a router of the server's own: on a Linux node of a port, or where the \
              server is. It has no sessions yet.",
        types: Types::of::<AddSpeaker, Empty>(),
        errors: &[
            "a speaker of that name is there",
            "no such port or node",
            "the address is not the node's",
            "the port's nodes are being changed",
        ],
        example: Example {
            params: r#"{"name": "r1", "asn": 65001, "router_id": "192.0.2.1", "port_id": 0, "node": "02:00:00:00:00:07"}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Routes(RouteMethod::AddSession),
        name: "routes_add_session",
        access: Access::Api,
        doc: "Adds a session with a peer and begins to connect, or to wait for it. What the speaker announces \
              is sent as soon as the session is established.",
        types: Types::of::<AddBgpSession, Empty>(),
        errors: &[
            "no such speaker",
            "the speaker has a session with that peer",
            "the peer's address is not of the speaker's family",
            "a family has no next hop",
            "the TCP port cannot be listened on",
        ],
        example: Example {
            params: r#"{"speaker": "r1", "peer": "192.0.2.254", "peer_asn": 65000}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Routes(RouteMethod::Announce),
        name: "routes_announce",
        access: Access::Api,
        doc: "Announces a table of routes on all sessions of a speaker, now and whenever one comes up. The \
              reply comes when the table is made and encoded; `routes_show` tells how far its sending is.",
        types: Types::of::<AnnounceRoutes, RoutesAnnounced>(),
        errors: &[
            "no such speaker",
            "a table of that name is announced",
            "a prefix or a community that cannot be read",
            "the range leaves its family",
            "the file cannot be read, or has no such routes",
            "a session has too much to send",
        ],
        example: Example {
            params: r#"{"speaker": "r1", "name": "lab", "routes": {"from": "range", "first": "198.18.0.0/24", "count": 100}}"#,
            result: r#"{"routes": 100, "family": "ipv4", "sessions": 1}"#,
        },
    },
    Command {
        method: Method::Routes(RouteMethod::Withdraw),
        name: "routes_withdraw",
        access: Access::Api,
        doc: "Withdraws a table on all sessions of a speaker, and forgets it.",
        types: Types::of::<WithdrawRoutes, Empty>(),
        errors: &[
            "no such speaker",
            "no such table",
            "a session has too much to send",
        ],
        example: Example {
            params: r#"{"speaker": "r1", "name": "lab"}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Routes(RouteMethod::Flap),
        name: "routes_flap",
        access: Access::Api,
        doc: "Withdraws routes of a table and announces them again, so many times, at a rate.",
        types: Types::of::<FlapRoutes, Empty>(),
        errors: &[
            "no such speaker",
            "no such table",
            "a session would have too much to send",
        ],
        example: Example {
            params: r#"{"speaker": "r1", "name": "lab", "rate": 1000, "times": 10, "share": 5}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Routes(RouteMethod::Show),
        name: "routes_show",
        access: Access::Api,
        doc: "Speakers with what they announce, and their sessions with states, counters and times.",
        types: Types::of::<ShowRoutes, RoutesShown>(),
        errors: &["no such speaker"],
        example: Example {
            params: r#"{"speaker": "r1"}"#,
            result: r#"{"speakers": [{"name": "r1", "asn": 65001, "router_id": "192.0.2.1", "hold_time_s": 90, "namespace": null, "address": null, "tables": [], "sessions": [], "shared_bytes": 0}]}"#,
        },
    },
    Command {
        method: Method::Routes(RouteMethod::Remove),
        name: "routes_remove",
        access: Access::Api,
        doc: "Ends the session with a peer, or removes a speaker with all that it has. Peers are told (Cease).",
        types: Types::of::<RemoveRoutes, Empty>(),
        errors: &["no such speaker", "no such session"],
        example: Example {
            params: r#"{"speaker": "r1"}"#,
            result: "{}",
        },
    },
];
