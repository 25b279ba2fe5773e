//! TDL, Cisco's language of traces: clients that send an object of types that the user describes, over and over.
//!
//! The layout is that of recordings; no document of it is public.

mod meta;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use allosaur_api::{Access, Error};
use allosaur_engine::time::Nanos;
use serde_json::Value;

use self::meta::{Object, Types, luid};
use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::datagrams;
use crate::field_engine::{FieldEngines, SplitMix};
use crate::namespace::Namespace;
use crate::pace::Pace;
use crate::params::{Params, failed_check};
use crate::plugin::{Context, Event, Plugin, PluginError, Timeout};
use crate::spec::{Keys, Scope, Spec, client_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "tdl",
    frames: &[],
    commands: &[client_counters::<Tdl>("tdl_c_cnt", Access::Api)],
    counters: &[("", TdlCounters::META)],
    keys: Keys::Only(&[
        "dst",
        "rate_pps",
        "udp_debug",
        "header",
        "meta_data",
        "object",
        "init_values",
        "engines",
    ]),
    scope: Scope::Namespace,
    create: |_, init| match init {
        Value::Null => Ok(Box::new(Tdl::default())),
        // A namespace has nothing to say, as in the reference.
        _ => Err(PluginError::default()),
    },
};

/// Messages a second, unless told otherwise.
const RATE: f64 = 3.0;

crate::counters! {
    /// Counters of a client.
    pub(crate) struct TdlCounters: u32, "tdl" {
        invalid_destination: "invalidDst", "Invalid destination address", "ops", Error;
        bad_init_json: "badOrNoInitJson", "Invalid init Json", "ops", Error;
        invalid_meta: "invalidMetaData", "Invalid meta data definition in init Json", "ops", Error;
        unregistered_type: "unregisteredTdlType", "Tdl type not registered/supported", "ops", Error;
        type_not_created: "failedCreatingTdlType", "Failed creating Tdl type from meta definition", "ops", Error;
        type_not_built: "failedBuildingTdlType", "Failed building Tdl type instance", "ops", Error;
        meta_not_built: "failedBuildingMetaDataMgr", "Failed building metadata manager", "ops", Error;
        engines_not_built: "failedBuildingEngineMgr", "Failed building engine manager", "ops", Error;
        invalid_values: "invalidInitValues", "Invalid initial values", "ops", Error;
        invalid_enum: "invalidEnumDef", "Invalid Enum definition", "ops", Error;
        invalid_flags: "invalidFlagDef", "Invalid Flag definition", "ops", Error;
        invalid_type: "invalidTypeDef", "Invalid Type definition", "ops", Error;
        invalid_object: "invalidObjType", "The object type is invalid", "ops", Error;
        write_error: "socketWriteError", "Error happened writing in socket", "ops", Error;
        update_error: "payloadUpdateErr", "Error happened while updating payload", "ops", Error;
        duplicate_luid: "duplicateLuid", "Duplicate LUID upon registration", "ops", Error;
        tx_packets: "pktsTx", "Number of packets transmitted", "pkts", Info;
    }
}

/// TDL in a namespace.
#[derive(Default)]
struct Tdl {
    clients: ClientMap<Box<Sender>>,
}

/// A client that sends.
struct Sender {
    counters: TdlCounters,
    remote: SocketAddr,
    port: u16,
    pace: Pace,
    /// When the next message is due; none while the gateway is not known.
    due: Option<Nanos>,
    header: Vec<u8>,
    object: Object,
    engines: FieldEngines,
    /// The variable of each engine.
    variables: Vec<usize>,
    random: SplitMix,
}

