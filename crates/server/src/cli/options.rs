//! The command line of the server binary.

use std::net::SocketAddr;
use std::path::PathBuf;

use allosaur_port::description::{PORTS_MAX, PortDescription, parse_ports};
use clap::{Args, Parser, Subcommand};

use super::simulate_emulation::SimEmulationOptions;
use super::simulation::SimStatefulOptions;
use crate::bench::Case;
use crate::config::groups::Group;
use crate::config::polling::Poll;
use crate::config::{
    BIRD_PORT, EMU_PORT, EMU_ZMQ_PORT, EmuZmq, PortSettings, RECEIVE_THREADS_MAX, Settings, Stack,
    Surroundings, http_address, names,
};
use crate::control::worker_command::Modes;
use crate::sim::CORES_MAX;

/// Allosaur, an open, realistic traffic generator.
#[derive(Debug, Parser)]
#[command(name = "allosaur-server", version, arg_required_else_help = true)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Subcommands,
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum Subcommands {
    /// Serve the RPC and send traffic.
    Serve(ServeOptions),
    /// Write a configuration file, or check one.
    Config(ConfigOptions),
    /// List what this machine has for ports, or print how to prepare one.
    Ports(PortsOptions),
    /// Write what a list of RPC requests would send to a capture file, in virtual time.
    Sim(SimOptions),
    /// Run a stateful profile between clients and servers in virtual time; prints JSON.
    SimStateful(Box<SimStatefulOptions>),
    /// Run emulated clients in virtual time, by lines of requests on the standard input.
    SimEmulation(SimEmulationOptions),
    /// Measure one data core, on in-memory ports unless others are named; prints JSON.
    Bench(BenchOptions),
}

/// Options of `serve`. What is not given is as in the file, or else as usual.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeOptions {
    /// File with the settings, in our form or TRex's; options go before what it says
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// The ports, such as memory,memory or memory:delay=1ms,memory or eth0,eth1
    /// [default: memory,memory]
    #[arg(long, value_parser = port_list, conflicts_with = "config")]
    pub ports: Option<PortList>,
    /// Threads that send [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=CORES_MAX as i64))]
    pub cores: Option<u16>,
    /// Threads that send, for each two ports
    #[arg(long, conflicts_with = "cores", value_parser = clap::value_parser!(u16).range(1..=CORES_MAX as i64))]
    pub cores_per_pair: Option<u16>,
    /// Bind each thread that sends to a CPU of its own, near its ports, where the file names none
    #[arg(long)]
    pub pin: bool,
    /// Threads that receive [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=RECEIVE_THREADS_MAX as i64))]
    pub receive_threads: Option<u16>,
    /// Use the first ports of the file only, so many
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=PORTS_MAX as i64))]
    pub ports_max: Option<u16>,
    /// Stateful mode only: TCP and UDP flows on a stack of the server's own, with streams beside
    /// [default: each port is in the mode of who acquires it]
    #[arg(long, visible_alias = "astf", conflicts_with = "stateless")]
    pub stateful: bool,
    /// Stateless mode only: streams
    #[arg(long)]
    pub stateless: bool,
    /// TCP port of requests; 0 picks a free one [default: 4501]
    #[arg(long)]
    pub rpc_port: Option<u16>,
    /// TCP port of events; 0 picks a free one [default: one below that of requests]
    #[arg(long)]
    pub pub_port: Option<u16>,
    /// Address, name or interface to listen on, or * for all. Beyond this machine it needs
    /// --rpc-auth, or --open [default: 127.0.0.1]
    #[arg(long)]
    pub listen: Option<String>,
    /// File of lines NAME:TOKEN; who connects from beyond loopback must have one. The server then
    /// listens on 127.0.0.1 too, where nobody is asked
    #[arg(long, value_name = "FILE")]
    pub rpc_auth: Option<PathBuf>,
    /// Everyone who can reach the address of --listen may use the server, without a token
    #[arg(long)]
    pub open: bool,
    /// Emulated clients: hosts that speak ARP, DHCP, IPv6 and more on the ports, which requests on
    /// --emu-port set up [default: none]
    #[arg(long)]
    pub emu: bool,
    /// TCP port of requests to emulated clients, which there are then; 0 picks a free one
    /// [default with --emu: 4510]
    #[arg(long, value_name = "PORT")]
    pub emu_port: Option<u16>,
    /// Emulated clients may write files, send by sockets of the server and post to web servers:
    /// whoever can reach --emu-port names the files
    #[arg(long)]
    pub emu_exports: bool,
    /// The routing daemon BIRD in a network namespace, for nodes that announce routes to the device under
    /// test; requests on --bird-port configure it [default: none]
    #[arg(long)]
    pub bird_server: bool,
    /// TCP port of requests to BIRD, which there is then; 0 picks a free one
    /// [default with --bird-server: 4509]
    #[arg(long, value_name = "PORT")]
    pub bird_port: Option<u16>,
    /// Who answers for the addresses of ports: legacy is the server itself, linux_based the kernel, in a
    /// network namespace for each port [default: legacy]
    #[arg(long, value_name = "legacy|linux_based")]
    pub stack: Option<Stack>,
    /// Let an emulation server of another process, such as TRex's, have hosts on the ports: by the
    /// files /tmp/emu-4511.ipc and /tmp/emu-4512.ipc, or with `tcp` by the TCP ports 4511 and 4512
    #[arg(long, value_name = "ipc|tcp", num_args = 0..=1, default_missing_value = "ipc", value_parser = ["ipc", "tcp"])]
    pub emu_zmq: Option<String>,
    /// The first number of the two of --emu-zmq [default: 4511]
    #[arg(long, value_name = "PORT", requires = "emu_zmq", value_parser = clap::value_parser!(u16).range(1..65535))]
    pub emu_zmq_port: Option<u16>,
    /// Answer HTTP: /metrics for Prometheus and /healthz. A TCP port of loopback, or an address
    /// with one such as 192.0.2.1:4502 or *:4502; port 0 picks a free one [default: no HTTP]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = http_address)]
    pub http: Option<SocketAddr>,
    /// A name that HTTP is answered to, besides addresses, names without a dot and the machine's
    /// own; may be given several times
    #[arg(long, value_name = "NAME")]
    pub http_host: Vec<String>,
    /// Where capture files are that clients may have the server send, and where it may write key
    /// logs of TLS; / is all files [default: the folder that the server is started in]
    #[arg(long, value_name = "FOLDER")]
    pub captures_folder: Option<PathBuf>,
    /// How threads wait: busy (best timing, a core each) or adaptive (they sleep when idle)
    /// [default: busy for threads that send on CPUs of their own, else adaptive]
    #[arg(long)]
    pub poll: Option<Poll>,
    /// Take all frames on all ports from the start, until a client switches promiscuous mode off
    #[arg(long)]
    pub promiscuous: bool,
    /// Write a table of counters to the standard output every second
    #[arg(long)]
    pub table: bool,
}

