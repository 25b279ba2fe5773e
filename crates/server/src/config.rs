//! The command line of the server binary.
//!
//! What lives here: options, their limits and defaults. What does not: what is done with them.

use std::path::PathBuf;

use allosaur_port::PortError;
use allosaur_port::description::{PortDescription, parse_ports};
use clap::{Args, Parser, Subcommand};

use crate::bench::Case;
use crate::polling::Poll;
use crate::sim::CORES_MAX;

/// Allosaur: a realistic traffic generator.
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
    /// Write what a list of RPC requests would send to a capture file, in virtual time.
    Sim(SimOptions),
    /// Measure one data core on in-memory ports; prints JSON.
    Bench(BenchOptions),
}

/// Options of `serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// The ports, such as memory,memory or memory:delay=1ms,memory or eth0,eth1
    #[arg(long, default_value = "memory,memory", value_parser = port_list)]
    pub ports: PortList,
    /// Threads that send
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=CORES_MAX as i64))]
    pub cores: u16,
    /// TCP port of requests; 0 picks a free one
    #[arg(long, default_value_t = 4501)]
    pub rpc_port: u16,
    /// TCP port of events; 0 picks a free one
    #[arg(long, default_value_t = 4500)]
    pub pub_port: u16,
    /// Address to listen on. The RPC has no password: everyone who can reach it may use it
    #[arg(long, default_value = "127.0.0.1")]
    pub listen: String,
    /// How threads wait: busy (best timing, a core each) or adaptive (they sleep when idle)
    #[arg(long, default_value = "adaptive")]
    pub poll: Poll,
}

/// The ports of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct PortList(pub Vec<PortDescription>);

fn port_list(text: &str) -> Result<PortList, PortError> {
    parse_ports(text).map(PortList)
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
    #[arg(long)]
    pub case: Case,
    /// Receive on a second port with a second thread
    #[arg(long, action = clap::ArgAction::Set, value_parser = on_or_off, default_value = "off")]
    pub receive: bool,
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
        assert_eq!(options.listen, "127.0.0.1");
        assert_eq!(
            (options.rpc_port, options.pub_port, options.cores),
            (4501, 4500, 1)
        );
        assert_eq!(options.ports.0.len(), 2);
    }

    #[test]
    fn errors_name_the_option_and_the_remedy() {
        for (line, words) in [
            (
                "serve --ports pci:03:00.0",
                ["--ports", "The kinds are: memory"],
            ),
            ("serve --ports memory:loss=200%,memory", ["--ports", "loss"]),
            ("serve --cores 0", ["--cores", "1..=64"]),
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
            let error = parse(&format!("allosaur-server {line}"))
                .expect_err(line)
                .to_string();
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{line}: {error}"
            );
        }
    }
}
