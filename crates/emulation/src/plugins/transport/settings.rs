//! How TCP behaves on connections of a client: its init JSON, and what a connection has of its own.

use std::num::NonZeroU16;

use allosaur_engine::tcp::{CongestionAlgorithm, Tunables};
use serde_json::{Map, Value};

use crate::datagrams::Wanted;

/// Time between ticks of the reference's clock for what may take half a minute.
const SLOW_TICK_MS: u32 = 500;
/// Received bytes after which an acknowledgment leaves.
const ACKNOWLEDGE_BYTES: u16 = 2920;
/// The largest initial window.
const INITIAL_WINDOW_BYTES_MAX: u32 = 48 << 10;
/// Silence after which a peer is asked for life, where nobody asked for that: never.
const KEEPALIVE_NEVER_MS: u32 = 1 << 30;

/// How a connection behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(super) tunables: Tunables,
    /// Received bytes after which an acknowledgment leaves, none for no number of bytes; the tunable
    /// is for each segment.
    pub(super) acknowledge_bytes: Option<NonZeroU16>,
    pub(super) type_of_service: u8,
    /// Time to live, or hop limit.
    pub(super) hops: Option<u8>,
}

impl Default for Settings {
    /// As the reference's: BSD's TCP of 1994.
    fn default() -> Self {
        Settings {
            tunables: Tunables {
                sack: false,
                congestion: CongestionAlgorithm::Reno,
                patient: true,
                // Out of order is dropped, so that who reads gets bytes as they come.
                reassembly_pieces_max: 0,
                delayed_ack_ms: 40,
                time_wait_ms: SLOW_TICK_MS,
                keepalive_idle_ms: KEEPALIVE_NEVER_MS,
                ..Tunables::default()
            },
            acknowledge_bytes: NonZeroU16::new(ACKNOWLEDGE_BYTES),
            type_of_service: 0,
            hops: None,
        }
    }
}

impl Settings {
    /// Those of a client, by its init JSON. What has another type or is out of range is left out, as
    /// in the reference.
    pub(super) fn of_client(init: &Value) -> Settings {
        let mut settings = Settings::default();
        let number = |name: &str, least: u64, most: u64| {
            let number = init[name].as_u64();
            number.filter(|number| (least..=most).contains(number))
        };
        let tunables = &mut settings.tunables;
        if let Some(ms) = number("tcp_fasttick_msec", 20, 100) {
            tunables.delayed_ack_ms = ms as u32;
        }
        if let Some(ticks) = number("tcp_keepalive", 10, 6500) {
            tunables.keepalive_idle_ms = ticks as u32 * SLOW_TICK_MS;
        }
        if let Some(bits) = number("tcp_no_delay", 0, 4) {
            tunables.no_delay = bits & 1 != 0;
            tunables.always_push = bits & 2 != 0;
        }
        if let Some(bytes) = number("tcp_no_delay_counter", 0, u16::MAX.into()) {
            settings.acknowledge_bytes = NonZeroU16::new(bytes as u16);
        }
        if let Some(segments) = number("initwnd", 1, 20) {
            tunables.initial_window_segments = segments as u8;
        }
        if let Some(bytes) = number("rxbufsize", 8192, 1 << 20) {
            tunables.receive_buffer_bytes = bytes as u32;
        }
        if let Some(bytes) = number("txbufsize", 8192, 1 << 20) {
            tunables.transmit_buffer_bytes = bytes as u32;
        }
        if let Some(bytes) = number("mss", 10, 9000) {
            tunables.mss_bytes = bytes as u16;
        }
        if let Some(on) = number("do_rfc1323", 0, 1).map(|number| number == 1) {
            tunables.rfc1323 = on;
        }
        if let Some(on) = init["do_rfc1323"].as_bool() {
            tunables.rfc1323 = on;
        }
        settings
    }

    /// These with the tunables of a template; what is no number or out of range is left out. Tunables
    /// of stateful profiles stand in groups (`tcp`, `ip`), those of the reference do not.
    pub(crate) fn with(mut self, given: &Map<String, Value>) -> Settings {
        for (name, value) in given {
            match value {
                Value::Object(group) => self = self.with(group),
                value => {
                    if let Some(number) = value.as_u64().and_then(|n| u32::try_from(n).ok()) {
                        self.set(name, number);
                    }
                }
            }
        }
        self
    }

    fn set(&mut self, name: &str, number: u32) {
        let tunables = &mut self.tunables;
        match (name, number) {
            ("tos", 0..=255) => self.type_of_service = number as u8,
            ("ttl", 1..=255) => self.hops = Some(number as u8),
            ("mss", 10..=9216) => tunables.mss_bytes = number as u16,
            ("initwnd", 1..=20) => tunables.initial_window_segments = number as u8,
            ("no_delay", 0..=3) => {
                tunables.no_delay = number & 1 != 0;
                tunables.always_push = number & 2 != 0;
            }
            ("no_delay_counter", 0..=0xffff) => {
                self.acknowledge_bytes = NonZeroU16::new(number as u16);
            }
            ("delay_ack_msec", 20..=500) => tunables.delayed_ack_ms = number,
            ("rxbufsize", 2048..=0x10_0000) => tunables.receive_buffer_bytes = number,
            ("txbufsize", 2048..=0x10_0000) => tunables.transmit_buffer_bytes = number,
            _ => {}
        }
    }

    /// What they say of datagrams.
    pub(crate) fn of_datagrams(&self) -> Wanted {
        Wanted {
            type_of_service: self.type_of_service,
            hops: self.hops,
        }
    }

    /// These on a link whose segments have at most so many bytes.
    pub(super) fn on_link(mut self, segment_bytes_max: u16) -> Settings {
        let tunables = &mut self.tunables;
        let mss = tunables.mss_bytes.min(segment_bytes_max).max(1);
        let segments = (INITIAL_WINDOW_BYTES_MAX / u32::from(mss)).clamp(1, 255) as u8;
        tunables.mss_bytes = mss;
        tunables.initial_window_segments = tunables.initial_window_segments.min(segments);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_left_out_and_the_rest_taken() {
        let init = json!({"mss": 536, "initwnd": 21, "rxbufsize": 8192, "txbufsize": "x",
            "tcp_fasttick_msec": 100, "do_rfc1323": 0, "unknown": 1, "tcp_no_delay": 3});
        let tunables = Settings::of_client(&init).tunables;
        assert_eq!(
            (tunables.mss_bytes, tunables.initial_window_segments),
            (536, 10)
        );
        assert_eq!(
            (
                tunables.receive_buffer_bytes,
                tunables.transmit_buffer_bytes
            ),
            (8192, 32768)
        );
        assert_eq!((tunables.delayed_ack_ms, tunables.rfc1323), (100, false));
        assert!(tunables.no_delay && tunables.always_push);
        assert_eq!(Settings::of_client(&json!(5)), Settings::default());
    }

    #[test]
    fn tunables_of_profiles_stand_in_groups() {
        let given = json!({"tcp": {"mss": 512, "initwnd": 20}, "ip": {"ttl": 7, "tos": "x"}});
        let settings = Settings::default().with(given.as_object().expect("an object"));
        assert_eq!((settings.hops, settings.type_of_service), (Some(7), 0));
        let jumbo = Settings::default().with(json!({"mss": 9000}).as_object().expect("an object"));
        assert_eq!(jumbo.on_link(8960).tunables.initial_window_segments, 5);
        assert_eq!(settings.on_link(1452).tunables.mss_bytes, 512);
    }
}