impl ServeOptions {
    /// What must be known to read the file.
    pub fn surroundings(&self, cpus: Vec<usize>) -> Surroundings {
        Surroundings {
            cpus,
            cores_per_pair: self.cores_per_pair,
            ports_max: self.ports_max.map(usize::from),
        }
    }

    /// What the server shall be, with a file's settings or the usual ones.
    pub fn settings(&self, file: Option<Settings>) -> Settings {
        let mut settings = file.unwrap_or_default();
        if let Some(PortList(ports)) = &self.ports {
            settings.ports = ports.iter().cloned().map(PortSettings::plain).collect();
            settings.groups = Group::of_all(ports.len(), 1);
        }
        if let Some(threads) = self.cores {
            settings.groups = Group::of_all(settings.ports.len(), threads);
        }
        // A file was read with it, for it may name CPUs.
        if let Some(threads) = self.cores_per_pair.filter(|_| self.config.is_none()) {
            settings.groups = Group::of_pairs(settings.ports.len(), threads);
        }
        if let Some(threads) = self.receive_threads {
            settings.receive_threads = threads;
            // Their CPUs are named one by one.
            if settings.cpus.receive.len() != usize::from(threads) {
                settings.cpus.receive.clear();
            }
        }
        settings.pin |= self.pin;
        if self.stateful {
            settings.modes = Modes::Stateful;
        }
        if self.stateless {
            settings.modes = Modes::Stateless;
        }
        if let Some(listen) = &self.listen {
            settings.listen.clone_from(listen);
        }
        if let Some(file) = &self.rpc_auth {
            settings.rpc_auth = Some(file.clone());
        }
        settings.open |= self.open;
        settings.http_hosts.extend(self.http_host.iter().cloned());
        if let Some(folder) = &self.captures_folder {
            settings.captures_folder = Some(folder.clone());
        }
        settings.rpc_port = self.rpc_port.unwrap_or(settings.rpc_port);
        settings.pub_port = self.pub_port.or(settings.pub_port);
        let emu_port = settings.emu_port.or(self.emu.then_some(EMU_PORT));
        settings.emu_port = self.emu_port.or(emu_port);
        let bird_port = settings.bird_port.or(self.bird_server.then_some(BIRD_PORT));
        settings.bird_port = self.bird_port.or(bird_port);
        settings.stack = self.stack.unwrap_or(settings.stack);
        settings.emu_exports |= self.emu_exports;
        settings.emu_zmq = self.emu_zmq.as_ref().map(|kind| EmuZmq {
            tcp: kind == "tcp",
            port: self.emu_zmq_port.unwrap_or(EMU_ZMQ_PORT),
        });
        settings.http = self.http.or(settings.http);
        settings.poll = self.poll.or(settings.poll);
        settings.promiscuous = self.promiscuous;
        settings.table = self.table;
        settings
    }
}

