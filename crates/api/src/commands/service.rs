//! Commands about what a port receives: service mode and the receive queue.

use crate::command::{Access, Command, Example, Kind, PORT_ID, Param};
use crate::commands::ports::port_id;
use crate::fields::{FieldError, Fields};
use crate::limits::CAPTURE_PACKETS_MAX;
use crate::method::{CaptureMethod, Method};

/// Parameters of `service`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The port.
    pub port: u8,
    /// On or off.
    pub enabled: bool,
    /// On, for the classes of frames in `mask` only.
    pub filtered: bool,
    /// Classes of frames, as bits.
    pub mask: u8,
}

impl Service {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<Service, FieldError> {
        Ok(Service {
            port: port_id(fields)?,
            enabled: fields.boolean("enabled")?,
            filtered: fields.optional("filtered", Fields::boolean)? == Some(true),
            mask: fields.optional("mask", Fields::byte)?.unwrap_or(0),
        })
    }
}

/// Parameters of `set_rx_feature`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetRxFeature {
    /// The port.
    pub port: u8,
    /// `queue`, `server` or `capwap_proxy`.
    pub feature: &'static str,
    /// On or off.
    pub enabled: bool,
    /// Frames that the queue keeps; 0 for other features, and when it is off.
    pub size: u32,
}

impl SetRxFeature {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetRxFeature, FieldError> {
        let feature = fields.one_of("type", &["queue", "server", "capwap_proxy"])?;
        let enabled = fields.boolean("enabled")?;
        let size = match (feature, enabled) {
            ("queue", true) => fields.uint32("size")?,
            _ => 0,
        };
        if enabled && feature == "queue" && !(1..=CAPTURE_PACKETS_MAX).contains(&size) {
            let problem = format!("is {size}; give 1 to {CAPTURE_PACKETS_MAX} packets");
            return Err(fields.bad("size", problem));
        }
        Ok(SetRxFeature {
            port: port_id(fields)?,
            feature,
            enabled,
            size,
        })
    }
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Capture(CaptureMethod::Service),
        name: "service",
        access: Access::Owner,
        doc: "Service mode: the port answers echo requests to its addresses, and may have a \
              receive queue. A filtered port shows only some classes of frames to queues and \
              captures. (ARP requests and neighbour solicitations are answered in any mode.)",
        params: &[
            PORT_ID,
            Param::required("enabled", Kind::Boolean, "On or off."),
            Param::optional(
                "filtered",
                Kind::Boolean,
                "false",
                "On for some classes of frames only, whatever `enabled` says.",
            ),
            Param::optional(
                "mask",
                Kind::Byte,
                "0",
                "Those classes, as bits: 1 neither TCP nor UDP, 2 BGP, 4 DHCP, 8 all TCP and UDP, \
                 16 mDNS.",
            ),
        ],
        reply: "`{}`.",
        errors: &["no such port", "the port is not yours"],
        example: Example {
            params: r#"{"port_id": 0, "enabled": true, "filtered": false}"#,
            result: "{}",
        },
        check: |f| Service::parse(f).map(drop),
    },
    Command {
        method: Method::Capture(CaptureMethod::SetRxFeature),
        name: "set_rx_feature",
        access: Access::Api,
        doc: "Switches a receive feature. `queue` keeps the last `size` frames that the port \
              receives; switching it on needs service mode and empties it. `server` and \
              `capwap_proxy` can only be switched off: this server does without the first, and \
              the second is not supported.",
        params: &[
            PORT_ID,
            Param::required("type", Kind::String, "`queue`, `server` or `capwap_proxy`."),
            Param::required("enabled", Kind::Boolean, "On or off."),
            Param::sometimes(
                "size",
                Kind::Uint32,
                "to switch a queue on",
                "Frames that the queue keeps.",
            ),
        ],
        reply: "`{}`.",
        errors: &[
            "no such port",
            "a queue without service mode",
            "a feature that cannot be switched on",
        ],
        example: Example {
            params: r#"{"port_id": 0, "type": "queue", "enabled": true, "size": 100}"#,
            result: "{}",
        },
        check: |f| SetRxFeature::parse(f).map(drop),
    },
    Command {
        method: Method::Capture(CaptureMethod::RxQueuePackets),
        name: "get_rx_queue_pkts",
        access: Access::Api,
        doc: "Takes all frames out of the receive queue of a port in service mode.",
        params: &[PORT_ID],
        reply: "`pkts`: a list as in the reply of `capture` with `fetch`.",
        errors: &["no such port", "no service mode", "no receive queue"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"pkts": [{"ts": 47.898, "binary": "AgAAAAAC", "port": 0, "index": 1, "wirelen": 60, "origin": "RX"}]}"#,
        },
        check: |f| port_id(f).map(drop),
    },
];
