//! Devices that a namespace makes by itself: clients that export, added over a time.

use std::net::Ipv4Addr;

use allosaur_api::Error;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use serde_json::{Value, json};

use super::duration;
use super::init::{ClientInit, DeviceNumbers, Identity, ipv4_behind};
use crate::params::{Params, failed_check, mismatch};

/// How often devices are made.
pub(super) const STEP: Nanos = 100 * MILLISECOND;
/// The shortest time in which all are.
const RAMP_UP_MIN: Nanos = SECOND;
/// The field of a record that tells a client of a device.
const CLIENT_FIELD: &str = "clientIPv4Address";

crate::counters! {
    /// Counters of devices.
    pub(super) struct TriggerCounters: u64, "Devices auto trigger" {
        ramp_up_s: "rampupTime", "Time duration to trigger all devices", "seconds", Info, zero;
        elapsed_s: "rampupTimeSoFar", "Triggering time so far", "seconds", Info;
        devices: "devicesToTrigger", "Number of devices to trigger", "devices", Info, zero;
        triggered: "devicesTriggered", "Number of devices triggered so far", "devices", Info, zero;
    }
}

/// Clients of a device, that are in its records.
#[derive(Clone, Debug)]
struct ClientsOfDevice {
    field: String,
    first: Ipv4Addr,
    count: u32,
    records: u32,
}

/// A device to be made.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) mac: MacAddress,
    pub(super) ipv4: Ipv4Addr,
    pub(super) numbers: DeviceNumbers,
    pub(super) init: Value,
}

/// What makes devices.
#[derive(Clone, Debug)]
pub(super) struct Trigger {
    pub(super) counters: TriggerCounters,
    started: Nanos,
    ramp_up: Nanos,
    count: u32,
    /// How many were made, or could not be.
    done: u32,
    mac: MacAddress,
    ipv4: Ipv4Addr,
    domain: u32,
    sites_per_tenant: u32,
    devices_per_site: u32,
    clients: Option<ClientsOfDevice>,
    init: Value,
}

impl Trigger {
    /// Reads `devices_auto_trigger`.
    ///
    /// # Errors
    /// When something is missing or wrong, in what devices begin with too.
    pub(super) fn parse(value: &Value, now: Nanos) -> Result<Trigger, Error> {
        let params = Params::object(value, "ipfix.DevicesAutoTriggerParams")?;
        params.only(&[
            "device_mac",
            "device_ipv4",
            "device_domain_id",
            "devices_num",
            "rampup_time",
            "sites_per_tenant",
            "devices_per_site",
            "total_rate_pps",
            "clients_generator",
            "device_init",
        ])?;
        let mac = params.mac("device_mac")?.unwrap_or_default();
        let ipv4 = params.ipv4("device_ipv4")?.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let count = params.number_or("devices_num", 1_u32)?;
        let init = params.get("device_init");
        let checks = [
            (mac != MacAddress::ZERO, "DeviceMac"),
            (!ipv4.is_unspecified(), "DeviceIpv4"),
            (count != 0, "DevicesNum"),
            (init.is_some(), "DeviceInit"),
        ];
        let missing = checks.iter().filter(|(is_there, _)| !is_there);
        let missing = missing.map(|(_, field)| {
            failed_check("DevicesAutoTriggerParams", field, "required").to_string()
        });
        let missing: Vec<String> = missing.collect();
        if !missing.is_empty() {
            return Err(Error::execution(missing.join("\n")));
        }
        let ramp_up = ramp_up(params)?;
        if let Some(wrong) = init.filter(|init| !init.is_object()) {
            return Err(mismatch(wrong, "ipfix.IPFixClientParams"));
        }
        let total_rate = params.float_or("total_rate_pps", "float32", 0.0)?;
        let mut init = init.cloned().unwrap_or_default();
        share_rate(&mut init, total_rate / f64::from(count));
        let clients = params.get("clients_generator").map(clients_of_device);
        let clients = clients.transpose()?;
        let trigger = Trigger {
            counters: TriggerCounters {
                ramp_up_s: ramp_up / SECOND,
                devices: count.into(),
                ..TriggerCounters::default()
            },
            started: now,
            ramp_up,
            count,
            done: 0,
            mac,
            ipv4,
            domain: params.number_or("device_domain_id", 0)?,
            sites_per_tenant: params.number_or("sites_per_tenant", 1_u32)?.max(1),
            devices_per_site: params.number_or("devices_per_site", 1_u32)?.max(1),
            clients,
            init,
        };
        // Better known now than when the first device is made.
        let first = trigger.device(0);
        let who = Identity {
            mac: String::new(),
            ipv4: first.ipv4,
            device: None,
            seed: 0,
        };
        ClientInit::parse(&first.init, &who, true)?;
        Ok(trigger)
    }

