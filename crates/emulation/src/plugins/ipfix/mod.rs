//! IPFIX (RFC 7011) and NetFlow 9 (RFC 3954): clients that export records which generators make up, by their own stack,
//! by sockets of the server, or into files; and devices that a namespace makes by itself.

mod counters;
mod duration;
mod exporter;
mod folder;
mod generator;
mod init;
mod link;
mod record;
mod requests;
#[cfg(test)]
mod tests;
mod trigger;

use std::net::Ipv4Addr;

use allosaur_api::{Access, Command, Empty, Error, Example};
use allosaur_packet::MacAddress;
use serde_json::Value;

use self::exporter::FlowExporter;
use self::init::Identity;
use self::requests::{ExporterInfo, GeneratorInfos, GeneratorNames, SetGenerator, SetState};
use self::trigger::{STEP, Trigger};
use crate::client::{Client, ClientId, ClientMap};
use crate::counters as tables;
use crate::counters::{CounterParams, CounterReport, Counters};
use crate::namespace::Namespace;
use crate::params::{Params, mismatch};
use crate::plugin::{Context, Event, Plugin, PluginError, Timeout};
use crate::read::Done;
use crate::spec::{
    Keys, OfClient, OfNamespace, Scope, Spec, about_client, about_namespace, client_counters,
    namespace_counters,
};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "ipfix",
    frames: &[],
    commands: &[
        client_counters::<Ipfix>("ipfix_c_cnt", Access::Api),
        Command {
            name: "ipfix_c_set_state",
            doc: "Has a client send flow records, or no more.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "enable": true}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Ipfix::set_state))
        },
        Command {
            name: "ipfix_c_get_gens_info",
            doc: "Says what a client's generators of records do.",
            errors: &["it has no such generator"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "gen_names": ["g1"]}"#,
                result: r#"{"generators_info": {"g1": {"enabled": true, "options_template": false, "scope_count": 0, "template_rate_pps": 1, "data_rate_pps": 3, "data_records_num": 1, "data_records_num_send": 1, "template_id": 260, "fields_num": 2, "engines_num": 0}}}"#,
            },
            ..about_client(&OfClient(Ipfix::generators))
        },
        Command {
            name: "ipfix_c_set_gen_state",
            doc: "Turns a generator of a client on or off, or changes its rates.",
            errors: &["the client has no such generator", "a rate is too high"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1], "gen_name": "g1", "enable": true, "rate": 10, "template_rate": 1}"#,
                result: r#"true"#,
            },
            ..about_client(&OfClient(Ipfix::set_generator))
        },
        Command {
            name: "ipfix_c_get_exp_info",
            doc: "Says how a client's records leave.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"{"exporter_type": "emu-udp", "enabled": "true"}"#,
            },
            ..about_client(&OfClient(Ipfix::exporter_info))
        },
        Command {
            method: about_namespace(&OfNamespace(Ipfix::count)).method,
            ..namespace_counters::<Ipfix>("ipfix_ns_cnt", Access::Open)
        },
    ],
    counters: &[
        ("", NamespaceCounters::META),
        ("exporter", counters::IpfixCounters::META),
        ("emu_udp", counters::EmuUdpCounters::META),
        ("udp", counters::UdpCounters::META),
        ("file", counters::FileCounters::META),
        ("http", counters::HttpCounters::META),
    ],
    keys: Keys::Own,
    scope: Scope::Namespace,
    create: |context, init| Ok(Box::new(Ipfix::new(context, init)?)),
};

crate::counters! {
    /// Counters of IPFIX in a namespace.
    struct NamespaceCounters: u64, "ipfix" {
        invalid_init_json: "invalidInitJson", "Error while decoding init Json", "ops", Error;
        trigger_failed: "failedToCreateDevicesAutoTrigger", "Failed to create devices auto trigger", "ops", Error;
    }
}

/// IPFIX in a namespace.
#[derive(Default)]
struct Ipfix {
    counters: NamespaceCounters,
    clients: ClientMap<Box<FlowExporter>>,
    trigger: Option<Trigger>,
}

impl Plugin for Ipfix {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let who = identity(context, client, None);
        let exporter = FlowExporter::open(context, client, init, &who)?;
        self.clients.insert(client, Box::new(exporter));
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        if let Some(mut exporter) = self.clients.remove(client) {
            exporter.close(context, client);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        match timeout.client {
            None => self.make_devices(context),
            Some(client) => {
                if let Some(exporter) = self.clients.get_mut(client) {
                    exporter.handle_timeout(context, client, timeout.tag);
                }
            }
        }
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        let Some(exporter) = self.clients.get_mut(client) else {
            return;
        };
        match event {
            Event::GatewayResolvedIpv4 | Event::GatewayResolvedIpv6 => {
                exporter.start_if_ready(context, client);
            }
            Event::Exported(report) => exporter.report(report),
            _ => {}
        }
    }

