//! Emulated clients as the clients of a profile: who of them is ready is asked when it starts.
//!
//! The data thread where they are is asked about one network after the other; until it has
//! answered, the profile is in state `BUILD`, and a stop ends the wait. What it answers holds for
//! the whole run.

use std::sync::Arc;

use allosaur_api::commands::stateful::runs::StartProfile;
use allosaur_api::events::StatefulPhase;
use allosaur_emulation::namespace::{NamespaceKey, Tag};
use allosaur_emulation::ready::ReadyClients;
use allosaur_engine::template::{
    CompiledProfile, HostNetwork, HostTable, HostTag, PoolHost, Template,
};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::link::ethernet::EtherType;
use serde_json::Value;

use super::loaded::Starting;
use super::state::Stateful;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::pending::Wait;
use crate::emulation::{EmulationAnswer, EmulationRequest};

/// How long a data thread may take to tell of the hosts of a network.
const ANSWER_MAX: Nanos = 5 * SECOND;

/// A profile whose hosts are asked for.
#[derive(Debug)]
pub(super) struct HostSearch {
    params: StartProfile,
    profile: CompiledProfile,
    /// Networks that were not asked about yet; the last comes next.
    left: Vec<(HostNetwork, bool)>,
}

impl HostSearch {
    /// `None` when the clients of this profile are no hosts.
    pub(super) fn of(params: &StartProfile, profile: &CompiledProfile) -> Option<HostSearch> {
        let mut left = profile.host_networks();
        left.reverse();
        (!left.is_empty()).then(|| HostSearch {
            params: params.clone(),
            profile: profile.clone(),
            left,
        })
    }
}

/// Whether the clients of all templates are hosts, who need no addresses of ports.
pub(super) fn are_all_hosts(profile: &CompiledProfile) -> bool {
    let is_of_hosts = |template: &Template| {
        let pool = &profile.pools()[template.client.client_pool];
        pool.hosts.is_some()
    };
    profile.templates().iter().all(is_of_hosts)
}

impl Stateful {
    /// Asks about the next network; starts the profile when there is none left.
    pub(super) fn search_hosts(
        &mut self,
        control: &mut Core,
        mut search: HostSearch,
        view: &View<'_>,
    ) {
        let name = search.params.profile.clone();
        let Some((network, is_ipv6)) = search.left.pop() else {
            self.launch_checked(control, &search.params, Arc::new(search.profile), view);
            return;
        };
        let tags = self.check_network(control, &network, search.params.client_mask);
        let tags = match tags {
            Ok(tags) => tags,
            Err(problem) => {
                let problem = format!("{}: {problem}", place(&search.profile, network));
                self.move_on(
                    control,
                    &name,
                    StatefulPhase::Loaded,
                    Some(problem),
                    view.now_ns,
                );
                return;
            }
        };
        let namespace = key(&network);
        let request = EmulationRequest::ReadyClients { namespace, is_ipv6 };
        let question = self.awaited.ask_aside(
            control,
            request,
            move |stateful, control, _, answer, view| {
                stateful.note_hosts(control, search, (network, is_ipv6), tags, answer, view);
                Ok(Value::Null)
            },
        );
        let starting = Starting {
            wait: Wait::Question(question),
            session: control.mode_owner.as_ref().map_or(0, |owner| owner.session),
            until: Some(view.now_ns + ANSWER_MAX),
        };
        if let Some(profile) = self.profiles.get_mut(&name) {
            profile.starting = Some(starting);
        }
    }

    /// A data thread has told of a network.
    fn note_hosts(
        &mut self,
        control: &mut Core,
        mut search: HostSearch,
        (network, is_ipv6): (HostNetwork, bool),
        tags: Vec<u16>,
        answer: Option<EmulationAnswer>,
        view: &View<'_>,
    ) {
        let name = &search.params.profile;
        let Some(profile) = self.profiles.get_mut(name) else {
            return;
        };
        profile.starting = None;
        match ready_hosts(&network, is_ipv6, answer) {
            Ok(hosts) => {
                let port = network.port as u8;
                let table = Arc::new(HostTable::new(port, tags, is_ipv6, hosts));
                search.profile = search.profile.with_hosts(network, is_ipv6, &table);
                self.search_hosts(control, search, view);
            }
            Err(problem) => {
                let problem = format!("{}: {problem}", place(&search.profile, network));
                self.move_on(
                    control,
                    name,
                    StatefulPhase::Loaded,
                    Some(problem),
                    view.now_ns,
                );
            }
        }
    }

    /// Whether flows can begin in a network; gives the tags of their frames.
    fn check_network(
        &self,
        control: &Core,
        network: &HostNetwork,
        client_mask: u32,
    ) -> Result<Vec<u16>, String> {
        let clients = self.client_ports(control);
        let port = u8::try_from(network.port).ok();
        let Some(port) = port.filter(|port| clients.contains(port)) else {
            return Err(format!(
                "vport is {}, which has no clients of flows: those that have are {clients:?}",
                network.port
            ));
        };
        if client_mask >> port & 1 == 0 {
            return Err(format!(
                "vport is {port}, which client_mask {client_mask:#x} leaves out: set its bit"
            ));
        }
        tags_of(network)
    }

