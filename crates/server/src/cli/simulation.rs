//! The options of `sim-stateful`, and the plan that they make.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use allosaur_engine::time::{Nanos, SECOND};
use clap::Args;

use crate::sim::CORES_MAX;
use crate::sim::stateful::{FaultShare, LinkSettings, MTU_MAX, MTU_MIN, Plan, SimSettings};

/// Flows at the same time, of each core and side.
const FLOWS_MAX: usize = 1 << 22;

/// Options of `sim-stateful`.
#[derive(Clone, Debug, Args)]
pub struct SimStatefulOptions {
    /// The profile, as JSON
    #[arg(long)]
    pub profile: PathBuf,
    /// Run all flows for this long, in seconds, instead of one of each template
    #[arg(long, value_parser = seconds)]
    pub duration: Option<f64>,
    /// What rates are multiplied by
    #[arg(long, default_value_t = 1.0, value_parser = factor)]
    pub multiplier: f64,
    /// Flows of each template at most [default: 1 without a duration, else as the profile says]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub flows: Option<u32>,
    /// How long flows may take after the last began, in seconds
    #[arg(long, default_value_t = 600.0, value_parser = seconds)]
    pub patience: f64,
    /// All flows in IPv6
    #[arg(long)]
    pub ipv6: bool,
    /// Where all that is random begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Data cores of each side
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=CORES_MAX as i64))]
    pub cores: u32,
    /// The longest IP packet that the ports take, in bytes
    #[arg(long, default_value_t = MTU_MAX, value_parser = clap::value_parser!(u16).range(i64::from(MTU_MIN)..=i64::from(MTU_MAX)))]
    pub mtu: u16,
    /// How long a frame and its answer are under way, in seconds
    #[arg(long, default_value_t = 0.001, value_parser = round_trip)]
    pub rtt: f64,
    /// Bits per second of the link [default: no limit]
    #[arg(long, value_parser = rate)]
    pub rate: Option<f64>,
    /// Bytes that may wait for the link [default: no limit]
    #[arg(long, requires = "rate")]
    pub queue: Option<u64>,
    /// Share of frames that are lost, from 0 to 1
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    pub loss: f64,
    /// Share of frames that others overtake
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    pub reorder: f64,
    /// Share of frames that arrive twice
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    pub duplicate: f64,
    /// What a device on the way does, such as syn-lost or reset-middle:0.1 for a share of flows
    #[arg(long, value_name = "NAME[:SHARE]")]
    pub fault: Vec<FaultShare>,
    /// Write what the clients' port sends and receives to this pcap file
    #[arg(long)]
    pub client_pcap: Option<PathBuf>,
    /// The same for the servers' port
    #[arg(long)]
    pub server_pcap: Option<PathBuf>,
}

impl SimStatefulOptions {
    /// What shall happen.
    pub fn plan(&self) -> Plan {
        let basic = if self.duration.is_none() {
            Some(1)
        } else {
            None
        };
        Plan {
            factor: self.multiplier,
            duration: self.duration.map(nanos),
            flows: self.flows.or(basic),
            patience: nanos(self.patience),
            ipv6: self.ipv6,
            settings: SimSettings {
                seed: self.seed,
                unix_time: unix_time(),
                cores: self.cores,
                flows_max: FLOWS_MAX,
                mtu: self.mtu,
                room: usize::MAX,
                link: LinkSettings {
                    round_trip: nanos(self.rtt),
                    rate_bps: self.rate,
                    queue_bytes: self.queue,
                    loss: self.loss,
                    reorder: self.reorder,
                    duplicate: self.duplicate,
                },
                faults: self.fault.clone(),
            },
        }
    }
}

/// The time since 1970: certificates of users are judged by it.
fn unix_time() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as Nanos)
}

fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}

fn within(text: &str, least: f64, most: f64, what: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("'{text}': give {what} of {least} to {most}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 1e-6, 1e7, "seconds")
}

fn round_trip(text: &str) -> Result<f64, String> {
    within(text, 0.0, 100.0, "seconds")
}

fn factor(text: &str) -> Result<f64, String> {
    within(text, 1e-9, 1e9, "a factor")
}

fn share(text: &str) -> Result<f64, String> {
    within(text, 0.0, 1.0, "a share")
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 1e3, 1e12, "bits per second")
}
