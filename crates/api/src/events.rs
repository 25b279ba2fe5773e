//! Events: what the server tells its sessions without being asked.

use crate::json_schema::JsonSchema;
use serde::Serialize;

use crate::port_attributes::PortAttributes;

/// What a stateful profile does, or all of them together: the number that clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "u8")]
pub enum StatefulPhase {
    /// Nothing is loaded.
    #[default]
    Idle = 0,
    /// It is there and rests.
    Loaded = 1,
    /// Its JSON is read.
    Parse = 2,
    /// Its flows are made ready.
    Build = 3,
    /// Its flows begin, and talk.
    Transmit = 4,
    /// No more flows begin, and those that there are end.
    Cleanup = 5,
    /// It goes.
    Delete = 6,
}

impl From<StatefulPhase> for u8 {
    fn from(phase: StatefulPhase) -> u8 {
        phase as u8
    }
}

/// An event as a session sees it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueuedEvent {
    /// `trex-event`.
    pub name: &'static str,
    /// The number of its type.
    #[serde(rename = "type")]
    pub id: u32,
    /// What has happened: the fields of its type.
    pub data: Event,
    /// Counts from 0 in each session, without gaps.
    pub seq: u64,
}

impl QueuedEvent {
    /// An event, with the session's own sequence number.
    pub fn new(event: Event, seq: u64) -> QueuedEvent {
        QueuedEvent {
            name: "trex-event",
            id: event.id(),
            data: event,
            seq,
        }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Event {
    /// 0: the first profile of a port started.
    PortStarted {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
    },
    /// 1: the last profile of a port was stopped.
    PortStopped {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
    },
    /// 2: the last profile of a port that was transmitting was paused.
    PortPaused {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
    },
    /// 3: the first of a port's paused profiles was resumed.
    PortResumed {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
    },
    /// 4: the last profile of a port has sent everything.
    PortFinished {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
    },
    /// 5: a session took a port.
    PortAcquired {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The user.
        who: String,
        /// The user's session.
        #[serde(rename = "session_id")]
        session: u32,
        /// It was somebody's before.
        force: bool,
    },
    /// 6: a session gave a port back.
    PortReleased {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The user.
        who: String,
        /// The user's session.
        #[serde(rename = "session_id")]
        session: u32,
    },
    /// 7: a data thread broke down while the port transmitted.
    PortError {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The data thread.
        #[serde(rename = "thread_id")]
        thread: usize,
    },
    /// 8: an attribute of a port changed; `attr.link.cause` says why a link is down, and
    /// `attr.link.mtu` which MTU the interface has now, where it is not what it was at the start.
    PortAttributesChanged {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// All attributes, but the layers and the VLAN unless they are what changed.
        #[serde(rename = "attr")]
        attributes: Box<PortAttributes>,
    },
    /// 10: a profile started.
    ProfileStarted {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
    },
    /// 11: a profile was stopped.
    ProfileStopped {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
    },
    /// 12: a profile was paused.
    ProfilePaused {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
    },
    /// 13: a profile was resumed.
    ProfileResumed {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
    },
    /// 14: a profile has sent everything.
    ProfileFinished {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
    },
    /// 17: a data thread broke down while it sent a profile.
    ProfileError {
        /// The port.
        #[serde(rename = "port_id")]
        port: u8,
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
        /// The data thread.
        #[serde(rename = "thread_id")]
        thread: usize,
    },
    /// 50: what all stateful profiles do together has changed.
    StatefulState {
        /// What they do, see [`StatefulPhase`].
        state: StatefulPhase,
        /// How often stateful traffic has begun.
        epoch: u64,
    },
    /// 60: what a stateful profile does has changed.
    StatefulProfileState {
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
        /// What it does.
        state: StatefulPhase,
        /// How often stateful traffic has begun.
        epoch: u64,
        /// Why it came to this, if something went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// 61: a stateful profile is gone.
    StatefulProfileCleared {
        /// The profile.
        #[serde(rename = "profile_id")]
        profile: String,
        /// How often stateful traffic has begun.
        epoch: u64,
    },
    /// 100: the server is about to end.
    ServerStopped {
        /// Why.
        cause: String,
    },
}

impl Event {
    /// Whether it is about flows: TRex's stateless client breaks down when it hears of them.
    pub fn is_of_flows(&self) -> bool {
        matches!(
            self,
            Event::StatefulState { .. }
                | Event::StatefulProfileState { .. }
                | Event::StatefulProfileCleared { .. }
        )
    }

    /// The number of the event's type.
    pub fn id(&self) -> u32 {
        match self {
            Event::PortStarted { .. } => 0,
            Event::PortStopped { .. } => 1,
            Event::PortPaused { .. } => 2,
            Event::PortResumed { .. } => 3,
            Event::PortFinished { .. } => 4,
            Event::PortAcquired { .. } => 5,
            Event::PortReleased { .. } => 6,
            Event::PortError { .. } => 7,
            Event::PortAttributesChanged { .. } => 8,
            Event::ProfileStarted { .. } => 10,
            Event::ProfileStopped { .. } => 11,
            Event::ProfilePaused { .. } => 12,
            Event::ProfileResumed { .. } => 13,
            Event::ProfileFinished { .. } => 14,
            Event::ProfileError { .. } => 17,
            Event::StatefulState { .. } => 50,
            Event::StatefulProfileState { .. } => 60,
            Event::StatefulProfileCleared { .. } => 61,
            Event::ServerStopped { .. } => 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_looks_like_trex_s() {
        let event = Event::ProfileFinished {
            port: 0,
            profile: "_".into(),
        };
        assert_eq!(
            json!(QueuedEvent::new(event, 6)),
            json!({"data": {"port_id": 0, "profile_id": "_"}, "name": "trex-event", "seq": 6, "type": 14})
        );
    }
}
