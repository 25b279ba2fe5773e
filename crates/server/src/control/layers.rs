//! The addresses of a port, and packets that a client pushes out of it.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_api::commands::layers::{
    ConfigureIpv6, PushPackets, PushedPacket, SetL2, SetL3, SetVlan,
};
use allosaur_api::{Error, Fields};
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_engine::host::HostSettings;
use allosaur_engine::stateless::Command;
use allosaur_engine::stream::{
    CoreShare, DestinationMac, Mode, Profile, Rate, StreamId, StreamPortInfo, StreamSpec,
};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use serde_json::{Value, json};

use super::config::mac_text;
use super::port::{Port, State};
use super::ports::layers_changed;
use super::stream::decode_packet;
use super::traffic::check_frames;
use super::{Action, Control, Reply, StartAddresses, View};
use crate::observe::{Answer, Request, ServiceMode};

/// What changes addresses when a gateway has answered.
const RESOLVE: &str = "resolve";

/// Who pushes packets that last no longer is answered when they have left: what watches them may be
/// stopped then. Other requests wait meanwhile.
const PUSH_WAIT_MAX: Nanos = 10 * MILLISECOND;

/// The addresses of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layers {
    destination_mac: [u8; 6],
    ipv4: Option<Ipv4Layer>,
    ipv6: Option<Ipv6Addr>,
    vlan: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ipv4Layer {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    resolved: bool,
    /// The port looks for its gateway by itself. Clients resolve the gateways that they set.
    seeking: bool,
}

impl Layers {
    /// Layer 2 mode, towards `destination_mac`.
    pub(super) fn new(destination_mac: [u8; 6]) -> Layers {
        Layers {
            destination_mac,
            ipv4: None,
            ipv6: None,
            vlan: Vec::new(),
        }
    }

    /// Where frames go, as far as it is known.
    pub(super) fn destination_mac(&self) -> [u8; 6] {
        self.destination_mac
    }

    /// The VLAN that its frames are in, the outer one of several.
    pub(super) fn outer_vlan(&self) -> Option<u16> {
        self.vlan.first().copied()
    }

    /// The VLAN tags of its frames, the outer first.
    pub(super) fn tags(&self) -> &[u16] {
        &self.vlan
    }

    /// The gateway whose MAC address is not known yet.
    pub(super) fn unresolved_gateway(&self) -> Option<Ipv4Addr> {
        self.ipv4
            .filter(|layer| !layer.resolved)
            .map(|layer| layer.destination)
    }

    /// The gateway whose MAC address the port looks for by itself.
    fn sought_gateway(&self) -> Option<Ipv4Addr> {
        let seeking = self.ipv4.filter(|layer| layer.seeking && !layer.resolved);
        seeking.map(|layer| layer.destination)
    }

    /// The port as a host on its network, which answers ping or not.
    pub(super) fn host(&self, mac: [u8; 6], answers_echo: bool) -> HostSettings {
        let link_local = link_local(mac);
        let mut ipv6: Vec<Ipv6Addr> = self.ipv6.into_iter().collect();
        if self.ipv6.is_some_and(|address| address != link_local) {
            ipv6.push(link_local);
        }
        HostSettings {
            mac,
            vlan: self.vlan.clone(),
            ipv4: self.ipv4.map(|layer| layer.source),
            gateway: self.sought_gateway(),
            ipv6,
            answers_echo,
        }
    }

    /// Whether it has an address for IPv4, which it announces.
    pub(super) fn has_ipv4(&self) -> bool {
        self.ipv4.is_some()
    }

    /// As `get_port_status` shows it.
    pub(super) fn layer_cfg(&self, source_mac: [u8; 6]) -> Value {
        let resolved = self.unresolved_gateway().is_none();
        let ipv4 = match self.ipv4 {
            None => json!({"state": "none"}),
            Some(Ipv4Layer {
                source,
                destination,
                ..
            }) => json!({
                "state": if resolved { "resolved" } else { "unresolved" },
                "src": source.to_string(), "dst": destination.to_string(),
            }),
        };
        let ipv6 = match self.ipv6 {
            None => json!({"enabled": false}),
            Some(source) => json!({"enabled": true, "src": source.to_string()}),
        };
        json!({
            "ether": {
                "src": mac_text(source_mac), "dst": mac_text(self.destination_mac),
                "state": if resolved { "configured" } else { "unconfigured" },
            },
            "ipv4": ipv4,
            "ipv6": ipv6,
        })
    }

