//! Echo streams beside flows: who may start them, between which addresses, and what is told of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use allosaur_api::commands::stateful::latency::{
    ECHO_PPS_MAX, EchoCounts, EchoLatencies, EchoLatency, EchoLatencyData, EchoTimes,
    HistogramBucket, LatencyStopped, StartLatency, UpdateLatency,
};
use allosaur_api::commands::stateful::runs::StartProfile;
use allosaur_api::{Error, Fields};
use allosaur_engine::echo::{EchoPort, EchoReadout, EchoRole, EchoTerms};
use allosaur_engine::latency::meter::bucket_usec;
use allosaur_engine::template::{CompiledProfile, Side};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::MacAddress;

use super::echo::Running;
use super::links::DUMMY;
use super::state::Stateful;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::port::Port;
use crate::control::percentiles::{hundredths_of_usec, shares};
use crate::control::reply::{Reply, reply};
use crate::counters::EchoBlock;
use crate::metrics::CatalogEcho;
use crate::rx_taps::{EchoAnswer, EchoRequest};

/// Between which addresses.
#[derive(Clone, Copy, Debug)]
struct Ends {
    client: IpAddr,
    server: IpAddr,
    /// What is added for each further pair of ports: to clients, to servers.
    offsets: (u32, u32),
}

impl Stateful {
    pub(super) fn start_latency(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = StartLatency::parse(fields)?;
        let ends = Ends {
            client: params.source,
            server: params.destination,
            offsets: (params.pair_offset, params.server_offset),
        };
        self.check_no_echo(view.now_ns)?;
        let ports = self.echo_ports(control, ends, params.ports, params.ports)?;
        if ports.is_empty() {
            return Err(Error::execution(format!(
                "field 'mask' is {:#x}, which has none of the ports {:?}: set the bit of each \
                 port that shall take part",
                params.ports,
                control.stateful_ports()
            )));
        }
        self.begin_echo(control, view, (params.rate_pps, None), ports, None);
        reply(&())
    }

    pub(super) fn stop_latency(&mut self, control: &mut Core) -> Reply {
        self.end_all_latency(control);
        reply(&LatencyStopped { stopped: true })
    }

    pub(super) fn end_all_latency(&mut self, control: &mut Core) {
        self.end_latency(control, |_| true);
    }

    /// Ends the streams that a session started without a profile.
    pub(in crate::control) fn stop_latency_of(&mut self, control: &mut Core, session: u32) {
        self.end_latency(control, |one| {
            one.profile.is_none() && one.session == Some(session)
        });
    }

    pub(super) fn update_latency(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = fields.read::<UpdateLatency>()?;
        if !self.echo.is_running(view.now_ns) {
            return Err(Error::execution(
                "latency is not measured: start_latency first, or start with latency_pps",
            ));
        }
        control.tell(EchoRequest::SetRate(params.rate_pps));
        reply(&())
    }

    pub(super) fn latency_stats(&mut self, control: &mut Core) -> Reply {
        self.awaited.ask(
            control,
            EchoRequest::Read,
            |stateful, control, _, answer, _| match answer {
                Some(EchoAnswer::Measured(ports)) => {
                    reply(&stateful.measured_latency(control, &ports))
                }
                _ => Err(Error::execution(
                    "the receive thread answered something else",
                )),
            },
        )
    }

    /// What the last echo streams measured, for those who read it beside.
    pub(in crate::control) fn catalog_echo(&self) -> Option<CatalogEcho> {
        self.echo.measured.clone()
    }

    fn measured_latency(&self, control: &Core, ports: &[EchoReadout]) -> EchoLatencies {
        let named = |port: &EchoReadout| (format!("port-{}", port.port), readout(port));
        EchoLatencies {
            name: "trex-latecny-v2",
            kind: 0,
            data: EchoLatencyData {
                cpu_util: control.rates.receive_percent(),
                epoch: self.echo.epoch,
                unknown: 0,
                ports: ports.iter().map(named).collect(),
            },
        }
    }

