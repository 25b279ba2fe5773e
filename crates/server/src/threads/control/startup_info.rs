//! What control is told when the server starts: facts about its ports, the machine and the build.

use std::io::Read;
use std::sync::Arc;
use std::time::SystemTime;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::flow_stats::Tagging;
use allosaur_engine::stateful;
use allosaur_engine::template::{PoolShare, Side};
use allosaur_engine::vm::Checksums;
use allosaur_packet::MacAddress;
use allosaur_port::description::PortDescription;
use allosaur_port::kinds::PortBase;
use allosaur_port::open::AnyPort;

use crate::config::PortSettings;
use crate::control::worker_command::Modes;
use crate::control::{BuildInfo, ControlConfig, LinkOwner, PortConfig};
use crate::threads::affinity;
use crate::threads::flow_sharing::FlowSharing;
use crate::threads::layout::Layout;
use crate::threads::refusal::{Refusal, refused};

/// All that control must know of ports that were opened by these descriptions and can be in these
/// modes, whose flows share what arrives so, and of threads that are laid out so.
///
/// # Errors
///
/// When the system has no random numbers.
pub(super) fn control_config(
    descriptions: &[PortDescription],
    layout: &Layout,
    ports: &[AnyPort],
    modes: Modes,
    sharing: &[FlowSharing],
) -> Result<ControlConfig, Refusal> {
    let mac = |number: usize| ports[number].mac.unwrap_or(memory_mac(number));
    let described = ports.iter().zip(descriptions).enumerate();
    let config = described.map(|(number, (port, description))| PortConfig {
        driver: description.kind().name.to_owned(),
        description: in_words(description, port, sharing.get(number)),
        interface: description.interface().map(str::to_owned),
        numa_node: affinity::node_of_port(description),
        line_rate_bps: port.capabilities.line_rate_bps,
        frame_bytes_max: port.capabilities.frame_bytes_max,
        link: match description.kind().base {
            PortBase::Memory => LinkOwner::Server {
                peer: port.peer.map(|peer| peer as u8),
            },
            PortBase::Interface | PortBase::Card => LinkOwner::System,
        },
        hw_mac: mac(number),
        destination_mac: mac(peer(ports, number)),
        checksums: Checksums::Complete,
        shares_inner_flows: sharing
            .get(number)
            .is_none_or(|sharing| sharing.is_by_inner_flow(port)),
        cores: layout.cores_of(number),
    });
    Ok(ControlConfig {
        ports: config.collect(),
        data_cores: layout.data.len(),
        modes,
        hostname: first_line("/proc/sys/kernel/hostname"),
        core_type: processor(),
        started: date_of(SystemTime::now())
            .format("%b %d %Y @ %H:%M:%S")
            .to_string(),
        build: build_facts(),
        marking: Tagging::Server,
        has_emulation: false,
        has_linux_stack: false,
        nodes_owner: None,
        seed: seed().map_err(refused("random numbers"))?,
    })
}

/// What a port is, what was chosen for it, and how its flows share what arrives.
fn in_words(
    description: &PortDescription,
    port: &AnyPort,
    sharing: Option<&FlowSharing>,
) -> String {
    let is_there = *description != PortDescription::Dummy;
    let flows = sharing.filter(|_| is_there).and_then(FlowSharing::in_words);
    let details: Vec<String> = port.details.clone().into_iter().chain(flows).collect();
    match details.is_empty() {
        true => description.in_words(),
        false => format!("{}: {}", description.in_words(), details.join("; ")),
    }
}

/// What the flows of each data thread must know: `flows_max` are shared out over all threads.
///
/// Even ports have clients and odd ones servers; a port that is only there to make the number even
/// has neither.
///
/// # Errors
///
/// When the system has no random numbers.
pub(super) fn flow_configs(
    config: &ControlConfig,
    descriptions: &[PortDescription],
    layout: &Layout,
    sharing: &[FlowSharing],
    flows_max: usize,
) -> Result<Vec<stateful::Config>, Refusal> {
    let seed = seed().map_err(refused("random numbers"))?;
    let threads = layout.data.len();
    let of_thread = |thread: usize| {
        let facts = |port: usize| {
            let own = &config.ports[port];
            let rank = own.cores.iter().position(|core| *core == thread)?;
            let is_there = descriptions[port] != PortDescription::Dummy;
            is_there.then(|| stateful::FlowPortInfo {
                side: if port % 2 == 0 {
                    Side::Client
                } else {
                    Side::Server
                },
                own_mac: MacAddress(own.hw_mac),
                peer_mac: MacAddress(own.destination_mac),
                encapsulation: Encapsulation::Ethernet,
                frame_bytes_max: own.frame_bytes_max,
                share: PoolShare {
                    rank: rank as u32,
                    cores: own.cores.len() as u32,
                    pair: port as u32 / 2,
                    pairs: config.ports.len().div_ceil(2) as u32,
                },
            })
        };
        let rss = |(port, sharing): (usize, &FlowSharing)| {
            let own = &config.ports[port];
            let rank = own.cores.iter().position(|core| *core == thread)?;
            sharing.rss_share(rank).map(Arc::new)
        };
        stateful::Config {
            ports: (0..config.ports.len()).map(facts).collect(),
            rss: sharing.iter().enumerate().map(rss).collect(),
            flows_max: flows_max.div_ceil(threads),
            seed: seed.wrapping_add(thread as u64),
        }
    };
    Ok((0..threads).map(of_thread).collect())
}

/// Gives ports the MAC addresses that the user chose, and tells their peers.
pub(super) fn take_source_macs(config: &mut ControlConfig, ports: &[PortSettings]) {
    let chosen = ports.iter().map(|port| port.addresses.source_mac);
    let own = config.ports.iter().map(|port| port.hw_mac);
    let changes: Vec<_> = own.zip(chosen).collect();
    for (port, (_, chosen)) in config.ports.iter_mut().zip(&changes) {
        port.hw_mac = chosen.unwrap_or(port.hw_mac);
        let peer = changes.iter().find(|(own, _)| *own == port.destination_mac);
        if let Some((_, Some(mac))) = peer {
            port.destination_mac = *mac;
        }
    }
}

/// The port at the other end of a port. Where nobody knows, its neighbor in the list, as if both
/// were joined by a cable; without one the port itself.
fn peer(ports: &[AnyPort], number: usize) -> usize {
    let neighbor = Some(number ^ 1).filter(|peer| *peer < ports.len());
    ports[number].peer.or(neighbor).unwrap_or(number)
}

/// Locally administered: no card has it.
fn memory_mac(port: usize) -> [u8; 6] {
    [0x02, 0xa1, 0x05, 0, 0, port as u8]
}

fn build_facts() -> BuildInfo {
    let binary = std::env::current_exe().and_then(std::fs::metadata);
    let built = binary.and_then(|file| file.modified()).map(date_of).ok();
    let format = |pattern| built.map_or(String::new(), |at| at.format(pattern).to_string());
    BuildInfo {
        version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        date: format("%b %d %Y"),
        time: format("%H:%M:%S"),
        by: "allosaur".to_owned(),
    }
}

fn date_of(time: SystemTime) -> chrono::DateTime<chrono::Local> {
    time.into()
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|line| line.split_once(": "))
        .map(|(_, name)| name);
    model.unwrap_or(std::env::consts::ARCH).to_owned()
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Something that nobody can guess.
pub(super) fn seed() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
