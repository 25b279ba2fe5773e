//! What a server is told to be: its ports, threads and sockets; and the files that say so.
//!
//! * [`yaml`]: text as a tree with places.
//! * [`read`]: values out of a tree, with errors that name key and place.
//! * [`groups`]: which threads send on which ports.
//! * [`ours`]: our own form, and its keys.
//! * [`trex`]: TRex's form, `/etc/trex_cfg.yaml`.
//! * [`names`]: what a port may be called there.
//! * [`show`]: what a file says, in words and as JSON.
//! * [`begin`]: a first file for this machine.

pub mod begin;
pub mod groups;
pub mod names;
pub mod ours;
pub mod polling;
pub mod read;
pub mod show;
pub mod trex;
pub mod yaml;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use allosaur_port::PortError;
use allosaur_port::description::{PortDescription, parse_ports};

use crate::config::polling::Poll;
use crate::control::StartAddresses;
use crate::control::worker_command::Modes;
use groups::Group;
use read::Findings;
use yaml::Value;

/// Where requests are taken, unless told otherwise; TRex's.
pub const RPC_PORT: u16 = 4501;
/// Where events are published, unless told otherwise; TRex's.
pub const PUB_PORT: u16 = 4500;
/// The first of two sockets to an emulation server of another process; TRex's.
pub const EMU_ZMQ_PORT: u16 = 4511;
/// Where requests to emulated clients are taken, unless told otherwise; TRex's.
pub const EMU_PORT: u16 = 4510;
/// The TCP port of requests to BIRD, where nothing else is said; TRex has the same.
pub const BIRD_PORT: u16 = 4509;
/// Threads that can receive.
pub const RECEIVE_THREADS_MAX: u16 = 16;

/// Flows that a server may have at the same time, unless told otherwise: a million with both ends
/// here. Memory is taken when they come.
pub const FLOWS: usize = 2 << 20;
/// The least that a server may be told to have.
pub const FLOWS_MIN: usize = 1 << 10;
/// The most that a server may be told to have.
pub const FLOWS_MAX: usize = 64 << 20;

/// What a server is told to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The ports, in order of their numbers.
    pub ports: Vec<PortSettings>,
    /// Which threads send on which ports: each port is in one group.
    pub groups: Vec<Group>,
    /// Threads that receive, 1 or more.
    pub receive_threads: u16,
    /// Where the threads run that do not send.
    pub cpus: Cpus,
    /// Whether threads that send get CPUs of their own where none are named.
    pub pin: bool,
    /// How threads wait; `None` leaves it to the layout.
    pub poll: Option<Poll>,
    /// The modes that ports can be in.
    pub modes: Modes,
    /// Flows at the same time, of all threads together.
    pub flows_max: usize,
    /// The address to listen on.
    pub listen: String,
    /// Names and tokens that are asked for beyond loopback.
    pub rpc_auth: Option<PathBuf>,
    /// Whether everyone beyond loopback may use it, without a token.
    pub open: bool,
    /// TCP port of requests; 0 picks a free one.
    pub rpc_port: u16,
    /// TCP port of events; 0 picks a free one, `None` is one below that of requests.
    pub pub_port: Option<u16>,
    /// TCP port of requests to emulated clients, where there are such; 0 picks a free one.
    pub emu_port: Option<u16>,
    /// TCP port of requests to BIRD, where there is one; 0 picks a free one.
    pub bird_port: Option<u16>,
    /// Who answers for the addresses of ports.
    pub stack: Stack,
    /// Whether emulated clients may write files, send by the server's sockets and post to web servers.
    pub emu_exports: bool,
    /// The sockets to an emulation server of another process, where there may be one.
    pub emu_zmq: Option<EmuZmq>,
    /// Where HTTP is answered, if it is; port 0 picks a free one.
    pub http: Option<SocketAddr>,
    /// Names that HTTP is answered to, besides addresses and the machine's.
    pub http_hosts: Vec<String>,
    /// Where captures are that clients may have sent; the folder that the server was started in unless
    /// named.
    pub captures_folder: Option<PathBuf>,
    /// Whether ports are promiscuous from the start.
    pub promiscuous: bool,
    /// Whether counters are written to the standard output every second.
    pub table: bool,
}