    /// As `get_port_status` shows it.
    pub(super) fn vlan(&self) -> Value {
        json!({"tags": self.vlan})
    }
}

impl Control {
    /// Gives a port its addresses, and tells who answers for them; before the first request.
    pub fn set_start_addresses(&mut self, id: u8, addresses: &StartAddresses) -> Result<(), Error> {
        let set = self.set_layers(id, "start", |layers, _| {
            if let Some(mac) = addresses.destination_mac {
                layers.destination_mac = mac;
            }
            layers.vlan.clone_from(&addresses.vlan);
            layers.ipv4 = addresses.ipv4.map(|(source, destination)| Ipv4Layer {
                source,
                destination,
                resolved: addresses.destination_mac.is_some(),
                seeking: true,
            });
        });
        set.map(|_| ())
    }

    /// Asks which gateways have answered ports that look for theirs. What a port sends already keeps
    /// its destination.
    pub(super) fn ask_for_gateways(&mut self) {
        for id in 0..self.ports.len() as u8 {
            let port = &mut self.ports[usize::from(id)];
            if port.asks_for_gateway || port.layers.sought_gateway().is_none() {
                continue;
            }
            port.asks_for_gateway = true;
            // Nobody waits for what stands for a reply here.
            let _ = self.ask(Request::PortState(id), move |control, answer, view| {
                control.ports[usize::from(id)].asks_for_gateway = false;
                if let Answer::Port(state) = answer {
                    control.note_gateway(id, state.gateway_mac, view.now_ns);
                }
                Ok(Value::Null)
            });
        }
    }

    fn note_gateway(&mut self, id: u8, mac: Option<[u8; 6]>, now_ns: Nanos) {
        let layers = &self.ports[usize::from(id)].layers;
        let Some(mac) = mac.filter(|_| layers.sought_gateway().is_some()) else {
            return;
        };
        let noted = self.set_layers(id, RESOLVE, |layers, _| {
            layers.destination_mac = mac;
            if let Some(layer) = &mut layers.ipv4 {
                layer.resolved = true;
            }
        });
        match noted {
            Ok(_) => {
                tracing::info!(port = id, mac = mac_text(mac), "found the gateway");
                let event = layers_changed(id, &self.ports[usize::from(id)]);
                self.queue_event(event, now_ns);
            }
            // The port transmits: at a later tick.
            Err(error) => tracing::debug!(port = id, "{error}"),
        }
    }

    /// Lets users send no more than this on a port, at layer 1, also when they force it.
    pub fn limit_load(&mut self, id: u8, max_bps: f64) -> Result<(), Error> {
        self.port_mut(id)?.load_max_bps = Some(max_bps);
        Ok(())
    }

    pub(super) fn set_l2(&mut self, fields: &Fields<'_>) -> Reply {
        let params = SetL2::parse(fields)?;
        self.set_layers(params.port, "set_l2", |layers, _| {
            layers.destination_mac = params.destination_mac;
            layers.ipv4 = None;
        })
    }

    pub(super) fn set_l3(&mut self, fields: &Fields<'_>) -> Reply {
        let params = SetL3::parse(fields)?;
        self.set_layers(params.port, "set_l3", |layers, _| {
            if let Some(mac) = params.resolved_mac {
                layers.destination_mac = mac;
            }
            layers.ipv4 = Some(Ipv4Layer {
                source: params.source,
                destination: params.destination,
                resolved: params.resolved_mac.is_some(),
                seeking: false,
            });
        })
    }

    pub(super) fn configure_ipv6(&mut self, fields: &Fields<'_>) -> Reply {
        let params = ConfigureIpv6::parse(fields)?;
        self.set_layers(params.port, "conf_ipv6", |layers, mac| {
            let address = params.source.unwrap_or_else(|| link_local(mac));
            layers.ipv6 = params.enabled.then_some(address);
        })
    }

    pub(super) fn set_vlan(&mut self, fields: &Fields<'_>) -> Reply {
        let params = SetVlan::parse(fields)?;
        if self.config.stateful && params.tags.len() > 1 {
            return Err(Error::execution(format!(
                "'vlan' has {} tags, and stateful mode carries one: give one tag, or none",
                params.tags.len()
            )));
        }
        self.set_layers(params.port, "set_vlan", |layers, _| {
            layers.vlan = params.tags;
        })
    }

