//! From settings to a control thread with its ports and the other threads.

use std::net::IpAddr;
use std::sync::Arc;

use allosaur_api::limits::REQUEST_BYTES_MAX;
use allosaur_emulation::Settings as EmulationSettings;
use allosaur_netdev::inventory::Machine;
use allosaur_nodes::owner::Owner;
use allosaur_port::buffers::Buffers;
use allosaur_port::description::PortDescription;
use allosaur_port::open::{self, AnyPort};
use allosaur_port::time::TimeSource;
use allosaur_port::{PortError, QueueCounts};

use super::netdevs::Netdevs;
use super::startup_info::{control_config, flow_configs, seed, take_source_macs};
use super::watchdog::Watchdog;
use super::{ControlContext, ControlThread, ServiceError};
use crate::config::{Settings, Stack};
use crate::control::worker_command::PortMode;
use crate::control::{Control, ControlConfig, StartAddresses};
use crate::counters::{Counters, Snapshot};
use crate::devices;
use crate::threads::affinity;
use crate::threads::clock::Clock;
use crate::threads::flow_sharing::FlowSharing;
use crate::threads::job::{DiskFiles, JobThread};
use crate::threads::layout::{self, Layout, plan};
use crate::threads::message_port::MessagePort;
use crate::threads::{Emulated, Refusal, Threads, epoch_ns, refused};
use crate::transport::{BoxedTransport, listen_address};

impl ControlThread {
    pub(super) fn start(
        settings: &Settings,
        transports: Vec<BoxedTransport>,
        nodes_owner: Option<Arc<Owner>>,
    ) -> Result<ControlThread, ServiceError> {
        let clock = Clock::start();
        let descriptions = settings.ports.iter().map(|port| port.description.clone());
        let descriptions: Vec<_> = descriptions.collect();
        let layout = plan(settings, &machine_of(settings))?;
        tell(&layout, settings.pin);
        let queues = layout.queues(descriptions.len());
        let mut ports = opened(&descriptions, &queues, &clock)?;
        let has_flows = settings.modes.has(PortMode::Stateful);
        let counters = counters(ports.len(), &layout, has_flows);
        let sharing = FlowSharing::of_all(&ports, &layout);
        let mut config = control_config(&descriptions, &layout, &ports, settings.modes, &sharing)?;
        take_source_macs(&mut config, &settings.ports);
        config.has_emulation = settings.has_emulation();
        (config.nodes_owner, config.has_linux_stack) = (nodes_owner, has_linux_stack(settings));
        tell_ports(&config, &ports, &sharing);
        let flows = || {
            flow_configs(
                &config,
                &descriptions,
                &layout,
                &sharing,
                settings.flows_max,
            )
        };
        let flows = has_flows.then(flows).transpose()?;
        let control = Control::new(config, clock.now_ns());
        let buffers = ports.iter().map(|port| Buffers::of(&port.tx)).collect();
        let netdevs = ports.iter_mut().map(|port| port.control.take());
        let netdevs = Netdevs::new(netdevs.collect(), buffers, settings.has_emulation());
        let emulated = emulated(settings, &clock)?;
        let (threads, rx_handle) =
            Threads::start(ports, &layout, flows, &counters, &clock, emulated)?;
        if let Some(cpu) = layout.control {
            // After all threads have started, which would run there too.
            affinity::bind(cpu).map_err(refused("a CPU for the control thread"))?;
        }
        // Where control runs: jobs are control's work, and data threads have CPUs of their own.
        let files = DiskFiles::within(
            settings.captures_folder.as_deref(),
            &counters.key_log_lines_dropped,
        );
        let jobs = JobThread::start(files.clone(), threads.control_notify.clone());
        let jobs = jobs.map_err(refused("a thread"))?;
        jobs.remove_leftovers();
        let notify = threads.control_notify.clone();
        let messages = MessagePort::start(transports, "messages", REQUEST_BYTES_MAX, notify);
        let messages = messages.map_err(refused("a thread"))?;
        let mut control_thread = ControlThread {
            control,
            messages,
            jobs,
            files,
            http: None,
            emulation: None,
            threads,
            watchdog: Watchdog::default(),
            next_tick: clock.now_ns(),
            context: ControlContext {
                counters,
                snapshot: Snapshot::default(),
                clock,
                rx_handle,
                netdevs,
            },
            ending: false,
        };
        control_thread.apply_initial_addresses(settings);
        Ok(control_thread)
    }

