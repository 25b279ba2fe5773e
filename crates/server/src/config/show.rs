//! What a file says, in words and as JSON.

use serde_json::{Value, json};

use super::groups::Group;
use super::read::{Findings, Problem};
use super::{Loaded, PortSettings, Settings};
use crate::config::polling::Poll;
use crate::control::worker_command::Modes;

/// One line about settings that are right.
pub fn summary(loaded: &Loaded) -> String {
    let settings = &loaded.settings;
    let ports: Vec<String> = settings
        .ports
        .iter()
        .map(|port| port.description.to_string())
        .collect();
    let form = match loaded.form {
        super::Form::Allosaur => "",
        super::Form::Trex => " in TRex's form",
    };
    format!(
        "right{form}: {} port(s) {}; {} thread(s) that send; requests on {}:{}, events on {}",
        ports.len(),
        ports.join(", "),
        settings.cores(),
        settings.listen,
        settings.rpc_port,
        settings.events_port(),
    )
}

/// What a check found, for `--json`.
pub fn json(file: &str, result: &Result<Loaded, Findings>) -> Value {
    let (problems, warnings) = match result {
        Ok(loaded) => (&[][..], &loaded.warnings),
        Err(findings) => (&findings.problems[..], &findings.warnings),
    };
    let loaded = result.as_ref().ok();
    json!({
        "command": "config check",
        "ok": loaded.is_some(),
        "file": file,
        "form": loaded.map(|loaded| loaded.form.name()),
        "problems": problems.iter().map(problem).collect::<Vec<_>>(),
        "warnings": warnings.iter().map(problem).collect::<Vec<_>>(),
        "settings": loaded.map(|loaded| settings(&loaded.settings)),
    })
}

fn problem(problem: &Problem) -> Value {
    json!({
        "line": problem.place.line,
        "column": problem.place.column,
        "key": problem.key,
        "text": problem.text,
    })
}

fn settings(settings: &Settings) -> Value {
    json!({
        "ports": settings.ports.iter().map(port).collect::<Vec<_>>(),
        "cores": settings.cores(),
        "cpus": settings.data_cpus(),
        "groups": settings.groups.iter().map(group).collect::<Vec<_>>(),
        "pin": settings.pin,
        "receive_threads": settings.receive_threads,
        "receive_cpus": settings.cpus.receive,
        "control_cpu": settings.cpus.control,
        "poll": settings.poll.map(Poll::name),
        "modes": match settings.modes {
            Modes::Both => "both",
            Modes::Stateless => "stateless",
            Modes::Stateful => "stateful",
        },
        "flows_max": settings.flows_max,
        "listen": settings.listen,
        "rpc_auth": settings.rpc_auth,
        "open": settings.open,
        "rpc_port": settings.rpc_port,
        "pub_port": settings.events_port(),
        "emu_port": settings.emu_port,
        "bird_port": settings.bird_port,
        "stack": settings.stack.name(),
        "emu_exports": settings.emu_exports,
        "emu_zmq": settings.emu_zmq.map(|sockets| sockets.endpoints(&settings.listen)),
        "http": settings.http.map(|address| address.to_string()),
        "http_hosts": settings.http_hosts,
        "captures_folder": settings.captures_folder,
    })
}

fn group(group: &Group) -> Value {
    json!({
        "ports": group.ports,
        "cores": group.threads,
        "cpus": group.cpus,
    })
}

fn port(port: &PortSettings) -> Value {
    let addresses = &port.addresses;
    let mac = |mac: Option<[u8; 6]>| mac.map(|mac| mac.map(|b| format!("{b:02x}")).join(":"));
    json!({
        "port": port.description.to_string(),
        "ip": addresses.ipv4.map(|(ip, _)| ip),
        "default_gateway": addresses.ipv4.map(|(_, gateway)| gateway),
        "vlan": addresses.vlan,
        "vxlan": addresses.vxlan,
        "destination_mac": mac(addresses.destination_mac),
        "source_mac": mac(addresses.source_mac),
        "load_max_bps": port.load_max_bps,
    })
}