/// Who answers for the addresses of ports, by TRex's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    /// The server itself.
    #[default]
    Legacy,
    /// The kernel: each port has its addresses in a network namespace of its own.
    LinuxBased,
}

impl Stack {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Stack::Legacy => "legacy",
            Stack::LinuxBased => "linux_based",
        }
    }
}

impl FromStr for Stack {
    type Err = String;

    fn from_str(text: &str) -> Result<Stack, String> {
        let all = [Stack::Legacy, Stack::LinuxBased];
        all.into_iter()
            .find(|stack| stack.name() == text)
            .ok_or_else(|| format!("'{text}' is no stack: write legacy or linux_based"))
    }
}

/// The sockets to an emulation server of another process: two, the second behind the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmuZmq {
    /// TCP, else files.
    pub tcp: bool,
    /// The number of the first, which is in the name of a file too.
    pub port: u16,
}

impl EmuZmq {
    /// For what the emulation server receives, and what it sends. `listen` is the address for TCP.
    pub fn endpoints(self, listen: &str) -> [String; 2] {
        [self.port, self.port.saturating_add(1)].map(|port| match self.tcp {
            true => format!("tcp://{listen}:{port}"),
            false => format!("ipc:///tmp/emu-{port}.ipc"),
        })
    }
}

/// A port, and the addresses that it has from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct PortSettings {
    /// Kind and settings.
    pub description: PortDescription,
    /// Addresses.
    pub addresses: StartAddresses,
    /// The most that users may send on it, at layer 1.
    pub load_max_bps: Option<f64>,
}

/// The CPUs that threads which do not send are bound to; one without runs anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Of the receive threads, in their order: of each, or of none.
    pub receive: Vec<usize>,
    /// Of the control thread.
    pub control: Option<usize>,
}

/// What the reader of a file must know beside its text.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The CPUs that this process may use.
    pub cpus: Vec<usize>,
    /// Threads that send for each two ports, instead of what the file says.
    pub cores_per_pair: Option<u16>,
    /// Use the first ports only, so many.
    pub ports_max: Option<usize>,
}

/// In which form a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Our own.
    Allosaur,
    /// TRex's.
    Trex,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// In which form they were written.
    pub form: Form,
    /// What was understood and does not apply.
    pub warnings: Vec<read::Problem>,
    /// Where the ports are named, in their order; none where the file names none.
    pub ports: Vec<read::Mark>,
}

impl Default for Settings {
    /// Two ports in memory, for this machine only.
    fn default() -> Settings {
        let ports = parse_ports("memory,memory").expect("the default ports are well formed");
        Settings {
            ports: ports.into_iter().map(PortSettings::plain).collect(),
            groups: Group::of_all(2, 1),
            receive_threads: 1,
            cpus: Cpus::default(),
            pin: false,
            poll: None,
            modes: Modes::Both,
            flows_max: FLOWS,
            listen: "127.0.0.1".to_owned(),
            rpc_auth: None,
            open: false,
            rpc_port: RPC_PORT,
            pub_port: None,
            emu_port: None,
            bird_port: None,
            stack: Stack::Legacy,
            emu_exports: false,
            emu_zmq: None,
            http: None,
            http_hosts: Vec::new(),
            captures_folder: None,
            promiscuous: false,
            table: false,
        }
    }
}

impl Settings {
    /// Threads that send, of all groups.
    pub fn cores(&self) -> usize {
        let threads = self.groups.iter().map(|group| usize::from(group.threads));
        threads.sum()
    }

