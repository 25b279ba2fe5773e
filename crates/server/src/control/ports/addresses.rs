//! Commands that change the addresses of a port, and the gateways that ports find by themselves.

use allosaur_api::commands::layers::{ConfigureIpv6, SetL2, SetL3, SetVlan};
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::time::Nanos;

use crate::control::config::mac_text;
use crate::control::ports::layers::{Ipv4Layer, Layers, answers_echo, link_local};
use crate::control::ports::layers_changed;
use crate::control::ports::port::{Port, State};
use crate::control::{Control, Reply, StartAddresses, reply};
use crate::rx_taps::{HostRequest, PortAnswer, PortRequest};

/// What changes addresses when a gateway has answered.
const RESOLVE: &str = "resolve";

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
    pub(in crate::control) fn ask_for_gateways(&mut self) {
        for id in 0..self.ports.len() as u8 {
            let port = &mut self.ports[usize::from(id)];
            if port.asks_for_gateway || port.layers.sought_gateway().is_none() {
                continue;
            }
            port.asks_for_gateway = true;
            // Nobody waits for what stands for a reply here.
            let _ = self.ask(PortRequest::State(id), move |control, answer, view| {
                control.ports[usize::from(id)].asks_for_gateway = false;
                if let Some(PortAnswer::State(state)) = answer {
                    control.note_gateway(id, state.gateway_mac, view.now_ns);
                }
                reply(&())
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

    pub(in crate::control) fn set_l2(&mut self, fields: &Fields<'_>) -> Reply {
        let params: SetL2 = fields.read()?;
        self.set_layers(params.port, "set_l2", |layers, _| {
            layers.destination_mac = params.destination_mac;
            layers.ipv4 = None;
        })
    }

    pub(in crate::control) fn set_l3(&mut self, fields: &Fields<'_>) -> Reply {
        let params: SetL3 = fields.read()?;
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

    pub(in crate::control) fn configure_ipv6(&mut self, fields: &Fields<'_>) -> Reply {
        let params: ConfigureIpv6 = fields.read()?;
        self.set_layers(params.port, "conf_ipv6", |layers, mac| {
            let address = params.source.unwrap_or_else(|| link_local(mac));
            layers.ipv6 = params.enabled.then_some(address);
        })
    }

    pub(in crate::control) fn set_vlan(&mut self, fields: &Fields<'_>) -> Reply {
        let params = SetVlan::parse(fields)?;
        if self.port(params.port)?.is_stateful() && params.tags.len() > 1 {
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
        let port = self.quiet_port(id, command)?;
        let is_stateful = port.is_stateful();
        let mut layers = port.layers.clone();
        change(&mut layers, port.config.hw_mac);
        let settings = layers.host(port.config.hw_mac, answers_echo(is_stateful, port.service));
        port.layers = layers;
        self.tell(HostRequest::Set { port: id, settings });
        self.relay_link(id);
        reply(&Empty {})
    }

    /// A port whose addresses may change now.
    fn quiet_port(&mut self, id: u8, command: &str) -> Result<&mut Port, Error> {
        // Flows that have begun keep their gateway.
        let has_flows = command != RESOLVE && self.flow_state_of(self.port(id)?).is_some();
        let port = self.port_mut(id)?;
        if has_flows || port.state() > State::Streams {
            return Err(Error::execution(format!(
                "{command} cannot be executed while port {id} transmits: stop its traffic first"
            )));
        }
        Ok(port)
    }
}