    /// Changes the addresses of a port that does not transmit, and tells who answers for them.
    fn set_layers(
        &mut self,
        id: u8,
        command: &str,
        change: impl FnOnce(&mut Layers, [u8; 6]),
    ) -> Reply {
        let is_stateful = self.config.stateful;
        let port = self.quiet_port(id, command)?;
        let mut layers = port.layers.clone();
        change(&mut layers, port.config.hw_mac);
        let settings = layers.host(port.config.hw_mac, answers_echo(is_stateful, port.service));
        port.layers = layers;
        self.tell(Request::SetHost { port: id, settings });
        self.relay_link(id);
        Ok(json!({}))
    }

    pub(super) fn push_packets(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = PushPackets::parse(fields)?;
        let port = self.port(params.port)?;
        let streams = pushed_streams(&params)?;
        check_frames(&port.config, &streams)?;
        let facts = StreamPortInfo {
            line_rate_bps: port.config.line_rate_bps,
            source_mac: port.config.hw_mac,
            destination_mac: port.layers.destination_mac(),
            data_cores: self.config.data_cores,
            checksums: port.config.checksums,
            // What is pushed leaves as it is.
            marking: None,
            vxlan: VxlanPorts::STANDARD,
        };
        let core = port.cores()?[0];
        let profile = Profile::compile(&streams, &facts);
        let profile = profile.map_err(|error| Error::execution(error.to_string()))?;
        let share = CoreShare {
            core,
            rank: 0,
            cores: 1,
        };
        let start_at = view.now_ns;
        let key = self.next_key();
        let gaps = streams.len().saturating_sub(1) as u64;
        if gaps * u64::from(params.gap_us) * MICROSECOND <= PUSH_WAIT_MAX {
            self.pendings.await_end(key);
        }
        let command = Command::StartProfile {
            port: params.port,
            profile: key,
            program: Box::new(profile.core_program(1.0, share)),
            start_at,
            duration: None,
        };
        self.actions.push_back(Action::Command { core, command });
        Ok(json!({"sent": streams.len(), "ts": start_at as f64 / 1e9}))
    }

    /// A port whose addresses may change now.
    fn quiet_port(&mut self, id: u8, command: &str) -> Result<&mut Port, Error> {
        // Flows that have begun keep their gateway.
        let has_flows = command != RESOLVE && self.flow_state().is_some();
        let port = self.port_mut(id)?;
        if has_flows || port.state() > State::Streams {
            return Err(Error::execution(format!(
                "{command} cannot be executed while port {id} transmits: stop its traffic first"
            )));
        }
        Ok(port)
    }
}

/// A chain of bursts of one packet.
fn pushed_streams(params: &PushPackets<'_>) -> Result<Vec<StreamSpec>, Error> {
    let count = params.packets.len() as StreamId;
    let numbered = (0..count).zip(&params.packets);
    let stream = |(id, packet): (StreamId, &PushedPacket<'_>)| {
        let bytes = decode_packet(packet.base64);
        let packet_bytes =
            bytes.map_err(|problem| Error::execution(format!("pkts[{id}]: {problem}")))?;
        Ok(StreamSpec {
            id,
            enabled: true,
            self_start: id == 0,
            start_paused: false,
            next: Some(id + 1).filter(|&next| next < count),
            action_count: 0,
            start_delay: if id == 0 {
                0
            } else {
                u64::from(params.gap_us) * MICROSECOND
            },
            mode: Mode::SingleBurst { packets: 1 },
            rate: Rate::PacketsPerSecond(1.0),
            packet: packet_bytes,
            keep_source_mac: !packet.port_source_mac,
            destination_mac: match packet.port_destination_mac {
                true => DestinationMac::Port,
                false => DestinationMac::Packet,
            },
            dummy: false,
            random_seed: 0,
            core: None,
            rule: None,
            program: Vec::new(),
        })
    };
    numbered.map(stream).collect()
}

/// Whether a port answers ping: with streams in service mode only, with flows always. So does TRex.
pub(super) fn answers_echo(is_stateful: bool, service: ServiceMode) -> bool {
    is_stateful || service.is_on()
}

/// The link-local address of a MAC address (RFC 4291, appendix A).
fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let tail = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    let word = |i: usize| u16::from_be_bytes([tail[i], tail[i + 1]]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, word(0), word(2), word(4), word(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_local_address_is_that_of_rfc_4291() {
        let address = link_local([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(address.to_string(), "fe80::3656:78ff:fe9a:bcde");
    }
}
