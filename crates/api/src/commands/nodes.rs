//! Commands of Linux nodes: batches that a port's nodes are changed by, and what came of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::layers::{VLAN_TAGS_MAX, ipv4, mac, some_ipv4, some_ipv6};
use crate::command::{Access, Command, Example, Types};
use crate::error::Error;
use crate::fields::{FieldError, Fields};
use crate::method::{Method, NodeMethod};

/// Most commands of a batch.
pub const NODE_COMMANDS_MAX: usize = 200_000;
/// The VLAN numbers that stand for a network: 0 and 4095 do not.
const VLAN_RANGE: std::ops::RangeInclusive<u16> = 1..=4094;
/// What may stand in front of a tag: a type of Ethernet, and no length (IEEE 802.3, clause 3.2.6).
const TPID_MIN: u16 = 0x0600;
/// The types of one tag, and of two.
const TPIDS_DEFAULT: [&[u16]; 3] = [&[], &[0x8100], &[0x88a8, 0x8100]];

/// Parameters of `conf_ns_batch`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct NodeBatch<'a> {
    /// Accepted; the reply never waits.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// A JSON array of `{"method": …, "params": {…}}`, as text.
    pub batch: &'a str,
}

/// Parameters of `get_ns_nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NodesOfPort {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// Reply of `conf_ns_batch` and of `get_ns_nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BatchTicket {
    /// What its results are asked for by.
    pub ticket_id: u64,
}

/// Parameters of `get_async_results` and `cancel_async_task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TicketParams {
    /// What `conf_ns_batch` or `get_ns_nodes` answered.
    #[serde(rename = "ticket_id")]
    pub ticket: u64,
}

/// Reply of `get_async_results`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum BatchResults {
    /// It is being done.
    Progress(BatchProgress),
    /// It is done: `null`, `{"result": …}` or `{"error": …}` of each command. They are told once.
    Done(Vec<Value>),
}

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BatchProgress {
    /// Its ticket.
    pub ticket_id: u64,
    /// Its commands.
    pub total_cmds: usize,
    /// Those that were done.
    pub exec_cmds: usize,
    /// Those of them that failed.
    pub errs_cmds: usize,
}

/// A command of a batch.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The methods of TRex, by their names.
pub enum NodeCommand {
    AddNode(AddNode),
    AddSharedNamespace,
    RemoveNode([u8; 6]),
    RemoveSharedNamespace(String),
    RemoveAll,
    SetVlans(SetVlans),
    SetIpv4(SetIpv4),
    ClearIpv4([u8; 6]),
    SetIpv6(SetIpv6),
    SetGateway(SetGateway),
    SetMtu(SetMtu),
    SetVlanFilter(SetVlanFilter),
    SetFilter(SetFilter),
    Nodes(OnlyBird),
    /// Of these, or of all.
    NodesInfo(Option<Vec<[u8; 6]>>),
    ClearCounters,
    CountersMeta,
    CounterValues(Zeros),
    Commands,
}

/// The methods of a batch.
pub const NODE_COMMANDS: [&str; 19] = [
    "add_node",
    "add_shared_ns",
    "clear_ipv4",
    "counters_clear",
    "counters_get_meta",
    "counters_get_value",
    "get_commands",
    "get_nodes",
    "get_nodes_info",
    "remove_all",
    "remove_node",
    "remove_shared_ns",
    "set_dg",
    "set_filter",
    "set_ipv4",
    "set_ipv6",
    "set_mtu",
    "set_vlan_filter",
    "set_vlans",
];

/// Parameters of `add_node`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct AddNode {
    /// Its MAC address.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// It is in the namespace of BIRD.
    #[serde(default)]
    pub is_bird: bool,
    /// The shared namespace that it is in; none has one of its own.
    #[serde(default)]
    pub shared_ns: Option<String>,
}

/// Parameters of `set_vlans`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SetVlans {
    /// The node.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// None, one or two, the outer first.
    pub vlans: Vec<u16>,
    /// What stands in front of each.
    #[serde(default)]
    pub tpids: Option<Vec<u16>>,
}

impl SetVlans {
    /// What stands in front of each tag.
    pub fn types(&self) -> Vec<u16> {
        let default = || TPIDS_DEFAULT[self.vlans.len()].to_vec();
        self.tpids.clone().unwrap_or_else(default)
    }