    /// Gives up starts whose hosts no data thread tells.
    pub(in crate::control) fn give_up_starts(&mut self, control: &mut Core, now_ns: Nanos) {
        let profiles = self.profiles.iter();
        let late = profiles.filter_map(|(name, profile)| {
            let starting = profile.starting.filter(|starting| {
                let until = starting.until;
                until.is_some_and(|until| until <= now_ns)
            });
            Some((name.clone(), starting?.wait))
        });
        let late: Vec<(String, Wait)> = late.collect();
        for (name, wait) in late {
            self.awaited.forget(wait);
            if let Some(profile) = self.profiles.get_mut(&name) {
                profile.starting = None;
            }
            let problem = "no data thread tells which emulated clients are ready: try \
                           again, and look at the server's log if that does not help";
            self.move_on(
                control,
                &name,
                StatefulPhase::Loaded,
                Some(problem.to_owned()),
                now_ns,
            );
        }
    }
}

/// Where a network stands in the text of its profile.
fn place(profile: &CompiledProfile, network: HostNetwork) -> String {
    let mut pools = profile.pools().iter();
    let number = pools.position(|pool| pool.hosts == Some(network));
    format!("ip_gen_dist_list[{}].emulation", number.unwrap_or_default())
}

fn key(network: &HostNetwork) -> NamespaceKey {
    let tag = |tag: HostTag| Tag {
        tpid: tag.tpid,
        vlan: tag.vlan,
    };
    NamespaceKey {
        port: network.port,
        tags: network.tags.map(tag),
    }
}

/// The tag control information of the frames of flows in a network.
fn tags_of(network: &HostNetwork) -> Result<Vec<u16>, String> {
    let tags = network.tags.iter().filter(|tag| tag.vlan != 0);
    let (types, vlans): (Vec<u16>, Vec<u16>) = tags.map(|tag| (tag.tpid, tag.vlan)).unzip();
    let (vlan, service) = (EtherType::VLAN.0, EtherType::QINQ.0);
    match types[..] {
        [] => Ok(vlans),
        [one] if one == vlan => Ok(vlans),
        [outer, inner] if (outer, inner) == (service, vlan) => Ok(vlans),
        _ => Err(format!(
            "tpid is {types:#06x?}; frames of flows have one tag of type {vlan:#06x}, or two of \
             types {service:#06x} and {vlan:#06x}: give the namespace such tags"
        )),
    }
}

/// The hosts of a network that are ready, at least one; an error says what is missing.
fn ready_hosts(
    network: &HostNetwork,
    is_ipv6: bool,
    answer: Option<EmulationAnswer>,
) -> Result<Vec<PoolHost>, String> {
    let found = match answer {
        Some(EmulationAnswer::ReadyClients(Some(found))) => found,
        Some(EmulationAnswer::ReadyClients(None)) => {
            return Err(format!(
                "no clients are emulated at {}: load them first ('allosaur emu load', \
                 EMUClient.load_profile), or correct vport, tci and tpid",
                name(network)
            ));
        }
        _ => {
            return Err(
                "this server emulates no clients: start it with --emu ('emu_port' in its \
                 configuration)"
                    .to_owned(),
            );
        }
    };
    if found.ready.len() < network.hosts_min.max(1) as usize {
        return Err(too_few(network, is_ipv6, &found));
    }
    let hosts = found.ready.iter();
    let hosts = hosts.map(|client| PoolHost::new(client.address, client.mac, client.gateway));
    Ok(hosts.collect())
}

/// How many are ready, what the others wait for, and what to do.
fn too_few(network: &HostNetwork, is_ipv6: bool, found: &ReadyClients) -> String {
    let waiting: usize = found.waiting.values().sum();
    let all = found.ready.len() + waiting;
    let place = name(network);
    if all == 0 {
        return format!("{place} has no emulated clients: add some before the start");
    }
    let lacks = found.waiting.iter();
    let lacks: Vec<String> = lacks
        .map(|(what, count)| format!("{count} of them without {what}"))
        .collect();
    let family = if is_ipv6 { "IPv6" } else { "IPv4" };
    let lacks = match lacks[..] {
        [] => String::new(),
        _ => format!(" ({})", lacks.join(", ")),
    };
    format!(
        "{} of {all} emulated clients of {place} are ready for {family}, and ready_min asks for \
         {}{lacks}: wait until they are, add clients, or ask for fewer",
        found.ready.len(),
        network.hosts_min.max(1)
    )
}

/// A network in words.
fn name(network: &HostNetwork) -> String {
    let tags = network.tags.iter().filter(|tag| tag.vlan != 0);
    let tags: Vec<String> = tags.map(|tag| tag.vlan.to_string()).collect();
    match tags[..] {
        [] => format!("port {} without VLAN", network.port),
        _ => format!("port {}, VLAN {}", network.port, tags.join(" and ")),
    }
}
