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
#[cfg(test)]
mod tests;
mod trigger;

use std::net::Ipv4Addr;

use allosaur_api::Error;
use allosaur_packet::MacAddress;
use serde_json::Value;

use self::exporter::FlowExporter;
use self::init::Identity;
use self::trigger::{STEP, Trigger};
use crate::client::{Client, ClientId, ClientMap};
use crate::counters as tables;
use crate::counters::Counters;
use crate::namespace::Namespace;
use crate::params::{Params, mismatch};
use crate::plugin::{
    Call, Context, Event, Keys, Method, Plugin, PluginError, Spec, Target, Timeout,
};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "ipfix",
    frames: &[],
    methods: &[
        Method::new("ipfix_c_cnt", Target::Client, true),
        Method::new("ipfix_c_set_state", Target::Client, true),
        Method::new("ipfix_c_get_gens_info", Target::Client, true),
        Method::new("ipfix_c_set_gen_state", Target::Client, true),
        Method::new("ipfix_c_get_exp_info", Target::Client, true),
        Method::new("ipfix_ns_cnt", Target::Namespace, false),
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

    fn call(&mut self, context: &mut Context<'_>, call: &Call<'_>) -> Result<Value, Error> {
        let Some(client) = call.client else {
            let mut tables: Vec<&mut dyn Counters> = vec![&mut self.counters];
            if let Some(trigger) = &mut self.trigger {
                tables.push(&mut trigger.counters);
            }
            return tables::report(call.params, &mut tables);
        };
        let exporter = self.clients.get_mut(client);
        let exporter = exporter.ok_or_else(|| Error::execution("the client exports nothing"))?;
        let params = Params::new(call.params);
        match call.method {
            "ipfix_c_cnt" => exporter.report_counters(call.params),
            "ipfix_c_set_state" => exporter.set_state(context, client, params),
            "ipfix_c_get_gens_info" => exporter.generators_info(context, client, params),
            "ipfix_c_set_gen_state" => exporter.set_generator(context, client, params),
            _ => Ok(exporter.info()),
        }
    }

    fn stop_auto_trigger(&mut self) {
        self.trigger = None;
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &dyn Counters),
    ) {
        match client {
            None => show(0, &self.counters),
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
