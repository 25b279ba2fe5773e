//! Commands about what a port receives: service mode and the receive queue.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::captures::FetchedPacket;
use crate::commands::ports::PortParams;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::CAPTURE_PACKETS_MAX;
use crate::method::{CaptureMethod, Method};
use serde::{Deserialize, Serialize};

/// Parameters of `service`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Service {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// On or off.
    pub enabled: bool,
    /// On for some classes of frames only, whatever `enabled` says.
    #[serde(default)]
    pub filtered: bool,
    /// Those classes, as bits: 1 neither TCP nor UDP, 2 BGP, 4 DHCP, 8 all TCP and UDP, 16 mDNS.
    #[serde(default)]
    pub mask: u8,
}

/// Parameters of `set_rx_feature`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct RxFeatureParams {
    /// Which feature.
    #[serde(rename = "type")]
    pub feature: RxFeature,
    /// On or off.
    pub enabled: bool,
    /// Frames that the queue keeps.
    #[schemars(extend("x-only" = "to switch a queue on"))]
    pub size: Option<u32>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// A feature of what a port receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RxFeature {
    /// The receive queue.
    Queue,
    /// What TRex's servers answer themselves.
    Server,
    /// A proxy between wireless clients and their access points.
    CapwapProxy,
}

impl RxFeature {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            RxFeature::Queue => "queue",
            RxFeature::Server => "server",
            RxFeature::CapwapProxy => "capwap_proxy",
        }
    }
}

/// What `set_rx_feature` is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetRxFeature {
    /// The port.
    pub port: u8,
    /// The feature.
    pub feature: RxFeature,
    /// On or off.
    pub enabled: bool,
    /// Frames that the queue keeps; 0 for other features, and when it is off.
    pub size: u32,
}

impl SetRxFeature {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetRxFeature, FieldError> {
        let params: RxFeatureParams = fields.read()?;
        let size = match params.feature {
            RxFeature::Queue if params.enabled => fields.required("size", params.size)?,
            _ => 0,
        };
        let is_queue = params.enabled && params.feature == RxFeature::Queue;
        if is_queue && !(1..=CAPTURE_PACKETS_MAX).contains(&size) {
            let problem = format!("is {size}; give 1 to {CAPTURE_PACKETS_MAX} packets");
            return Err(fields.bad("size", problem));
        }
        Ok(SetRxFeature {
            port: params.port,
            feature: params.feature,
            enabled: params.enabled,
            size,
        })
    }
}

/// Reply of `get_rx_queue_pkts`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RxQueuePackets {
    /// The packets, the oldest first.
    pub pkts: Vec<FetchedPacket>,
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
        types: Types::of::<Service, Empty>(),
        errors: &["no such port", "the port is not yours"],
        example: Example {
            params: r#"{"port_id": 0, "enabled": true, "filtered": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Capture(CaptureMethod::SetRxFeature),
        name: "set_rx_feature",
        access: Access::Api,
        doc: "Switches a receive feature. `queue` keeps the last `size` frames that the port \
              receives; switching it on needs service mode and empties it. `server` and \
              `capwap_proxy` can only be switched off: this server does without the first, and \
              the second is not supported.",
        types: Types::of::<RxFeatureParams, Empty>(),
        errors: &[
            "no such port",
            "a queue without service mode",
            "a feature that cannot be switched on",
        ],
        example: Example {
            params: r#"{"port_id": 0, "type": "queue", "enabled": true, "size": 100}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Capture(CaptureMethod::RxQueuePackets),
        name: "get_rx_queue_pkts",
        access: Access::Api,
        doc: "Takes all frames out of the receive queue of a port in service mode.",
        types: Types::of::<PortParams, RxQueuePackets>(),
        errors: &["no such port", "no service mode", "no receive queue"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"pkts": [{"ts": 47.898, "binary": "AgAAAAAC", "port": 0, "index": 1, "wirelen": 60, "origin": "RX"}]}"#,
        },
    },
];