    /// Whether there may be emulated clients, here or in another process.
    pub fn has_emulation(&self) -> bool {
        self.emu_port.is_some() || self.emu_zmq.is_some()
    }

    /// The TCP port of events: where clients look for it when they know that of requests only. 0
    /// picks a free one.
    pub fn events_port(&self) -> u16 {
        self.pub_port.unwrap_or(self.rpc_port.saturating_sub(1))
    }

    /// What of it does not go together, also when a part came from options.
    pub fn problem(&self) -> Option<String> {
        let taken = [
            (Some(self.rpc_port), "rpc_port (--rpc-port)"),
            (Some(self.events_port()), "pub_port (--pub-port)"),
            (self.emu_port, "emu_port (--emu-port)"),
            (self.bird_port, "bird_port (--bird-port)"),
        ];
        for (at, (port, name)) in taken.iter().enumerate().skip(2) {
            let Some(port) = port.filter(|port| *port != 0) else {
                continue;
            };
            let mut others = taken[..at].iter();
            if let Some((_, other)) = others.find(|(other, _)| *other == Some(port)) {
                return Some(format!("{name} and {other} are both {port}: write another"));
            }
        }
        if let Some(EmuZmq { tcp: true, .. }) = self.emu_zmq.filter(|_| self.rpc_auth.is_some()) {
            return Some(
                "--emu-zmq tcp opens two TCP ports that ask for no token, and rpc_auth (--rpc-auth) is \
                 to ask everyone: write --emu-zmq ipc, for an emulation server on this machine"
                    .to_owned(),
            );
        }
        if let (true, Some(file)) = (self.open, &self.rpc_auth) {
            return Some(format!(
                "open (--open) lets everyone in, and rpc_auth (--rpc-auth {}) those with a token: leave \
                 one of them out",
                file.display()
            ));
        }
        let is_stateful = self.modes == Modes::Stateful;
        let mut ports = (0..).zip(&self.ports).filter(|_| is_stateful);
        ports.find_map(|(id, port): (u8, _)| {
            Some(format!("port {id}: vlan: {}", port.tags_problem()?))
        })
    }

    /// The CPUs that threads which send are bound to, of all groups.
    pub fn data_cpus(&self) -> Vec<usize> {
        let cpus = self.groups.iter().flat_map(|group| &group.cpus);
        cpus.copied().collect()
    }
}

impl PortSettings {
    /// A port without addresses of its own.
    pub fn plain(description: PortDescription) -> PortSettings {
        PortSettings {
            description,
            addresses: StartAddresses::default(),
            load_max_bps: None,
        }
    }

    /// What is wrong with its VLAN tags where threads have flows, whose frames carry one.
    fn tags_problem(&self) -> Option<String> {
        let tags = self.addresses.vlan.len();
        let problem = || format!("{tags} tags, and stateful mode carries one: write one tag");
        (tags > 1).then(problem)
    }
}

impl Form {
    /// Whose form it is.
    pub fn name(self) -> &'static str {
        match self {
            Form::Allosaur => "allosaur",
            Form::Trex => "trex",
        }
    }
}

/// Where HTTP is answered: a TCP port of loopback, or an address with one.
///
/// # Errors
///
/// What is right.
pub fn http_address(text: &str) -> Result<SocketAddr, String> {
    let right = "write a TCP port such as 4502, or an address with one such as 192.0.2.1:4502, \
                 [::1]:4502 or *:4502 for all";
    let port = |text: &str| text.parse::<u16>().ok();
    let address = match text.strip_prefix("*:") {
        Some(text) => port(text).map(|port| (Ipv4Addr::UNSPECIFIED, port).into()),
        None => port(text).map(|port| (Ipv4Addr::LOCALHOST, port).into()),
    };
    let address = address.or_else(|| text.parse().ok());
    address.ok_or_else(|| format!("'{text:.60}': {right}"))
}