    /// Echo streams that run with a profile, between the first addresses of its pools; called
    /// before its flows begin. An error says what is wrong.
    pub(super) fn start_latency_with(
        &mut self,
        control: &mut Core,
        view: &View<'_>,
        params: &StartProfile,
        profile: &CompiledProfile,
    ) -> Result<(), String> {
        let rate_pps = f64::from(params.latency_pps);
        if params.latency_pps == 0 {
            return Ok(());
        }
        if rate_pps > ECHO_PPS_MAX {
            return Err(format!(
                "field 'latency_pps' is {rate_pps}; it is packets per second of each client port: \
                 give at most {ECHO_PPS_MAX}"
            ));
        }
        let text = |error: Error| error.specific.unwrap_or(error.message);
        self.check_no_echo(view.now_ns).map_err(text)?;
        if profile.templates()[0].client.hosts.is_some() {
            return Err(
                "field 'latency_pps': the clients of the first template are emulated, and latency is \
                 measured between addresses of ports: start_latency with such addresses, and start \
                 without latency_pps"
                    .to_owned(),
            );
        }
        let ends = Ends::of_profile(profile);
        let ports = self.echo_ports(control, ends, params.client_mask, u32::MAX);
        let ports = ports.map_err(text)?;
        let duration = params.duration_s.map(|s| (s * SECOND as f64) as Nanos);
        let owner = Some(params.profile.clone());
        self.begin_echo(control, view, (rate_pps, duration), ports, owner);
        Ok(())
    }

    /// A profile is over, or shall be: so are the streams that were started with it.
    pub(super) fn end_latency_with(&mut self, control: &mut Core, profile: &str) {
        self.end_latency(control, |running| {
            running.profile.as_deref() == Some(profile)
        });
    }

    fn end_latency(&mut self, control: &mut Core, is_meant: impl FnOnce(&Running) -> bool) {
        let running = self.echo.running.take_if(|running| is_meant(running));
        if running.is_some() {
            control.tell(EchoRequest::Stop);
        }
    }

    /// The ports that take part: even ones of `askers`, odd ones of `answerers`.
    fn echo_ports(
        &self,
        control: &Core,
        ends: Ends,
        askers: u32,
        answerers: u32,
    ) -> Result<Vec<EchoPort>, Error> {
        let mut chosen = Vec::new();
        for number in control.stateful_ports() {
            let port = &control.ports[usize::from(number)];
            let side = if number % 2 == 0 {
                Side::Client
            } else {
                Side::Server
            };
            let mask = match side {
                Side::Client => askers,
                Side::Server => answerers,
            };
            if mask >> number & 1 == 0 || port.config.driver == DUMMY {
                continue;
            }
            if port.layers.vxlan.is_some() {
                return Err(Error::execution(format!(
                    "port {number} has a tunnel, and latency is measured outside of tunnels: leave \
                     latency_pps out, or take the tunnel away (set_vxlan)"
                )));
            }
            let pair = control.pair_of(number);
            let (client, server) = ends.of_pair(pair).ok_or_else(|| beyond(ends, pair))?;
            let own = MacAddress(port.config.hw_mac);
            let (role, own_address, other_address) = match side {
                Side::Client => (asker(number, port)?, client, server),
                Side::Server => (EchoRole::Answers, server, client),
            };
            chosen.push(EchoPort {
                port: number,
                partner: number ^ 1,
                role,
                own_mac: own,
                vlans: port.layers.tags().to_vec(),
                own_address,
                other_address,
            });
        }
        Ok(chosen)
    }

    fn check_no_echo(&self, now_ns: Nanos) -> Result<(), Error> {
        if !self.echo.is_running(now_ns) {
            return Ok(());
        }
        let with = self.echo.running.as_ref();
        let with = with.and_then(|running| running.profile.as_deref());
        let with = with.map_or(String::new(), |name| format!(" with profile '{name:.64}'"));
        Err(Error::execution(format!(
            "latency is measured already{with}: stop_latency first, start with latency_pps 0, or \
             change the rate by update_latency"
        )))
    }

    fn begin_echo(
        &mut self,
        control: &mut Core,
        view: &View<'_>,
        (rate_pps, duration): (f64, Option<Nanos>),
        ports: Vec<EchoPort>,
        profile: Option<String>,
    ) {
        let epoch = self.echo.epoch.wrapping_add(1);
        let terms = EchoTerms {
            run: epoch,
            rate_pps,
            duration,
            ports,
        };
        let block = EchoBlock::new(terms.ports.iter().map(|port| port.port));
        let block = Arc::new(block);
        self.echo.measured = Some(CatalogEcho {
            profile: profile.clone().unwrap_or_default(),
            block: Arc::clone(&block),
        });
        self.echo.epoch = epoch;
        self.echo.running = Some(Running {
            profile,
            session: control.mode_owner.as_ref().map(|owner| owner.session),
            until: duration.map(|duration| view.now_ns.saturating_add(duration)),
        });
        control.tell(EchoRequest::Start { terms, block });
    }
}