    /// The next device that is due, if one is.
    pub(super) fn next(&mut self, now: Nanos) -> Option<Device> {
        let elapsed = now.saturating_sub(self.started).min(self.ramp_up);
        let due = u128::from(self.count) * u128::from(elapsed) / u128::from(self.ramp_up);
        if self.is_over() || u128::from(self.done) >= due {
            return None;
        }
        self.counters.elapsed_s = elapsed.saturating_sub(STEP) / SECOND;
        let device = self.device(self.done);
        self.done += 1;
        Some(device)
    }

    /// Whether all were made.
    pub(super) fn is_over(&self) -> bool {
        self.done >= self.count
    }

    fn device(&self, index: u32) -> Device {
        let mut init = self.init.clone();
        if self.domain != 0 {
            init["domain_id"] = json!(self.domain.wrapping_add(index));
        }
        if let Some(clients) = &self.clients {
            clients.replace(&mut init, index);
        }
        let site = index / self.devices_per_site;
        Device {
            mac: mac_behind(self.mac, index),
            ipv4: ipv4_behind(self.ipv4, index),
            numbers: DeviceNumbers {
                tenant: site / self.sites_per_tenant,
                site: site % self.sites_per_tenant,
                device: index % self.devices_per_site,
            },
            init,
        }
    }
}

/// The time in which all devices are made.
fn ramp_up(params: Params<'_>) -> Result<Nanos, Error> {
    let time = match params.string_or("rampup_time", "")? {
        "" => 0,
        text => duration::parse(text)?,
    };
    Ok(time.max(RAMP_UP_MIN))
}

fn clients_of_device(value: &Value) -> Result<ClientsOfDevice, Error> {
    let params = Params::object(value, "ipfix.ClientsGeneratorParams")?;
    params.only(&[
        "client_ipv4_field_name",
        "client_ipv4",
        "clients_per_device",
        "data_records_per_client",
    ])?;
    let first = params.ipv4("client_ipv4")?;
    Ok(ClientsOfDevice {
        field: params
            .string_or("client_ipv4_field_name", CLIENT_FIELD)?
            .to_owned(),
        first: first
            .ok_or_else(|| failed_check("ClientsGeneratorParams", "ClientIpv4", "required"))?,
        count: params.number_or("clients_per_device", 1_u32)?.max(1),
        records: params.number_or("data_records_per_client", 1_u32)?.max(1),
    })
}

impl ClientsOfDevice {
    /// Has generators with the field go through the clients of a device.
    fn replace(&self, init: &mut Value, index: u32) {
        let first = ipv4_behind(self.first, index.wrapping_mul(self.count));
        let min = u32::from(first);
        let engine = json!({
            "engine_name": self.field,
            "engine_type": "uint",
            "params": {
                "size": 4, "offset": 0, "op": "inc", "step": 1, "repeat": self.records,
                "min": min, "max": min.saturating_add(self.count - 1),
            },
        });
        let generators = init["generators"].as_array_mut().into_iter().flatten();
        for generator in generators.filter(|generator| generator.is_object()) {
            let fields = generator["fields"].as_array_mut().into_iter().flatten();
            let mut fields = fields.filter(|field| field["name"] == *self.field);
            let Some(field) = fields.next() else {
                continue;
            };
            field["data"] = json!(first.octets());
            let mut engines = generator["engines"].as_array().cloned().unwrap_or_default();
            engines.retain(|engine| engine["engine_name"] != *self.field);
            engines.push(engine.clone());
            generator["engines"] = Value::Array(engines);
        }
    }
}

/// Shares a rate among the generators of data, in the proportions of their own.
fn share_rate(init: &mut Value, total: f64) {
    let is_data = |generator: &Value| generator["is_options_template"] != true;
    let rate = |generator: &Value| generator["rate_pps"].as_f64().unwrap_or(3.0);
    let Some(generators) = init["generators"].as_array_mut().filter(|_| total > 0.0) else {
        return;
    };
    let sum: f64 = generators.iter().filter(|one| is_data(one)).map(rate).sum();
    for generator in generators
        .iter_mut()
        .filter(|one| one.is_object() && is_data(one))
    {
        let share = rate(generator) / sum * total;
        if share.is_finite() {
            generator["rate_pps"] = json!(share);
        }
    }
}

fn mac_behind(first: MacAddress, count: u32) -> MacAddress {
    let mut bytes = [0; 8];
    bytes[2..].copy_from_slice(&first.octets());
    let number = u64::from_be_bytes(bytes).wrapping_add(count.into());
    let [_, _, octets @ ..] = number.to_be_bytes();
    MacAddress(octets)
}