/// Reads a file's text: TRex's form is a list, ours is a map.
///
/// # Errors
///
/// Everything that is wrong with it, in the order of the text.
pub fn load(text: &str, around: &Surroundings) -> Result<Loaded, Findings> {
    let mut findings = Findings::default();
    let (form, settings) = match yaml::parse(text) {
        Err(flaw) => {
            findings.problems.push(flaw.into());
            return Err(findings);
        }
        Ok(root) => match root.value {
            Value::List(_) => (Form::Trex, trex::read(&root, around, &mut findings)),
            _ => (Form::Allosaur, ours::read(&root, around, &mut findings)),
        },
    };
    findings.problems.sort_by_key(|problem| problem.place);
    findings.warnings.sort_by_key(|warning| warning.place);
    if !findings.problems.is_empty() {
        return Err(findings);
    }
    Ok(Loaded {
        settings,
        form,
        warnings: findings.warnings,
        ports: findings.ports,
    })
}

/// Checks what holds for all ports together.
fn check_ports(ports: &[PortSettings]) -> Result<(), PortError> {
    let names = ports.iter().map(|port| port.description.to_string());
    parse_ports(&names.collect::<Vec<_>>().join(",")).map(|_| ())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_is_known_by_its_shape() {
        let around = Surroundings::default();
        let form = |text| load(text, &around).map(|loaded| loaded.form);
        assert_eq!(form("cores: 2"), Ok(Form::Allosaur));
        let trex = "- version: 2\n  interfaces: [memory, memory]\n";
        assert_eq!(form(trex), Ok(Form::Trex));
    }

    #[test]
    fn http_is_answered_on_loopback_unless_an_address_is_given() {
        for (text, address) in [
            ("4502", "127.0.0.1:4502"),
            ("0", "127.0.0.1:0"),
            ("*:4502", "0.0.0.0:4502"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("[::1]:4502", "[::1]:4502"),
        ] {
            let read = http_address(text).map(|address| address.to_string());
            assert_eq!(read.as_deref(), Ok(address));
        }
        for text in [
            "",
            "x",
            "65536",
            "-1",
            "*",
            "*:x",
            "127.0.0.1",
            "localhost:80",
            "::1:80",
        ] {
            let problem = http_address(text).expect_err(text);
            assert!(problem.contains("such as 4502"), "{problem}");
        }
    }

    #[test]
    fn two_tags_do_not_go_with_flows_that_an_option_asks_for() {
        let around = Surroundings::default();
        let tags = |tags: &str| format!("ports: [{{port: memory, vlan: {tags}}}, memory]");
        let load = |text: &str| load(text, &around).expect("it is right by itself").settings;
        for (vlan, is_stateful, is_wrong) in [
            ("[1, 2]", true, true),
            ("[1, 2]", false, false),
            ("1", true, false),
        ] {
            let mut settings = load(&tags(vlan));
            settings.modes = match is_stateful {
                true => Modes::Stateful,
                false => Modes::Both,
            };
            let problem = settings.problem().unwrap_or_default();
            assert_eq!(
                problem.starts_with("port 0: vlan: 2 tags"),
                is_wrong,
                "{problem}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = load(&text, &Surroundings::default());
        }

        #[test]
        fn no_likely_text_makes_it_panic(
            words in proptest::collection::vec(
                prop::sample::select(vec![
                    "- ", "\n", "\n  ", "\n    ", "version: 2", "interfaces: ", "ports: ", "port: ",
                    "memory", "[", "]", ", ", "cores: ", "3", "port_info: ", "ip: ", "10.0.0.1",
                    "platform:", "dual_if:", "threads: ", "c: ", "port_limit: ", "dummy", "vlan: ",
                    "dest_mac: ", "-1", "0", "low_end: ", "true", "~", "03:00.0",
                ]),
                0..30,
            )
        ) {
            let around = Surroundings { cpus: vec![0, 1], cores_per_pair: Some(3), ports_max: Some(1) };
            let _ = load(&words.concat(), &around);
        }
    }
}