    fn parse(fields: &Fields<'_>) -> Result<SetVlans, FieldError> {
        let params: SetVlans = fields.read()?;
        let count = params.vlans.len();
        if count > VLAN_TAGS_MAX {
            let problem = format!("has {count} tags; the most is {VLAN_TAGS_MAX}");
            return Err(fields.bad("vlans", problem));
        }
        if let Some(tag) = params.vlans.iter().find(|tag| !VLAN_RANGE.contains(tag)) {
            let problem = format!("has the tag {tag}; give 1 to 4094");
            return Err(fields.bad("vlans", problem));
        }
        let Some(tpids) = &params.tpids else {
            return Ok(params);
        };
        if tpids.len() != count {
            let problem = format!("has {} for {count} tags; give one each", tpids.len());
            return Err(fields.bad("tpids", problem));
        }
        if let Some(tpid) = tpids.iter().find(|tpid| **tpid < TPID_MIN) {
            let problem =
                format!("has {tpid:#06x}; give a type such as 0x8100 (33024) or 0x88a8 (34984)");
            return Err(fields.bad("tpids", problem));
        }
        Ok(params)
    }
}

/// Parameters of `set_ipv4`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct SetIpv4 {
    /// The node.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// Its address.
    #[serde(deserialize_with = "ipv4")]
    pub ipv4: Ipv4Addr,
    /// The gateway, of a node with a namespace of its own.
    #[serde(default, deserialize_with = "some_ipv4")]
    pub dg: Option<Ipv4Addr>,
    /// The length of its network's prefix; in a shared namespace it must be there.
    #[serde(default)]
    pub subnet: Option<u8>,
    /// The node is in a shared namespace.
    #[serde(default)]
    pub shared_ns: bool,
}

impl SetIpv4 {
    fn parse(fields: &Fields<'_>) -> Result<SetIpv4, FieldError> {
        let params: SetIpv4 = fields.read()?;
        check_prefix(fields, params.subnet, 32)?;
        if params.shared_ns {
            fields.required("subnet", params.subnet)?;
        } else if params.subnet.is_none() {
            fields.required("dg", params.dg)?;
        }
        Ok(params)
    }
}

/// Parameters of `set_ipv6`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct SetIpv6 {
    /// The node.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// On or off.
    pub enable: bool,
    /// An address besides the link-local one.
    #[serde(default, deserialize_with = "some_ipv6")]
    pub src_ipv6: Option<Ipv6Addr>,
    /// The length of its network's prefix.
    #[serde(default)]
    pub subnet: Option<u8>,
}

impl SetIpv6 {
    fn parse(fields: &Fields<'_>) -> Result<SetIpv6, FieldError> {
        let params: SetIpv6 = fields.read()?;
        check_prefix(fields, params.subnet, 128)?;
        Ok(params)
    }
}

/// Parameters of `set_dg`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SetGateway {
    /// The namespace.
    pub shared_ns: String,
    /// The gateway of its nodes.
    #[serde(deserialize_with = "ipv4")]
    pub dg: Ipv4Addr,
}

/// Parameters of `set_mtu`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct SetMtu {
    /// The node.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// The MTU.
    pub mtu: u32,
}

/// Parameters of `set_vlan_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct SetVlanFilter {
    /// The node.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// 1 is all but TCP and UDP, 2 is TCP and UDP.
    pub filter_mask: u8,
}

/// Parameters of `set_filter`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SetFilter {
    /// The node.
    #[serde(deserialize_with = "mac")]
    pub mac: [u8; 6],
    /// Which frames it gets, as for tcpdump; without their VLAN tags.
    pub filter: String,
}

/// Parameters of `get_nodes`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct OnlyBird {
    /// Leave out all that are not in the namespace of BIRD.
    #[serde(default)]
    pub only_bird: bool,
}

/// Parameters of `counters_get_value`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Zeros {
    /// With those that are 0.
    #[serde(default)]
    pub zeros: bool,
}

#[derive(Deserialize)]
struct OneMac {
    #[serde(deserialize_with = "mac")]
    mac: [u8; 6],
}

#[derive(Deserialize)]
struct SharedName {
    shared_ns: String,
}