impl Plugin for Tdl {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let mut sender = Box::new(Sender::open(context, client, init)?);
        let found = context.client(client);
        let is_ready = found.is_some_and(|client| match sender.remote {
            SocketAddr::V4(_) => client.gateway_mac_ipv4.is_some(),
            SocketAddr::V6(_) => client.gateway_mac_ipv6.is_some(),
        });
        if is_ready {
            sender.start(context, client);
        }
        self.clients.insert(client, sender);
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        let sender = self.clients.remove(client);
        let sockets = context.namespace.sockets.get_mut(client);
        if let (Some(sender), Some(sockets)) = (sender, sockets) {
            sockets.close(sender.port, sender.remote);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let client = timeout.client;
        if let Some((client, sender)) = client.and_then(|id| Some((id, self.clients.get_mut(id)?)))
        {
            for _ in 0..sender.pace.count(context.tick()) {
                sender.send(context, client);
            }
            sender.plan(context, client);
        }
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        let Some(sender) = self.clients.get_mut(client) else {
            return;
        };
        let is_resolved = match event {
            Event::GatewayResolvedIpv4 => sender.remote.is_ipv4(),
            Event::GatewayResolvedIpv6 => sender.remote.is_ipv6(),
            _ => false,
        };
        if is_resolved {
            sender.start(context, client);
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if let Some(client) = client.and_then(|id| self.clients.get_mut(id)) {
            show(0, &mut client.counters);
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }
}

impl Sender {
    fn open(context: &mut Context<'_>, client: ClientId, init: &Value) -> Result<Sender, Error> {
        let params = Params::object(init, "tdl.TdlClientParams")?;
        let [header, object] = ["header", "object"].map(|name| Params::new(&init[name]));
        check_required(params, header, object)?;
        object.only_in("object", &["name", "type"])?;
        let meta = params.list("meta_data", "[]tdl.TdlMetaEntry")?;
        let values = params.list("init_values", "[]tdl.TdlInitValue")?;
        let remote = address(params.string_or("dst", "")?)?;
        let types = Types::parse(meta.map_or(&[][..], Vec::as_slice))?;
        let mut built =
            types.object(object.string_or("name", "")?, object.string_or("type", "")?)?;
        for value in values.into_iter().flatten() {
            let entry = Params::object(value, "tdl.TdlInitValue")?;
            entry.only_in("an entry of init_values", &["path", "value"])?;
            let variable = built.variable(entry.string_or("path", "")?)?;
            built.set(variable, entry.get("value").unwrap_or(&Value::Null))?;
        }
        let engines = params.get("engines").unwrap_or(&Value::Null);
        let engines = FieldEngines::parse(engines).map_err(|error| {
            Error::execution(format!("could not create engine manager: {error}"))
        })?;
        let variables = (0..engines.len()).map(|engine| built.variable(engines.name(engine)));
        let variables = variables.collect::<Result<_, _>>()?;
        let pace = Pace::new("rate_pps", params.float_or("rate_pps", "float32", RATE)?)?;
        let header = write_header(header)?;
        let owner = context.this().0;
        let port = context.namespace.sockets.of(client).open(remote, owner);
        let seed = [context.draw("tdl seed"), context.draw("tdl seed")];
        Ok(Sender {
            counters: TdlCounters::default(),
            remote,
            port: port.ok_or_else(|| Error::execution("no source port is free"))?,
            pace,
            due: None,
            header,
            object: built,
            engines,
            variables,
            random: SplitMix::new(u64::from(seed[0]) << 32 | u64::from(seed[1])),
        })
    }

    /// Begins to send; the first message comes after a period.
    fn start(&mut self, context: &mut Context<'_>, client: ClientId) {
        if self.due.is_none() {
            self.due = Some(context.now);
            self.plan(context, client);
        }
    }

    fn plan(&mut self, context: &mut Context<'_>, client: ClientId) {
        if let (Some(last), Some(interval)) = (self.due, self.pace.interval(context.tick())) {
            let due = last.saturating_add(context.rounded(interval));
            // What is late is sent at once, but for a loss of more than one.
            let due = due.max(context.now);
            self.due = Some(due);
            context.set_timer(due - context.now, Some(client), 0);
        }
    }

    fn send(&mut self, context: &mut Context<'_>, client: ClientId) {
        let mut given = [0; 256];
        for (engine, &variable) in self.variables.iter().enumerate() {
            let (offset, size) = self.engines.place(engine);
            if size > given.len() {
                self.counters.update_error += 1;
                continue;
            }
            let bytes = self.engines.next(engine, &mut self.random, &mut given);
            let is_value = self.object.write(variable, offset, &given[..bytes]);
            self.counters.update_error += u32::from(!is_value);
        }
        let message = [&self.header[..], &self.object.bytes].concat();
        match datagrams::send(context, client, self.port, self.remote, &message) {
            Ok(()) => self.counters.tx_packets += 1,
            Err(_) => self.counters.write_error += 1,
        }
    }
}

/// Checks what must be there, in the reference's order and words.
fn check_required(params: Params<'_>, header: Params<'_>, object: Params<'_>) -> Result<(), Error> {
    let has_uuid = header.number_or("uuid", 0_u64)? != 0;
    let checks = [
        (params.string_or("dst", "")?.is_empty(), "", "Dst"),
        (!has_uuid, "Header.", "Uuid"),
        (header.get("luid").is_none(), "Header.", "Luid"),
        (params.get("meta_data").is_none(), "", "Meta"),
        (object.string_or("name", "")?.is_empty(), "Object.", "Name"),
        (object.string_or("type", "")?.is_empty(), "Object.", "Type"),
        (params.get("init_values").is_none(), "", "InitValues"),
    ];
    let missing = checks.iter().filter(|(is_missing, ..)| *is_missing);
    let missing = missing.map(|(_, place, field)| {
        let structure = format!("TdlClientParams.{place}");
        failed_check(structure.trim_end_matches('.'), field, "required").to_string()
    });
    let missing: Vec<String> = missing.collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::execution(missing.join("\n"))),
    }
}

fn address(text: &str) -> Result<SocketAddr, Error> {
    let parsed: Result<SocketAddr, _> = text.parse();
    parsed.map_err(|_| match text.contains(':') {
        false => Error::execution(format!("address {text}: missing port in address")),
        true => Error::execution(format!(
            "address {text}: write an address and a port, such as 10.0.0.1:8080 or [2001:db8::1]:8080"
        )),
    })
}

/// The header of a message: the user's numbers, one after the other.
fn write_header(params: Params<'_>) -> Result<Vec<u8>, Error> {
    const BYTES: [&str; 9] = [
        "magic",
        "fru",
        "src_chassis",
        "src_slot",
        "dst_chassis",
        "dst_slot",
        "bay",
        "state_tracking",
        "flag",
    ];
    const WORDS: [&str; 2] = ["domain_hash", "len"];
    let known = [&BYTES[..], &WORDS, &["uuid", "tenant_id", "luid"]].concat();
    params.only_in("header", &known)?;
    let mut header = Vec::new();
    for name in BYTES {
        header.push(params.number_or::<u8>(name, 0)?);
    }
    for name in WORDS {
        header.extend(params.number_or::<u32>(name, 0)?.to_be_bytes());
    }
    header.extend(params.number_or::<u64>("uuid", 0)?.to_be_bytes());
    header.extend(params.number_or::<u16>("tenant_id", 0)?.to_be_bytes());
    header.extend(luid(params)?);
    Ok(header)
}