/// Options of `config`.
#[derive(Debug, Args)]
pub struct ConfigOptions {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// What can be done with configuration files.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a first file for this machine.
    Init {
        /// The file to write; - is the standard output
        #[arg(default_value = "allosaur.yaml")]
        file: PathBuf,
        /// Write over a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Say whether a file is right, in our form or TRex's.
    Check {
        /// The file to read
        file: PathBuf,
        /// Print what was found as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Options of `ports`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PortsOptions {
    /// What to do; without it, all that there is is listed.
    #[command(subcommand)]
    pub command: Option<PortsCommand>,
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

/// What can be done with what a machine has.
#[derive(Debug, Subcommand)]
pub enum PortsCommand {
    /// Print the commands that prepare one, and run none of them.
    Prepare {
        /// A PCI address, for DPDK, or an interface
        target: String,
        /// The driver that hands the device to DPDK; with it an interface means its device
        #[arg(long)]
        driver: Option<String>,
        /// Also for an interface with the machine's default route
        #[arg(long)]
        anyway: bool,
    },
}

/// The ports of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct PortList(pub Vec<PortDescription>);

fn port_list(text: &str) -> Result<PortList, String> {
    for name in text.split(',') {
        names::check_exists(name.trim())?;
    }
    parse_ports(text)
        .map(PortList)
        .map_err(|error| error.to_string())
}

/// Options of `sim`.
#[derive(Clone, Debug, Args)]
pub struct SimOptions {
    /// JSON file with the requests
    #[arg(long)]
    pub commands: PathBuf,
    /// The pcap file to write
    #[arg(short, long)]
    pub output: PathBuf,
    /// Packets to write at most [default: the file's pkt_limit, or 5000]
    #[arg(long)]
    pub limit: Option<u64>,
    /// Data cores to share the work among [default: the file's dp_cores, or 1]
    #[arg(long)]
    pub cores: Option<usize>,
    /// Print what came of it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchOptions {
    /// What to send
    #[arg(long, required_unless_present_any = ["response", "flows"])]
    pub case: Option<Case>,
    /// Instead, TCP connections: a client asks 100 bytes, a server on the same core answers so many
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["case", "receive", "ports"], value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub response: Option<u64>,
    /// With `--response`: connections that are asked for, per second
    #[arg(
        long,
        value_name = "CPS",
        requires = "response",
        default_value_t = 100_000.0
    )]
    pub rate: f64,
    /// Instead, TCP connections that are open and do nothing: so many ends, both on one core
    #[arg(long, value_name = "ENDS", conflicts_with_all = ["case", "response", "receive", "ports"], value_parser = clap::value_parser!(u64).range(2..=1 << 24))]
    pub flows: Option<u64>,
    /// With `--flows`: each end asks for the other after five seconds of silence
    #[arg(long, requires = "flows")]
    pub keepalive: bool,
    /// Receive on a second port with a second thread
    #[arg(long, action = clap::ArgAction::Set, value_parser = on_or_off, default_value = "off")]
    pub receive: bool,
    /// Send on all of these ports at once, instead of one in memory; nobody receives
    #[arg(long, value_parser = port_list, conflicts_with = "receive")]
    pub ports: Option<PortList>,
    /// How long to measure
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("'{text}': write on or off")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let in_range = |seconds: &f64| (0.01..=3600.0).contains(seconds);
    let seconds = text.parse().ok().filter(in_range);
    seconds.ok_or_else(|| format!("'{text}': give 0.01 to 3600 seconds"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::refusal::one_line;
    use super::*;

    fn parse(line: &str) -> Result<CommandLine, clap::Error> {
        CommandLine::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_options_are_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_server_listens_on_loopback_unless_told_otherwise() {
        let parsed = parse("allosaur-server serve").expect("right");
        let Subcommands::Serve(options) = parsed.command else {
            panic!("not serve: {parsed:?}");
        };
        let settings = options.settings(None);
        assert_eq!(settings.listen, "127.0.0.1");
        assert_eq!(
            (settings.rpc_port, settings.events_port(), settings.cores()),
            (4501, 4500, 1)
        );
        assert_eq!(settings.ports.len(), 2);
    }

    #[test]
    fn the_port_of_events_follows_that_of_requests() {
        let port = |line: &str, file: Option<Settings>| match parse(line).expect("right").command {
            Subcommands::Serve(options) => options.settings(file).events_port(),
            other => panic!("not serve: {other:?}"),
        };
        let line = "allosaur-server serve --rpc-port 4600";
        assert_eq!(port(line, None), 4599);
        assert_eq!(port(&format!("{line} --pub-port 4700"), None), 4700);
        assert_eq!(port("allosaur-server serve --rpc-port 0", None), 0);
        let file = Settings {
            pub_port: Some(4400),
            ..Settings::default()
        };
        assert_eq!(port(line, Some(file)), 4400, "the file says so");
    }

    #[test]
    fn emulated_clients_are_there_when_they_are_asked_for() {
        let port = |line: &str, file: Option<u16>| {
            let file = Settings {
                emu_port: file,
                ..Settings::default()
            };
            match parse(line).expect("right").command {
                Subcommands::Serve(options) => options.settings(Some(file)).emu_port,
                other => panic!("not serve: {other:?}"),
            }
        };
        let line = "allosaur-server serve";
        assert_eq!(port(line, None), None);
        assert_eq!(port(line, Some(7)), Some(7));
        assert_eq!(port(&format!("{line} --emu"), None), Some(EMU_PORT));
        assert_eq!(port(&format!("{line} --emu"), Some(7)), Some(7));
        assert_eq!(port(&format!("{line} --emu-port 0"), Some(7)), Some(0));
    }

    #[test]
    fn a_server_has_flows_when_it_is_told_so_by_either_name() {
        let is_stateful = |line: &str| match parse(line).expect("right").command {
            Subcommands::Serve(options) => options.settings(None).modes == Modes::Stateful,
            other => panic!("not serve: {other:?}"),
        };
        assert!(!is_stateful("allosaur-server serve"));
        assert!(is_stateful("allosaur-server serve --stateful"));
        assert!(is_stateful("allosaur-server serve --astf"));
    }

    #[test]
    fn threads_are_for_all_ports_or_for_each_pair() {
        let groups = |line: &str| {
            let parsed =
                parse(format!("allosaur-server serve --ports dummy,dummy,dummy {line}").trim());
            let Subcommands::Serve(options) = parsed.expect("right").command else {
                panic!("not serve: {line}");
            };
            let settings = options.settings(None);
            let groups = settings.groups.iter();
            groups
                .map(|group| (group.ports.clone(), group.threads))
                .collect::<Vec<_>>()
        };
        assert_eq!(groups(""), [(vec![0, 1, 2], 1)]);
        assert_eq!(groups("--cores 3"), [(vec![0, 1, 2], 3)]);
        assert_eq!(
            groups("--cores-per-pair 3"),
            [(vec![0, 1], 3), (vec![2], 3)]
        );
    }

    #[test]
    fn errors_name_the_option_and_the_remedy() {
        for (line, words) in [
            ("serve --ports af_xdp:eth0:queues=0", ["--ports", "queues"]),
            (
                "serv",
                ["there is no command 'serv'", "did you mean serve?"],
            ),
            (
                "serve --port memory",
                ["there is no option --port", "did you mean --ports?"],
            ),
            (
                "sim --limit 3",
                ["--commands and --output are missing", "sim --help"],
            ),
            ("serve --cores", ["--cores", "a value is missing"]),
            ("serve now", ["'now'", "serve --help"]),
            ("serve --http x", ["--http", "such as 4502"]),
            ("serve --ports x/y", ["--ports", "The kinds are: memory"]),
            ("serve --ports memory --config f", ["--ports", "--config"]),
            ("serve --ports-max 33", ["--ports-max", "1..=32"]),
            (
                "config check",
                [
                    "FILE is missing",
                    "(see allosaur-server config check --help)",
                ],
            ),
            ("serve --ports memory:loss=200%,memory", ["--ports", "loss"]),
            ("serve --cores 0", ["--cores", "1..=64"]),
            (
                "serve --receive-threads 17",
                ["--receive-threads", "1..=16"],
            ),
            ("serve --rpc-port 70000", ["--rpc-port", "65535"]),
            ("serve --poll often", ["--poll", "busy or adaptive"]),
            (
                "bench --case constant --receive maybe",
                ["--receive", "on or off"],
            ),
            (
                "bench --case constant --seconds 0",
                ["--seconds", "0.01 to 3600"],
            ),
        ] {
            let error = parse(&format!("allosaur-server {line}")).expect_err(line);
            let error = one_line(&error);
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{line}: {error}"
            );
            assert!(!error.contains('\n'), "{line}: {error}");
        }
    }
}