    /// Gives the ports the addresses and attributes that they have from the start.
    fn apply_initial_addresses(&mut self, all: &Settings) {
        for (port, settings) in (0..).zip(&all.ports) {
            if let Some(max_bps) = settings.load_max_bps {
                let limited = self.control.limit_load(port, max_bps);
                limited.expect("the port is there");
            }
            let begun = self.control.begin_mac_filter(port, all.promiscuous);
            if let Err(error) = begun {
                tracing::error!(port, "the MAC filter of a port was not set: {error:?}");
            }
            // A port in a network namespace is there from the start, also without addresses.
            if settings.addresses == StartAddresses::default() && !has_linux_stack(all) {
                continue;
            }
            let set = self.control.set_start_addresses(port, &settings.addresses);
            if let Err(error) = set {
                tracing::error!(port, "the addresses of a port were not set: {error:?}");
            }
        }
    }
}

fn has_linux_stack(settings: &Settings) -> bool {
    settings.stack == Stack::LinuxBased
}

/// The ports, which tell by the server's clock when frames arrived.
fn opened(
    descriptions: &[PortDescription],
    queues: &[QueueCounts],
    clock: &Clock,
) -> Result<Vec<AnyPort>, PortError> {
    let mut ports = open::open_each(descriptions, queues)?;
    let clock: Arc<dyn TimeSource> = Arc::new(clock.clone());
    for queue in ports.iter_mut().flat_map(|port| &mut port.rx) {
        queue.set_clock(&clock);
    }
    Ok(ports)
}

/// Who shall be emulated.
fn emulated(all: &Settings, clock: &Clock) -> Result<Emulated, Refusal> {
    // libzmq knows no names.
    let listen = match listen_address(&all.listen) {
        _ if all.listen == "*" => "*".to_owned(),
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        Ok(ip) => ip.to_string(),
        Err(_) => all.listen.clone(),
    };
    let mut emulated = Emulated {
        clients: None,
        channel: all.emu_zmq.map(|sockets| sockets.endpoints(&listen)),
    };
    if all.emu_port.is_some() {
        let seed = seed().map_err(refused("random numbers"))?;
        emulated.clients = Some(EmulationSettings {
            seed: seed as u32,
            unix_offset: epoch_ns(clock),
            exports: all.emu_exports,
            ..EmulationSettings::default()
        });
    }
    Ok(emulated)
}

/// Says where threads run, as far as that was asked or is not as it was.
fn tell(layout: &Layout, is_pinned: bool) {
    for warning in &layout.warnings {
        tracing::warn!("{warning}");
    }
    if is_pinned {
        for line in layout.in_words() {
            tracing::info!("{line}");
        }
    }
}

/// The counters of all threads.
fn counters(ports: usize, layout: &Layout, has_flows: bool) -> Counters {
    let counters = Counters::new(ports, layout.data.len());
    let counters = counters.with_receive_threads(layout.receive.len());
    match has_flows {
        true => counters.with_flows(),
        false => counters,
    }
}

/// Says what was chosen for ports, where there was a choice.
fn tell_ports(config: &ControlConfig, ports: &[AnyPort], sharing: &[FlowSharing]) {
    for (number, port) in config.ports.iter().enumerate() {
        let flows = sharing.get(number).and_then(FlowSharing::in_words);
        if ports[number].details.is_some() || flows.is_some() {
            tracing::info!("port {number}: {}", port.description);
        }
    }
}

/// On which ports a frame that was lost on arrival is an error: a link in memory only does as it is
/// told.
pub(super) fn losses_are_errors(settings: &Settings) -> Vec<bool> {
    let ports = settings.ports.iter().map(|port| &port.description);
    ports.map(|port| port.link().is_none()).collect()
}

/// Who else is on the interfaces that ports are on.
///
/// # Errors
///
/// When a port would cut the user off.
pub(super) fn warnings(settings: &Settings) -> Result<Vec<String>, PortError> {
    let ports = settings.ports.iter().map(|port| &port.description);
    let on_interfaces: Vec<_> = ports.filter(|port| port.interface().is_some()).collect();
    if on_interfaces.is_empty() {
        return Ok(Vec::new());
    }
    let machine = Machine::look();
    let refusal = on_interfaces
        .iter()
        .find_map(|port| devices::refusal(&machine, port));
    let warnings = on_interfaces
        .iter()
        .flat_map(|port| devices::warnings(&machine, port));
    refusal.map_or_else(|| Ok(warnings.collect()), Err)
}

/// What must be known of this machine to lay out threads.
pub fn machine_of(settings: &Settings) -> layout::Machine {
    let ports = settings.ports.iter();
    layout::Machine {
        cpus: affinity::cpus(),
        port_nodes: ports
            .map(|port| affinity::node_of_port(&port.description))
            .collect(),
    }
}