    fn stop_auto_trigger(&mut self) {
        self.trigger = None;
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        match client {
            None => show(0, &mut self.counters),
            Some(client) => {
                if let Some(exporter) = self.clients.get_mut(client) {
                    exporter.show_counters(show);
                }
            }
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }
}

/// Its commands.
impl Ipfix {
    fn exporter(&mut self, client: ClientId) -> Result<&mut FlowExporter, Error> {
        let exporter = self.clients.get_mut(client);
        let exporter = exporter.ok_or_else(|| Error::execution("the client exports nothing"))?;
        Ok(exporter)
    }

    fn set_state(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: SetState,
    ) -> Result<Done, Error> {
        self.exporter(client)?.set_state(context, client, params)
    }

    fn generators(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: GeneratorNames,
    ) -> Result<GeneratorInfos, Error> {
        let exporter = self.exporter(client)?;
        exporter.generators_info(context, client, params)
    }

    fn set_generator(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        params: SetGenerator,
    ) -> Result<Done, Error> {
        let exporter = self.exporter(client)?;
        exporter.set_generator(context, client, &params)
    }

    fn exporter_info(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        _: Empty,
    ) -> Result<ExporterInfo, Error> {
        Ok(self.exporter(client)?.info())
    }

    /// Metrics do not have what is counted of devices that are made.
    fn count(
        &mut self,
        _: &mut Context<'_>,
        params: CounterParams,
    ) -> Result<CounterReport, Error> {
        let mut tables: Vec<&mut dyn Counters> = vec![&mut self.counters];
        if let Some(trigger) = &mut self.trigger {
            tables.push(&mut trigger.counters);
        }
        Ok(tables::report(&params, &mut tables))
    }
}

impl Ipfix {
    fn new(context: &mut Context<'_>, init: &Value) -> Result<Ipfix, Error> {
        let mut ipfix = Ipfix::default();
        if init.is_null() {
            return Ok(ipfix);
        }
        if !context.shared.exports.is_allowed {
            let message = "Creating NS level IPFIX plugin failed - not kernel mode";
            return Err(Error::execution(message));
        }
        if !init.is_object() {
            return Err(mismatch(init, "ipfix.IPFixNsParams"));
        }
        let trigger = Params::new(init).get("devices_auto_trigger");
        let trigger = trigger.ok_or_else(|| Error::execution("Invalid initJson parameter"))?;
        ipfix.trigger = Some(Trigger::parse(trigger, context.now)?);
        context.set_timer(STEP, None, 0);
        Ok(ipfix)
    }

    /// Makes the devices that are due.
    fn make_devices(&mut self, context: &mut Context<'_>) {
        while let Some(device) = self.trigger.as_mut().and_then(|it| it.next(context.now)) {
            let clients = &context.namespace.clients;
            let is_taken = clients.by_mac(device.mac).is_some()
                || clients.by_ipv4(device.ipv4).is_some()
                || device.mac == Default::default();
            if is_taken {
                continue;
            }
            let mut client = Client::new(device.mac);
            client.ipv4 = device.ipv4;
            client.plugins = 1 << context.this().0;
            let id = context.namespace.clients.insert(client);
            let who = identity(context, id, Some(device.numbers));
            match FlowExporter::open(context, id, &device.init, &who) {
                Ok(exporter) => {
                    self.clients.insert(id, Box::new(exporter));
                    if let Some(trigger) = &mut self.trigger {
                        trigger.counters.triggered += 1;
                    }
                }
                Err(_) => drop(context.namespace.clients.remove(id)),
            }
        }
        if self
            .trigger
            .as_ref()
            .is_some_and(|trigger| !trigger.is_over())
        {
            context.set_timer(STEP, None, 0);
        }
    }
}

/// Who a client is.
fn identity(
    context: &mut Context<'_>,
    client: ClientId,
    device: Option<init::DeviceNumbers>,
) -> Identity {
    let found = context.client(client);
    let (mac, ipv4) = found.map_or((MacAddress::default(), Ipv4Addr::UNSPECIFIED), |client| {
        (client.mac, client.ipv4)
    });
    let seed = [context.draw("ipfix seed"), context.draw("ipfix seed")];
    Identity {
        mac: mac
            .octets()
            .iter()
            .map(|octet| format!("{octet:02x}"))
            .collect(),
        ipv4,
        device,
        seed: u64::from(seed[0]) << 32 | u64::from(seed[1]),
    }
}
