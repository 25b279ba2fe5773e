//! What LLDP and CDP have in common: a client sends one frame again and again, and hears nothing.

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::frame::Frame;
use crate::namespace::Namespace;
use crate::params::{Params, mismatch};
use crate::plugin::{Context, Plugin, PluginError, Timeout};

/// Bytes behind the type of a frame, or behind its length, at most.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1500;

const INTERVAL_S: u32 = 30;

/// A protocol that only announces.
pub(super) trait Protocol: 'static {
    /// Its counter.
    type Counters: Counters + Default + Send;

    /// The reference's name of the type of its init JSON, for errors.
    const INIT_TYPE: &'static str;

    /// The frame of a client, from its init JSON.
    ///
    /// # Errors
    /// When the init JSON is wrong.
    fn announcement(init: Params<'_>, client: MacAddress) -> Result<Announcement, PluginError>;

    /// Counts a frame.
    fn count(counters: &mut Self::Counters);
}

/// What is announced.
pub(super) struct Announcement {
    /// The group that it is for.
    pub(super) destination: MacAddress,
    /// The type, or the length of an IEEE 802.3 frame.
    pub(super) ether_type: EtherType,
    /// What follows.
    pub(super) payload: Box<[u8]>,
}

struct Announcer<C> {
    announcement: Announcement,
    interval: Nanos,
    counters: C,
}

/// A protocol that only announces, in a namespace.
pub(super) struct Announcers<P: Protocol> {
    clients: ClientMap<Box<Announcer<P::Counters>>>,
}

impl<P: Protocol> Default for Announcers<P> {
    fn default() -> Self {
        Announcers {
            clients: ClientMap::default(),
        }
    }
}

impl<P: Protocol> Plugin for Announcers<P> {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let init = Params::object(init, P::INIT_TYPE)?;
        let interval = init.nonzero_or("timer", INTERVAL_S)?;
        let mac = context
            .client(client)
            .map_or(MacAddress::ZERO, |client| client.mac);
        let announcer = Announcer {
            announcement: P::announcement(init, mac)?,
            interval: Nanos::from(interval) * SECOND,
            counters: P::Counters::default(),
        };
        self.clients.insert(client, Box::new(announcer));
        self.announce(context, client);
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, client: ClientId) {
        self.clients.remove(client);
    }

    fn handle_frame(&mut self, _context: &mut Context<'_>, _frame: &Frame<'_>) {}

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        if let Some(client) = timeout.client {
            self.announce(context, client);
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

impl<P: Protocol> Announcers<P> {
    fn announce(&mut self, context: &mut Context<'_>, client: ClientId) {
        let Some(announcer) = self.clients.get_mut(client) else {
            return;
        };
        let Some(mac) = context.client(client).map(|client| client.mac) else {
            return;
        };
        let Announcement {
            destination,
            ether_type,
            payload,
        } = &announcer.announcement;
        context
            .send(mac, *destination, *ether_type, payload.len())
            .copy_from_slice(payload);
        P::count(&mut announcer.counters);
        context.set_timer(announcer.interval, Some(client), 0);
    }
}

/// The bytes of the user's own in `options.raw`: base64, or a list of numbers.
///
/// # Errors
/// When they are neither, or more than `bytes_max`.
pub(super) fn raw_option(options: Params<'_>, bytes_max: usize) -> Result<Vec<u8>, PluginError> {
    let bytes = match options.get("raw") {
        None => Vec::new(),
        Some(Value::String(text)) => decode(text)?,
        Some(Value::Array(items)) => items.iter().map(byte).collect::<Result<_, _>>()?,
        Some(other) => return Err(mismatch(other, "[]uint8").into()),
    };
    if bytes.len() > bytes_max {
        return Err(PluginError(format!(
            "options.raw has {} bytes; a frame has room for {bytes_max}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

fn byte(item: &Value) -> Result<u8, Error> {
    let number = item.as_u64().and_then(|number| u8::try_from(number).ok());
    number.ok_or_else(|| mismatch(item, "uint8"))
}

/// Base64 as Go reads it: line ends are skipped, unused bits of the last digit may be set.
fn decode(text: &str) -> Result<Vec<u8>, PluginError> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    let digits: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let engine = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
    engine.decode(&digits).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => digits.len() & !3,
        };
        PluginError(format!("illegal base64 data at input byte {at}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn raw_bytes_are_base64_or_numbers() {
        for (raw, expected) in [
            (
                json!("CANhYmMKBHN5\nbjE="),
                Ok(b"\x08\x03abc\n\x04syn1".to_vec()),
            ),
            (json!([60, 8, 255]), Ok(vec![60, 8, 255])),
            (
                json!("not base64!"),
                Err("illegal base64 data at input byte 3"),
            ),
            (json!("AAAAA"), Err("illegal base64 data at input byte 4")),
            (
                json!(vec![1; 9]),
                Err("options.raw has 9 bytes; a frame has room for 8"),
            ),
        ] {
            let options = json!({ "raw": raw });
            let bytes = raw_option(
                Params::new(&options),
                8.max(expected.iter().flatten().count()),
            );
            assert_eq!(
                bytes,
                expected.map_err(|text| PluginError(text.into())),
                "{raw}"
            );
        }
        for raw in [json!([256]), json!([-1]), json!(["a"]), json!(5), json!({})] {
            let options = json!({ "raw": raw });
            assert!(raw_option(Params::new(&options), 8).is_err(), "{raw}");
        }
    }
}
