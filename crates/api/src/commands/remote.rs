//! The command that has the server send a capture file.

use std::num::NonZeroU32;

use crate::command::{Access, Command, Example, Types};
use crate::commands::traffic::duration;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatelessMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// In `count`: frames keep the source MAC of the capture.
const CAPTURE_SOURCE_MAC: u32 = 1 << 31;
/// In `count`: frames keep the destination MAC of the capture.
const CAPTURE_DESTINATION_MAC: u32 = 1 << 30;

/// Parameters of `push_remote`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PushRemoteParams<'a> {
    /// How often the whole file is sent, 0 is without end; plus 2³¹ to keep the source MACs of the
    /// capture and 2³⁰ to keep its destination MACs, which are the port's otherwise.
    pub count: u32,
    /// Use the port's peer for the other direction.
    #[serde(default)]
    pub is_dual: bool,
    /// With `is_dual`: what `acquire` answered for the peer.
    #[serde(default)]
    pub slave_handler: &'a str,
    /// The file on the server's machine: an absolute path, or one relative to the folder that the
    /// server was started in.
    #[serde(deserialize_with = "file_name")]
    pub pcap_filename: &'a str,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// Microseconds between two packets; -1 takes the recorded gaps, and the first packet of the
    /// next round follows the last at once.
    #[serde(rename = "ipg_usec", deserialize_with = "gap")]
    #[schemars(with = "f64")]
    pub gap_us: Option<f64>,
    /// Gaps that are shorter after `speedup` become so long.
    #[serde(rename = "min_ipg_usec", default, deserialize_with = "gap_min")]
    pub gap_min_us: f64,
    /// Above 0; gaps are divided by it.
    #[serde(deserialize_with = "speedup")]
    pub speedup: f64,
    /// Seconds; -1 for no end.
    #[serde(rename = "duration", deserialize_with = "duration")]
    #[schemars(with = "f64")]
    pub duration_s: Option<f64>,
}

/// What `push_remote` is to send.
#[derive(Clone, Debug, PartialEq)]
pub struct PushRemote<'a> {
    /// The port.
    pub port: u8,
    /// The file, on the server's machine.
    pub filename: &'a str,
    /// Between two packets, in microseconds; `None` as recorded.
    pub gap_us: Option<f64>,
    /// Shorter gaps become so long, in microseconds.
    pub gap_min_us: f64,
    /// Gaps are divided by it.
    pub speedup: f64,
    /// How often the whole file is sent; `None` without end.
    pub rounds: Option<NonZeroU32>,
    /// Frames keep their source MAC.
    pub capture_source_mac: bool,
    /// Frames keep their destination MAC.
    pub capture_destination_mac: bool,
    /// How long, in seconds; `None` without end.
    pub duration_s: Option<f64>,
    /// What proves that the peer, which sends the other direction, is ours too; `None` sends
    /// everything out of one port.
    pub slave_handler: Option<&'a str>,
}

impl<'a> PushRemote<'a> {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'a>) -> Result<PushRemote<'a>, FieldError> {
        let params: PushRemoteParams<'a> = fields.read()?;
        let count = params.count;
        let rounds = count & !(CAPTURE_SOURCE_MAC | CAPTURE_DESTINATION_MAC);
        Ok(PushRemote {
            port: params.port,
            filename: params.pcap_filename,
            gap_us: params.gap_us,
            gap_min_us: params.gap_min_us,
            speedup: params.speedup,
            rounds: NonZeroU32::new(rounds),
            capture_source_mac: count & CAPTURE_SOURCE_MAC != 0,
            capture_destination_mac: count & CAPTURE_DESTINATION_MAC != 0,
            duration_s: params.duration_s,
            slave_handler: params.is_dual.then_some(params.slave_handler),
        })
    }
}

fn file_name<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<&'a str, D::Error> {
    let name = <&'de str>::deserialize(deserializer)?;
    if name.is_empty() || name.contains('\0') {
        return Err(D::Error::custom("names no file; give a path"));
    }
    Ok(name)
}

fn gap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let gap_us = f64::deserialize(deserializer)?;
    if gap_us == -1.0 {
        return Ok(None);
    }
    if gap_us < 0.0 {
        let problem = format_args!("is {gap_us}; give 0 or more, or -1 for the recorded gaps");
        return Err(D::Error::custom(problem));
    }
    Ok(Some(gap_us))
}

fn gap_min<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let gap_us = f64::deserialize(deserializer)?;
    if gap_us < 0.0 {
        let problem = format_args!("is {gap_us}; give 0 or more");
        return Err(D::Error::custom(problem));
    }
    Ok(gap_us)
}

fn speedup<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let speedup = f64::deserialize(deserializer)?;
    if speedup <= 0.0 {
        let problem = format_args!("is {speedup}; it must be above 0");
        return Err(D::Error::custom(problem));
    }
    Ok(speedup)
}