#[derive(Deserialize)]
struct Macs {
    #[serde(default)]
    macs: Option<Vec<MacText>>,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct MacText(#[serde(deserialize_with = "mac")] [u8; 6]);

fn check_prefix(fields: &Fields<'_>, bits: Option<u8>, most: u8) -> Result<(), FieldError> {
    match bits {
        Some(bits) if bits > most => {
            Err(fields.bad("subnet", format!("is {bits}; give 0 to {most}")))
        }
        _ => Ok(()),
    }
}

impl NodeBatch<'_> {
    /// The commands of the batch; of each that cannot be read, what is wrong with it.
    ///
    /// # Errors
    ///
    /// The batch is no array, is empty, or is too long.
    pub fn commands(&self) -> Result<Vec<Result<NodeCommand, Error>>, Error> {
        let bad = |problem: String| Error::bad_params(format!("field 'batch' {problem}"));
        let commands: Vec<Value> = serde_json::from_str(self.batch)
            .map_err(|error| bad(format!("is no JSON array of commands: {error}")))?;
        if commands.is_empty() || commands.len() > NODE_COMMANDS_MAX {
            let count = commands.len();
            return Err(bad(format!(
                "has {count} commands; give 1 to {NODE_COMMANDS_MAX}"
            )));
        }
        Ok(commands.iter().map(NodeCommand::parse).collect())
    }
}

impl NodeCommand {
    /// Reads a command of a batch.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(command: &Value) -> Result<NodeCommand, Error> {
        let command = Fields::of(command, "batch")?;
        let method = command.string("method")?;
        let none = Value::Object(serde_json::Map::new());
        let params = match command.is_missing("params") {
            true => &none,
            false => command.value("params")?,
        };
        let params = Fields::of(params, method)?;
        Ok(match method {
            "add_node" => NodeCommand::AddNode(params.read()?),
            "add_shared_ns" => NodeCommand::AddSharedNamespace,
            "clear_ipv4" => NodeCommand::ClearIpv4(params.read::<OneMac>()?.mac),
            "counters_clear" => NodeCommand::ClearCounters,
            "counters_get_meta" => NodeCommand::CountersMeta,
            "counters_get_value" => NodeCommand::CounterValues(params.read()?),
            "get_commands" => NodeCommand::Commands,
            "get_nodes" => NodeCommand::Nodes(params.read()?),
            "get_nodes_info" => {
                let Macs { macs } = params.read()?;
                let macs = macs.map(|macs| macs.into_iter().map(|mac| mac.0).collect());
                NodeCommand::NodesInfo(macs)
            }
            "remove_all" => NodeCommand::RemoveAll,
            "remove_node" => NodeCommand::RemoveNode(params.read::<OneMac>()?.mac),
            "remove_shared_ns" => {
                NodeCommand::RemoveSharedNamespace(params.read::<SharedName>()?.shared_ns)
            }
            "set_dg" => NodeCommand::SetGateway(params.read()?),
            "set_filter" => NodeCommand::SetFilter(params.read()?),
            "set_ipv4" => NodeCommand::SetIpv4(SetIpv4::parse(&params)?),
            "set_ipv6" => NodeCommand::SetIpv6(SetIpv6::parse(&params)?),
            "set_mtu" => NodeCommand::SetMtu(params.read()?),
            "set_vlan_filter" => NodeCommand::SetVlanFilter(params.read()?),
            "set_vlans" => NodeCommand::SetVlans(SetVlans::parse(&params)?),
            _ => {
                let known = NODE_COMMANDS.join(", ");
                return Err(Error::bad_params(format!(
                    "'method' is '{method:.64}', which no node has; give one of {known}"
                )));
            }
        })
    }
}

/// Result of `get_nodes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeList {
    /// The MAC addresses.
    pub nodes: Vec<String>,
}