impl Ends {
    /// The first addresses of the pools of the first template.
    fn of_profile(profile: &CompiledProfile) -> Ends {
        let client = &profile.templates()[0].client;
        let pools = (
            &profile.pools()[client.client_pool],
            &profile.pools()[client.server_pool],
        );
        let tunables = &client.tunables;
        let address = |first: u32, prefix: [u8; 12]| match tunables.ipv6 {
            false => IpAddr::V4(Ipv4Addr::from(first)),
            true => {
                let mut bytes = [0; 16];
                bytes[..12].copy_from_slice(&prefix);
                bytes[12..].copy_from_slice(&first.to_be_bytes());
                IpAddr::V6(Ipv6Addr::from(bytes))
            }
        };
        Ends {
            client: address(pools.0.first, tunables.prefixes.client),
            server: address(pools.1.first, tunables.prefixes.server),
            offsets: (pools.0.offset, pools.1.offset),
        }
    }

    /// Of a pair of ports; `None` beyond the last address.
    fn of_pair(&self, pair: u32) -> Option<(IpAddr, IpAddr)> {
        let client = moved(self.client, pair.checked_mul(self.offsets.0)?)?;
        let server = moved(self.server, pair.checked_mul(self.offsets.1)?)?;
        Some((client, server))
    }
}

/// An address so much later, in its last 32 bits.
fn moved(address: IpAddr, by: u32) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let moved = address.to_bits().checked_add(by)?;
            Some(IpAddr::V4(Ipv4Addr::from(moved)))
        }
        IpAddr::V6(address) => {
            let host = (address.to_bits() as u32).checked_add(by)?;
            let moved = address.to_bits() >> 32 << 32 | u128::from(host);
            Some(IpAddr::V6(Ipv6Addr::from(moved)))
        }
    }
}

fn asker(number: PortIndex, port: &Port) -> Result<EchoRole, Error> {
    if let Some(gateway) = port.layers.unresolved_gateway() {
        return Err(Error::execution(format!(
            "port {number}: the MAC address of {gateway} is not known yet: resolve it (set_l3 with \
             resolved_mac), or leave the port out of 'mask'"
        )));
    }
    Ok(EchoRole::Asks {
        peer_mac: MacAddress(port.layers.destination_mac()),
    })
}

fn beyond(ends: Ends, pair: u32) -> Error {
    let (client, server) = (
        Ipv4Addr::from(ends.offsets.0),
        Ipv4Addr::from(ends.offsets.1),
    );
    Error::execution(format!(
        "the addresses of pair {pair} of ports are beyond the last: {} is {pair} times {client} \
         before it, and {} {pair} times {server}; give lower addresses or smaller offsets \
         ('dual_port_addr', 'port_s_offset')",
        ends.client, ends.server
    ))
}

/// What a port measured, as the RPC has it.
fn readout(port: &EchoReadout) -> EchoLatency {
    let EchoReadout {
        latency, counters, ..
    } = port;
    let usec = |ns: Nanos| ns / MICROSECOND;
    let mean_ns = latency.sum_ns.checked_div(latency.packets).unwrap_or(0);
    let buckets = latency.histogram.iter().enumerate().skip(1);
    let buckets = buckets.filter(|(_, count)| **count > 0);
    let buckets = buckets.map(|(i, count)| HistogramBucket {
        key: bucket_usec(i),
        val: *count,
    });
    let [p50, p90, p99, p99_9] = shares(&port.times);
    EchoLatency {
        hist: EchoTimes {
            min_usec: usec(latency.min_ns),
            max_usec: usec(latency.max_ns),
            cnt: latency.packets,
            high_cnt: latency.packets - latency.histogram[0],
            s_avg: hundredths_of_usec(mean_ns),
            s_max: hundredths_of_usec(latency.last_max_ns),
            histogram: buckets.collect(),
            p50,
            p90,
            p99,
            p99_9,
        },
        // ARP and neighbor discovery are the ports', and only echo messages come here.
        stats: EchoCounts {
            m_tx_pkt_ok: counters.sent,
            m_tx_pkt_err: counters.not_sent,
            m_pkt_ok: counters.received,
            m_jitter: usec(latency.jitter_ns),
            m_seq_error: latency.sequence_too_high + latency.sequence_too_low,
            m_no_magic: counters.no_stamp,
            m_no_id: counters.foreign,
            m_length_error: counters.length,
            m_l3_cs_err: counters.network_checksum,
            m_l4_cs_err: counters.transport_checksum,
            dropped: latency.dropped,
            out_of_order: latency.out_of_order,
            duplicates: latency.duplicates,
            impossible_times: latency.impossible_times,
            ..EchoCounts::default()
        },
    }
}
