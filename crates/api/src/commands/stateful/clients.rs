//! Commands about addresses of stateful traffic: who has which, who takes part, who gets no answer.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::layers::ipv4;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::IGNORED_MAX;
use crate::method::{Method, StatefulMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `get_traffic_dist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TrafficDistributionParams {
    /// The first address of a pool.
    #[serde(rename = "start_ip", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub first: Ipv4Addr,
    /// The last address.
    #[serde(rename = "end_ip", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub last: Ipv4Addr,
    /// What is added for each further pair of ports, as an address.
    #[serde(rename = "dual_ip", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub offset: Ipv4Addr,
    /// The pool has `per_core_distribution` `seq`: data threads have parts in a row of the whole.
    #[serde(rename = "seq_split")]
    pub is_sequential: bool,
}

impl TrafficDistributionParams {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<TrafficDistributionParams, FieldError> {
        let params: TrafficDistributionParams = fields.read()?;
        let (first, last) = (params.first, params.last);
        if first > last {
            let problem = format!("is {last}, before start_ip, which is {first}: swap them");
            return Err(fields.bad("end_ip", problem));
        }
        Ok(params)
    }
}

/// By client port, by data thread of the port, the addresses of a pool that it would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Distributed(pub BTreeMap<u8, BTreeMap<u32, AddressSpan>>);

/// Addresses in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AddressSpan {
    /// The first.
    pub start: Ipv4Addr,
    /// The last.
    pub end: Ipv4Addr,
}

/// Clients: one, or a range of them. IPv4 addresses as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct AskedClients {
    /// The client.
    #[schemars(extend("x-only" = "no `is_range`"))]
    pub client_ip: Option<u32>,
    /// The first of the range.
    #[schemars(extend("x-only" = "`is_range`"))]
    pub client_start_ip: Option<u32>,
    /// The last of the range.
    #[schemars(extend("x-only" = "`is_range`"))]
    pub client_end_ip: Option<u32>,
}

/// Parameters of `get_clients_info_start`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ClientsParams {
    /// `attr` has ranges, instead of single addresses.
    pub is_range: bool,
    /// Which clients.
    #[serde(rename = "attr")]
    pub clients: Vec<AskedClients>,
}

/// Parameters of `enable_disable_client`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct EnableClientsParams {
    /// `attr` has ranges, instead of single addresses.
    pub is_range: bool,
    /// Which clients.
    #[serde(rename = "attr")]
    pub clients: Vec<AskedClients>,
    /// Whether they begin flows.
    #[serde(rename = "is_enable")]
    pub enabled: bool,
}

/// Which clients: ranges of addresses, first and last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// The ranges.
    pub ranges: Vec<(u32, u32)>,
}

impl Clients {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<Clients, FieldError> {
        let params: ClientsParams = fields.read()?;
        Clients::of(fields, params.is_range, &params.clients)
    }

    fn of(
        fields: &Fields<'_>,
        is_range: bool,
        asked: &[AskedClients],
    ) -> Result<Clients, FieldError> {
        let one = |(i, asked): (usize, &AskedClients)| {
            let needed = |name: &str, value: Option<u32>| match value {
                Some(value) => Ok(value),
                None => fields.required(&format!("attr[{i}].{name}"), None),
            };
            if !is_range {
                let address = needed("client_ip", asked.client_ip)?;
                return Ok((address, address));
            }
            let first = needed("client_start_ip", asked.client_start_ip)?;
            let last = needed("client_end_ip", asked.client_end_ip)?;
            if first > last {
                let problem = format!("is {last}, before client_start_ip, which is {first}");
                return Err(fields.bad(&format!("attr[{i}].client_end_ip"), problem));
            }
            Ok((first, last))
        };
        let ranges = asked.iter().enumerate().map(one);
        Ok(Clients {
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }
}

/// What `enable_disable_client` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnableClients {
    /// Which clients.
    pub clients: Clients,
    /// Whether they begin flows.
    pub enabled: bool,
}

impl EnableClients {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<EnableClients, FieldError> {
        let params: EnableClientsParams = fields.read()?;
        Ok(EnableClients {
            clients: Clients::of(fields, params.is_range, &params.clients)?,
            enabled: params.enabled,
        })
    }
}

/// By the address as a number, what is known of each client that was asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ClientsInfo(pub BTreeMap<u32, ClientInfo>);

/// What is known of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClientInfo {
    /// 1 when a profile that is started has this client, else 0.
    #[serde(rename = "Found")]
    pub found: u8,
    /// Whether it begins flows; there when it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ClientState>,
}

/// Whether a client begins flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum ClientState {
    /// It does.
    Active,
    /// It is disabled.
    Inactive,
}

/// Parameters of `set_ignored_macs`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct IgnoredMacsParams {
    /// The addresses, at most 1000.
    #[serde(rename = "mac_list", deserialize_with = "ignored")]
    pub macs: Vec<IgnoredMac>,
}

/// A MAC address that gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredMac {
    /// The address as a number of 48 bits.
    #[serde(rename = "mac_addr", deserialize_with = "mac")]
    pub mac: u64,
}

/// Parameters of `set_ignored_ips`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct IgnoredAddressesParams {
    /// The addresses, at most 1000.
    #[serde(rename = "ip_list", deserialize_with = "ignored")]
    pub addresses: Vec<IgnoredAddress>,
}

/// An IPv4 address that gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredAddress {
    /// The address as a number.
    #[serde(rename = "ip")]
    pub address: u32,
}

/// The MAC addresses that get no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct IgnoredMacs(pub Vec<IgnoredMac>);

/// The IPv4 addresses that get no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct IgnoredAddresses(pub Vec<IgnoredAddress>);

fn mac<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let mac = u64::deserialize(deserializer)?;
    if mac >> 48 != 0 {
        return Err(D::Error::custom(format_args!(
            "is {mac}; a MAC address has 48 bits"
        )));
    }
    Ok(mac)
}

fn ignored<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::<T>::deserialize(deserializer)?;
    if list.len() > IGNORED_MAX {
        let count = list.len();
        let problem = format_args!("has {count} addresses; give at most {IGNORED_MAX}");
        return Err(D::Error::custom(problem));
    }
    Ok(list)
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::TrafficDistribution),
        name: "get_traffic_dist",
        access: Access::Api,
        doc: "Which data thread of which client port would have which addresses of a pool.",
        types: Types::of::<TrafficDistributionParams, Distributed>(),
        errors: &["there are fewer addresses than data threads"],
        example: Example {
            params: r#"{"start_ip": "16.0.0.0", "end_ip": "16.0.0.255", "dual_ip": "1.0.0.0", "seq_split": false}"#,
            result: r#"{"0": {"0": {"start": "16.0.0.0", "end": "16.0.0.255"}}}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::EnableClients),
        name: "enable_disable_client",
        access: Access::Api,
        doc: "Lets clients begin flows or not. Those that have begun go on.",
        types: Types::of::<EnableClientsParams, Empty>(),
        errors: &["too many ranges of disabled clients"],
        example: Example {
            params: r#"{"attr": [{"client_ip": 268435457}], "is_enable": false, "is_range": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::ClientsInfoStart),
        name: "get_clients_info_start",
        access: Access::Api,
        doc: "Asks about clients; `get_clients_info_pull` has the answer.",
        types: Types::of::<ClientsParams, ()>(),
        errors: &["too many clients at once"],
        example: Example {
            params: r#"{"attr": [{"client_ip": 268435457}], "is_range": false}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::ClientsInfoPull),
        name: "get_clients_info_pull",
        access: Access::Api,
        doc: "The answer to the last `get_clients_info_start`, as things stand now.",
        types: Types::of::<Empty, ClientsInfo>(),
        errors: &["nothing was asked"],
        example: Example {
            params: "{}",
            result: r#"{"268435457": {"Found": 1, "state": "Active"}}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::SetIgnoredMacs),
        name: "set_ignored_macs",
        access: Access::Api,
        doc: "Answers nothing, not even by a reset, to frames from these MAC addresses. They replace \
              those from before.",
        types: Types::of::<IgnoredMacsParams, ()>(),
        errors: &[],
        example: Example {
            params: r#"{"mac_list": [{"mac_addr": 2199023255705}]}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::IgnoredMacs),
        name: "get_ignored_macs",
        access: Access::Api,
        doc: "The MAC addresses of `set_ignored_macs`.",
        types: Types::of::<Empty, IgnoredMacs>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"[{"mac_addr": 2199023255705}]"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::SetIgnoredIps),
        name: "set_ignored_ips",
        access: Access::Api,
        doc: "As `set_ignored_macs`, with IPv4 addresses.",
        types: Types::of::<IgnoredAddressesParams, ()>(),
        errors: &[],
        example: Example {
            params: r#"{"ip_list": [{"ip": 268435465}]}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::IgnoredIps),
        name: "get_ignored_ips",
        access: Access::Api,
        doc: "The IPv4 addresses of `set_ignored_ips`.",
        types: Types::of::<Empty, IgnoredAddresses>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"[{"ip": 268435465}]"#,
        },
    },
];