/// Result of `get_nodes_info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeInfos {
    /// Each that was asked for.
    pub nodes: Vec<NodeInfo>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeInfo {
    /// Its MAC address.
    pub ether: NodeEther,
    /// Its VLAN.
    pub vlan: NodeVlan,
    /// Its address for IPv4.
    pub ipv4: NodeIpv4Info,
    /// Its address for IPv6.
    pub ipv6: NodeIpv6Info,
    /// The namespace, as `ip netns` lists it.
    #[serde(rename = "linux-ns")]
    pub namespace: String,
    /// Others may be in it.
    #[serde(rename = "is-shared-ns")]
    pub is_shared: bool,
    /// Its interface there.
    #[serde(rename = "linux-veth-internal")]
    pub inner: String,
    /// The other end of it.
    #[serde(rename = "linux-veth-external")]
    pub outer: String,
    /// Which frames it gets.
    pub bpf: String,
    /// The same, as `set_vlan_filter` has it; 0 is all.
    pub vlan_filter: u8,
    /// It is in the namespace of BIRD.
    pub is_bird: bool,
    /// It is the port itself, as a host of the stack `linux_based`; left out otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_port: bool,
}

/// The MAC address of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeEther {
    /// The address.
    pub src: String,
}

/// The VLAN of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeVlan {
    /// Its numbers, the outer first.
    pub tags: Vec<u16>,
    /// What stands in front of each.
    pub tpids: Vec<u16>,
}

/// The address of a node for IPv4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeIpv4Info {
    /// `none` when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// The gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<String>,
    /// The length of the prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<u8>,
}

/// The address of a node for IPv6.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeIpv6Info {
    /// On or off.
    pub enabled: bool,
    /// One besides the link-local one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// The length of its prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<u8>,
}

/// Result of `counters_get_meta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountersMeta {
    /// The name of the table: empty.
    pub name: &'static str,
    /// Its rows.
    pub data: Vec<NodeCounterMeta>,
}

/// What a counter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeCounterMeta {
    /// Its number.
    pub id: usize,
    /// Its name.
    pub name: &'static str,
    /// What is counted.
    pub help: &'static str,
    /// The unit.
    pub units: &'static str,
    /// It is shown when it is 0.
    pub zero: bool,
    /// `info` or `error`.
    pub info: &'static str,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Nodes(NodeMethod::Batch),
        name: "conf_ns_batch",
        access: Access::Owner,
        doc: "Changes the Linux nodes of a port, or asks about them: hosts of the kernel, each in a network \
              namespace. `batch` is text, a JSON array of commands, which are done one after the other while \
              the server goes on; those behind one that fails are done too. The commands are those of \
              TRex: add_node, remove_node, set_ipv4 and so on; `get_commands` lists them.",
        types: Types::of::<NodeBatch<'static>, BatchTicket>(),
        errors: &[
            "no such port",
            "the port is not yours",
            "the batch is no array",
            "50 batches wait already",
        ],
        example: Example {
            params: r#"{"port_id": 0, "batch": "[{\"method\": \"add_node\", \"params\": {\"mac\": \"02:00:00:00:00:07\"}}]"}"#,
            result: r#"{"ticket_id": 1}"#,
        },
    },
    Command {
        method: Method::Nodes(NodeMethod::Infos),
        name: "get_ns_nodes",
        access: Access::Api,
        doc: "Asks for all Linux nodes of a port, whoever owns it: the results of the ticket \
              (`get_async_results`) are one, that of `get_nodes_info`. Batches of the port that are being \
              done do not hold it up.",
        types: Types::of::<NodesOfPort, BatchTicket>(),
        errors: &["no such port", "50 batches wait already"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"ticket_id": 2}"#,
        },
    },
    Command {
        method: Method::Nodes(NodeMethod::Results),
        name: "get_async_results",
        access: Access::Api,
        doc: "How far a batch is or, when it is done, the result of each of its commands: `null`, \
              `{\"result\": …}` or `{\"error\": …}`. Results are told once.",
        types: Types::of::<TicketParams, BatchResults>(),
        errors: &["no such ticket"],
        example: Example {
            params: r#"{"ticket_id": 1}"#,
            result: r#"{"ticket_id": 1, "total_cmds": 20000, "exec_cmds": 8192, "errs_cmds": 0}"#,
        },
    },
    Command {
        method: Method::Nodes(NodeMethod::Cancel),
        name: "cancel_async_task",
        access: Access::Api,
        doc: "Ends a batch: commands that were not begun are not done. Those that were done stay.",
        types: Types::of::<TicketParams, ()>(),
        errors: &["no such ticket"],
        example: Example {
            params: r#"{"ticket_id": 1}"#,
            result: "null",
        },
    },
];