/// Reply of `push_remote`. It comes before the first packet leaves. Events 0 and 4 (or 1, when
/// stopped) of the port follow, and with `is_dual` those of its peer.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RemotePushed {
    /// How many packets of the file were recorded before one in front of them, where there are some:
    /// they leave with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_packets: Option<usize>,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[Command {
    method: Method::Stateless(StatelessMethod::PushRemote),
    name: "push_remote",
    access: Access::Owner,
    doc: "Sends the packets of a capture file (pcap, pcapng or ERF, Ethernet), which the server reads \
          itself, once or again and again. The port's state is `PCAP_TX` until all are sent or \
          `stop_traffic` stops it; nothing else runs on the port meanwhile, and it cannot be \
          paused or updated. Packets leave at their planned times or later, never stretched: \
          those of a counted run are all sent however late, a run without end gives up what is \
          more than 100 ms late, and what is given up is counted as missed. With `is_dual`, \
          packets of one direction leave by this port and those of the other by its peer (port \
          `port_id` ^ 1). When the file is a pcapng or ERF with packets of two interfaces, those of the \
          lower interface leave by this port. Otherwise the sender of the first packet stands on \
          the side of this port and its receiver on that of the peer; each sender that is seen \
          later stands opposite to whom it sends to, where that is known, and on this side where \
          it is not. MAC addresses are looked at, or IP addresses when by MAC addresses all \
          packets go one way. Stopping this port stops both.",
    types: Types::of::<PushRemoteParams<'static>, RemotePushed>(),
    errors: &[
        "no such port",
        "the port is not yours, or with `is_dual` its peer is not or is not there",
        "the port or its peer transmits",
        "the file is not there, no file, or larger than the limit",
        "it is no capture of Ethernet, truncated, or holds no packets",
        "a packet is shorter than 14 or longer than 9238 bytes",
        "with `is_dual`, all packets go in one direction",
        "the gateway's MAC address is not known yet, and packets need it",
    ],
    example: Example {
        params: r#"{"port_id": 0, "pcap_filename": "captures/http.pcap", "ipg_usec": 100.0, "speedup": 1.0, "count": 2, "duration": -1, "is_dual": false, "slave_handler": "", "min_ipg_usec": 0}"#,
        result: "{}",
    },
}];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn with(name: &str, value: Value) -> Value {
        let mut params: Value =
            serde_json::from_str(COMMANDS[0].example.params).expect("the example is JSON");
        params[name] = value;
        params
    }

    fn text(params: &Value) -> String {
        let fields = Fields::new(params.as_object().expect("an object"));
        let refused = PushRemote::parse(&fields).expect_err("it is wrong");
        refused.to_string()
    }

    #[test]
    fn count_carries_two_flags() {
        let read = |count: u32| {
            let params = with("count", json!(count));
            let fields = Fields::new(params.as_object().expect("an object"));
            let read = PushRemote::parse(&fields).expect("it is right");
            let rounds = read.rounds.map_or(0, NonZeroU32::get);
            (
                rounds,
                read.capture_source_mac,
                read.capture_destination_mac,
            )
        };
        assert_eq!(read(0), (0, false, false));
        assert_eq!(read(7), (7, false, false));
        assert_eq!(read(0x8000_0001), (1, true, false));
        assert_eq!(read(0x4000_0000), (0, false, true));
        assert_eq!(read(u32::MAX), (0x3fff_ffff, true, true));
    }

    #[test]
    fn numbers_that_make_no_sense_are_named() {
        for (name, value, expected) in [
            (
                "speedup",
                json!(0),
                "field 'speedup' is 0; it must be above 0",
            ),
            (
                "speedup",
                json!(-2.5),
                "field 'speedup' is -2.5; it must be above 0",
            ),
            (
                "speedup",
                json!("NaN"),
                "'speedup' is 'string', expecting 'double'",
            ),
            (
                "ipg_usec",
                json!(-0.5),
                "field 'ipg_usec' is -0.5; give 0 or more, or -1",
            ),
            (
                "ipg_usec",
                json!(-2),
                "field 'ipg_usec' is -2; give 0 or more, or -1",
            ),
            (
                "min_ipg_usec",
                json!(-1),
                "field 'min_ipg_usec' is -1; give 0 or more",
            ),
            ("count", json!(-1), "'count' is 'int', expecting 'uint32'"),
            ("count", json!(1_u64 << 32), "field 'count' is 4294967296"),
            ("duration", json!(0), "field 'duration' is 0"),
            ("pcap_filename", json!(""), "names no file; give a path"),
            (
                "pcap_filename",
                json!("a\u{0}b"),
                "names no file; give a path",
            ),
            (
                "is_dual",
                json!(1),
                "'is_dual' is 'int', expecting 'boolean'",
            ),
        ] {
            let said = text(&with(name, value));
            assert!(said.contains(expected), "{said}");
        }
    }
}
