//! Commands about addresses of stateful traffic: who has which, who takes part, who gets no answer.

use std::net::Ipv4Addr;

use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::fields::{FieldError, Fields};
use crate::limits::IGNORED_MAX;
use crate::method::{Method, StatefulMethod};

/// Parameters of `get_traffic_dist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficDistribution {
    /// The first address of a pool.
    pub first: Ipv4Addr,
    /// The last.
    pub last: Ipv4Addr,
    /// What is added for each further pair of ports.
    pub offset: Ipv4Addr,
    /// Cores have parts in a row of the whole pool.
    pub is_sequential: bool,
}

impl TrafficDistribution {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<TrafficDistribution, FieldError> {
        let (first, last) = (address(fields, "start_ip")?, address(fields, "end_ip")?);
        if first > last {
            let problem = format!("is {last}, before start_ip, which is {first}: swap them");
            return Err(fields.bad("end_ip", problem));
        }
        Ok(TrafficDistribution {
            first,
            last,
            offset: address(fields, "dual_ip")?,
            is_sequential: fields.boolean("seq_split")?,
        })
    }
}

fn address(fields: &Fields<'_>, name: &str) -> Result<Ipv4Addr, FieldError> {
    let text = fields.string(name)?;
    text.parse()
        .map_err(|_| fields.bad(name, format!("is '{text:.40}', which is no IPv4 address")))
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
        let is_range = fields.boolean("is_range")?;
        let one = |(i, value)| {
            let fields = Fields::of(value, &format!("attr[{i}]"))?;
            if !is_range {
                let address = fields.uint32("client_ip")?;
                return Ok((address, address));
            }
            let first = fields.uint32("client_start_ip")?;
            let last = fields.uint32("client_end_ip")?;
            if first > last {
                let problem = format!("is {last}, before client_start_ip, which is {first}");
                return Err(fields.bad("client_end_ip", problem));
            }
            Ok((first, last))
        };
        let ranges = fields.array("attr")?.iter().enumerate().map(one);
        Ok(Clients {
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }
}

/// Parameters of `enable_disable_client`.
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
        Ok(EnableClients {
            clients: Clients::parse(fields)?,
            enabled: fields.boolean("is_enable")?,
        })
    }
}

/// The MAC addresses that `set_ignored_macs` names, as numbers.
pub fn ignored_macs(fields: &Fields<'_>) -> Result<Vec<u64>, FieldError> {
    let read = |fields: &Fields<'_>| {
        let mac = fields.uint64("mac_addr")?;
        if mac >> 48 != 0 {
            return Err(fields.bad("mac_addr", format!("is {mac}; a MAC address has 48 bits")));
        }
        Ok(mac)
    };
    ignored(fields, "mac_list", read)
}

/// The IPv4 addresses that `set_ignored_ips` names, as numbers.
pub fn ignored_addresses(fields: &Fields<'_>) -> Result<Vec<u32>, FieldError> {
    ignored(fields, "ip_list", |fields| fields.uint32("ip"))
}

fn ignored<T>(
    fields: &Fields<'_>,
    name: &str,
    read: impl Fn(&Fields<'_>) -> Result<T, FieldError>,
) -> Result<Vec<T>, FieldError> {
    let list = fields.array(name)?;
    if list.len() > IGNORED_MAX {
        let problem = format!("has {} addresses; give at most {IGNORED_MAX}", list.len());
        return Err(fields.bad(name, problem));
    }
    let one = |(i, value)| Fields::of(value, &format!("{name}[{i}]")).and_then(|f| read(&f));
    list.iter().enumerate().map(one).collect()
}

const ATTR: Param = Param::required(
    "attr",
    Kind::Array,
    "Objects with `client_ip`, or with `client_start_ip` and `client_end_ip`: IPv4 addresses as numbers.",
);
const IS_RANGE: Param = Param::required(
    "is_range",
    Kind::Boolean,
    "`attr` has ranges, instead of single addresses.",
);

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::TrafficDistribution),
        name: "get_traffic_dist",
        access: Access::Api,
        doc: "Which data thread of which client port would have which addresses of a pool.",
        types: Types::prose(
            &[
                Param::required("start_ip", Kind::String, "The first address."),
                Param::required("end_ip", Kind::String, "The last address."),
                Param::required(
                    "dual_ip",
                    Kind::String,
                    "What is added for each further pair of ports, as an address.",
                ),
                Param::required(
                    "seq_split",
                    Kind::Boolean,
                    "The pool has `per_core_distribution` `seq`.",
                ),
            ],
            "By client port, by data thread of the port: `start` and `end`.",
            |f| TrafficDistribution::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[
                ATTR,
                Param::required("is_enable", Kind::Boolean, "Whether they begin flows."),
                IS_RANGE,
            ],
            "`{}`.",
            |f| EnableClients::parse(f).map(drop),
        ),
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
        types: Types::prose(&[ATTR, IS_RANGE], "`null`.", |f| {
            Clients::parse(f).map(drop)
        }),
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
        types: Types::prose(
            &[],
            "By the address as a number: `Found` (1 when a profile that is started has this \
                client) and `state` (`Active`, or `Inactive` while it is disabled).",
            |_| Ok(()),
        ),
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
        types: Types::prose(
            &[Param::required(
                "mac_list",
                Kind::Array,
                "Objects with `mac_addr`, a number; at most 1000.",
            )],
            "`null`.",
            |f| ignored_macs(f).map(drop),
        ),
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
        types: Types::prose(&[], "A list of objects with `mac_addr`.", |_| Ok(())),
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
        types: Types::prose(
            &[Param::required(
                "ip_list",
                Kind::Array,
                "Objects with `ip`, a number; at most 1000.",
            )],
            "`null`.",
            |f| ignored_addresses(f).map(drop),
        ),
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
        types: Types::prose(&[], "A list of objects with `ip`.", |_| Ok(())),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"[{"ip": 268435465}]"#,
        },
    },
];
