//! What the job thread does with a part of a batch.

use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::commands::nodes::{
    AddNode, NODE_COMMANDS, NodeCommand, NodeInfos, NodeList, NodeVlan, SetIpv4, SetIpv6,
};
use allosaur_nodes::NodesError;
use allosaur_nodes::node::{NodeIpv4, NodeIpv6, NodePlacement};
use allosaur_nodes::owner::Owner;
use serde_json::{Value, json};

use super::port_host::{self, PortAddresses};
use super::result::error_of;
use super::table::{NodeLink, NodeTable};
use crate::control::config::mac_text;
use crate::control::files::CaptureFiles;
use crate::control::job::Work;
use crate::rx_taps::NodeChange;
use crate::rx_taps::filter::Filter;

/// The bits of a mask that are a filter.
const MASK_MAX: u8 = 3;

/// Some commands of a batch, with the nodes that they are about.
#[derive(Debug)]
pub(super) struct NodePart {
    pub(super) owner: Option<Arc<Owner>>,
    pub(super) port: u8,
    /// None when there were no nodes yet.
    pub(super) table: Option<Box<NodeTable>>,
    /// What the port itself shall be, where that changes; before the commands.
    pub(super) own: Option<PortAddresses>,
    pub(super) commands: Vec<Result<NodeCommand, Error>>,
}

/// What came of a part.
#[derive(Debug)]
pub(super) struct PartDone {
    pub(super) owner: Option<Arc<Owner>>,
    /// The nodes; none when they could not be had.
    pub(super) table: Option<Box<NodeTable>>,
    /// Whether the port itself is what it shall be.
    pub(super) own: Result<(), Error>,
    /// Of each command.
    pub(super) results: Vec<Value>,
    /// What the receive thread must know.
    pub(super) changes: Vec<NodeChange>,
    /// There is an outer namespace that was not there before.
    pub(super) is_new: bool,
}

impl PartDone {
    /// Of a part that broke down: the nodes went with it.
    pub(super) fn broken(commands: usize, problem: &str) -> PartDone {
        PartDone {
            owner: None,
            table: None,
            own: Err(Error::execution(problem)),
            results: vec![json!({"error": problem}); commands],
            changes: Vec::new(),
            is_new: false,
        }
    }
}

impl Work for NodePart {
    type Output = PartDone;

    fn run(self, _: &dyn CaptureFiles) -> Result<PartDone, String> {
        let NodePart {
            owner,
            port,
            table,
            own,
            commands,
        } = self;
        let count = commands.len();
        let is_first = table.is_none();
        let opened = match (table, owner) {
            (Some(table), owner) => Ok((table, owner)),
            (None, owner) => owner
                .map_or_else(|| Owner::new().map(Arc::new), Ok)
                .and_then(|owner| {
                    let table = NodeTable::open(Arc::clone(&owner), port)?;
                    Ok((Box::new(table), Some(owner)))
                }),
        };
        let (table, owner) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(PartDone::broken(count, &error.to_string())),
        };
        let mut part = Part {
            table,
            changes: Vec::new(),
            is_new: is_first,
        };
        let own = own.map_or(Ok(()), |own| part.set_port(&own));
        let results = commands.into_iter().map(|command| {
            let result = command.and_then(|command| part.run(command));
            match result {
                Ok(Value::Null) => Value::Null,
                Ok(result) => json!({"result": result}),
                Err(error) => error_of(&error),
            }
        });
        let results = results.collect();
        // Nothing is left of a port whose nodes were all removed at once, nor of one that was only asked.
        let is_unused = part.is_new && part.table.nodes.is_empty();
        Ok(PartDone {
            own,
            results,
            owner,
            table: Some(part.table).filter(|_| !is_unused),
            changes: part.changes,
            is_new: part.is_new,
        })
    }
}

/// A part that is being done.
struct Part {
    table: Box<NodeTable>,
    changes: Vec<NodeChange>,
    is_new: bool,
}

impl Part {
    fn run(&mut self, command: NodeCommand) -> Result<Value, Error> {
        port_host::check(&command, self.table.port_mac())?;
        let nodes = &mut self.table.nodes;
        match command {
            NodeCommand::AddNode(params) => self.add(&params),
            NodeCommand::AddSharedNamespace => Ok(json!(nodes.add_shared().map_err(refused)?)),
            NodeCommand::RemoveNode(mac) => {
                nodes.remove(mac).map_err(refused)?;
                self.table.forget(mac);
                self.note(mac)
            }
            NodeCommand::RemoveSharedNamespace(name) => {
                nodes.remove_shared(&name).map_err(refused)?;
                Ok(Value::Null)
            }
            NodeCommand::RemoveAll => self.remove_all(),
            NodeCommand::SetIpv4(params) => self.set_ipv4(&params),
            NodeCommand::ClearIpv4(mac) => {
                nodes.set_ipv4(mac, None).map_err(refused)?;
                self.note(mac)
            }
            NodeCommand::SetIpv6(params) => self.set_ipv6(&params),
            NodeCommand::SetGateway(params) => {
                let gateway = params.dg.into();
                let set = nodes.set_gateway(&params.shared_ns, gateway);
                set.map_err(refused)?;
                Ok(Value::Null)
            }
            NodeCommand::SetMtu(params) => {
                nodes.set_mtu(params.mac, params.mtu).map_err(refused)?;
                Ok(Value::Null)
            }
            NodeCommand::Nodes(params) => {
                let all = nodes
                    .nodes()
                    .filter(|node| !node.is_port && (node.is_bird || !params.only_bird));
                let nodes = all.map(|node| mac_text(node.mac)).collect();
                Ok(json!(NodeList { nodes }))
            }
            NodeCommand::NodesInfo(macs) => {
                let all = || nodes.nodes().map(|node| node.mac).collect();
                let macs = macs.unwrap_or_else(all);
                let infos = macs.into_iter().map(|mac| self.table.info(mac));
                let nodes = infos.collect::<Result<_, _>>().map_err(refused)?;
                Ok(json!(NodeInfos { nodes }))
            }
            NodeCommand::Commands => Ok(json!(NODE_COMMANDS)),
            link => self.change_link(link),
        }
    }

    /// Commands about what the server does with a node's frames.
    fn change_link(&mut self, command: NodeCommand) -> Result<Value, Error> {
        match command {
            NodeCommand::SetVlans(params) => {
                let tpids = params.types();
                let tags = params.vlans;
                let vlan = NodeVlan { tags, tpids };
                self.link(params.mac, |link| link.vlan = vlan)
            }
            NodeCommand::SetVlanFilter(params) => {
                let mask = params.filter_mask;
                if mask > MASK_MAX {
                    return Err(Error::execution(format!(
                        "'filter_mask' is {mask}: give 1 for all but TCP and UDP, 2 for TCP and UDP, 3 for both"
                    )));
                }
                self.link(params.mac, |link| link.mask = mask)
            }
            NodeCommand::SetFilter(params) => {
                Filter::compile(&params.filter)
                    .map_err(|error| Error::execution(format!("'filter': {error}")))?;
                self.link(params.mac, |link| link.bpf = params.filter)
            }
            // Those of counters are the receive thread's.
            _ => Ok(Value::Null),
        }
    }

    fn add(&mut self, params: &AddNode) -> Result<Value, Error> {
        let placement = match (params.is_bird, params.shared_ns.as_deref()) {
            (true, Some(_)) => {
                return Err(Error::execution(
                    "'is_bird' and 'shared_ns' are both given: a node is in one of the two",
                ));
            }
            (true, None) => NodePlacement::Bird,
            (false, Some(name)) => NodePlacement::Shared(name),
            (false, None) => NodePlacement::Own,
        };
        let added = self.table.nodes.add(params.mac, placement);
        added.map_err(refused)?;
        self.note(params.mac)
    }

    fn remove_all(&mut self) -> Result<Value, Error> {
        self.table.forget_all();
        // The outer namespace is another behind, and so is the socket in it.
        self.changes.clear();
        self.is_new = true;
        self.table.nodes.remove_all().map_err(refused)?;
        self.table
            .port_mac()
            .map_or(Ok(Value::Null), |mac| self.note(mac))
    }

    /// Has the port itself have these addresses, or those that it had.
    fn set_port(&mut self, own: &PortAddresses) -> Result<(), Error> {
        let set = own.set(&mut self.table).map_err(refused);
        self.note(own.mac)?;
        set
    }

    fn set_ipv4(&mut self, params: &SetIpv4) -> Result<Value, Error> {
        let ipv4 = NodeIpv4 {
            address: params.ipv4,
            subnet: params.subnet,
            gateway: params.dg.filter(|_| !params.shared_ns),
        };
        let set = self.table.nodes.set_ipv4(params.mac, Some(ipv4));
        set.map_err(refused)?;
        self.note(params.mac)
    }

    fn set_ipv6(&mut self, params: &SetIpv6) -> Result<Value, Error> {
        let ipv6 = params.enable.then_some(NodeIpv6 {
            address: params.src_ipv6,
            subnet: params.subnet,
        });
        let set = self.table.nodes.set_ipv6(params.mac, ipv6);
        set.map_err(refused)?;
        self.note(params.mac)
    }

    fn link(&mut self, mac: [u8; 6], change: impl FnOnce(&mut NodeLink)) -> Result<Value, Error> {
        self.table.change_link(mac, change).map_err(refused)?;
        self.note(mac)
    }

    /// A node has changed, or is gone.
    fn note(&mut self, mac: [u8; 6]) -> Result<Value, Error> {
        self.changes.push(self.table.change_of(mac)?);
        Ok(Value::Null)
    }
}

fn refused(error: NodesError) -> Error {
    Error::execution(error.to_string())
}
