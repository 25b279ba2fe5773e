//! Events: what the server tells its sessions without being asked.

use serde_json::{Value, json};

/// What a stateful profile does, or all of them together: the number that clients see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// 0: the first profile of a port started.
    PortStarted {
        /// The port.
        port: u8,
    },
    /// 1: the last profile of a port was stopped.
    PortStopped {
        /// The port.
        port: u8,
    },
    /// 2: the last profile of a port that was transmitting was paused.
    PortPaused {
        /// The port.
        port: u8,
    },
    /// 3: the first of a port's paused profiles was resumed.
    PortResumed {
        /// The port.
        port: u8,
    },
    /// 4: the last profile of a port has sent everything.
    PortFinished {
        /// The port.
        port: u8,
    },
    /// 5: a session took a port.
    PortAcquired {
        /// The port.
        port: u8,
        /// The user.
        who: String,
        /// The user's session.
        session: u32,
        /// It was somebody's before.
        force: bool,
    },
    /// 6: a session gave a port back.
    PortReleased {
        /// The port.
        port: u8,
        /// The user.
        who: String,
        /// The user's session.
        session: u32,
    },
    /// 7: a data thread broke down while the port transmitted.
    PortError {
        /// The port.
        port: u8,
        /// The data thread.
        thread: usize,
    },
    /// 8: an attribute of a port changed.
    PortAttributesChanged {
        /// The port.
        port: u8,
        /// All attributes but the layers and the VLAN.
        attributes: Value,
    },
    /// 10: a profile started.
    ProfileStarted {
        /// The port.
        port: u8,
        /// The profile.
        profile: String,
    },
    /// 11: a profile was stopped.
    ProfileStopped {
        /// The port.
        port: u8,
        /// The profile.
        profile: String,
    },
    /// 12: a profile was paused.
    ProfilePaused {
        /// The port.
        port: u8,
        /// The profile.
        profile: String,
    },
    /// 13: a profile was resumed.
    ProfileResumed {
        /// The port.
        port: u8,
        /// The profile.
        profile: String,
    },
    /// 14: a profile has sent everything.
    ProfileFinished {
        /// The port.
        port: u8,
        /// The profile.
        profile: String,
    },
    /// 17: a data thread broke down while it sent a profile.
    ProfileError {
        /// The port.
        port: u8,
        /// The profile.
        profile: String,
        /// The data thread.
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
        profile: String,
        /// What it does.
        state: StatefulPhase,
        /// How often stateful traffic has begun.
        epoch: u64,
        /// Why it came to this, if something went wrong.
        error: Option<String>,
    },
    /// 61: a stateful profile is gone.
    StatefulProfileCleared {
        /// The profile.
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

    /// The event as a session sees it, with the session's own sequence number.
    pub fn to_json(&self, seq: u64) -> Value {
        json!({"name": "trex-event", "type": self.id(), "data": self.data(), "seq": seq})
    }

    fn data(&self) -> Value {
        match self {
            Event::PortStarted { port }
            | Event::PortStopped { port }
            | Event::PortPaused { port }
            | Event::PortResumed { port }
            | Event::PortFinished { port } => json!({"port_id": port}),
            Event::PortAcquired {
                port,
                who,
                session,
                force,
            } => json!({"port_id": port, "who": who, "session_id": session, "force": force}),
            Event::PortReleased { port, who, session } => {
                json!({"port_id": port, "who": who, "session_id": session})
            }
            Event::PortError { port, thread } => json!({"port_id": port, "thread_id": thread}),
            Event::PortAttributesChanged { port, attributes } => {
                json!({"port_id": port, "attr": attributes})
            }
            Event::ProfileStarted { port, profile }
            | Event::ProfileStopped { port, profile }
            | Event::ProfilePaused { port, profile }
            | Event::ProfileResumed { port, profile }
            | Event::ProfileFinished { port, profile } => {
                json!({"port_id": port, "profile_id": profile})
            }
            Event::ProfileError {
                port,
                profile,
                thread,
            } => json!({"port_id": port, "profile_id": profile, "thread_id": thread}),
            Event::StatefulState { state, epoch } => json!({"state": *state as u8, "epoch": epoch}),
            Event::StatefulProfileState {
                profile,
                state,
                epoch,
                error,
            } => {
                let mut data =
                    json!({"profile_id": profile, "state": *state as u8, "epoch": epoch});
                if let Some(error) = error {
                    data["error"] = json!(error);
                }
                data
            }
            Event::StatefulProfileCleared { profile, epoch } => {
                json!({"profile_id": profile, "epoch": epoch})
            }
            Event::ServerStopped { cause } => json!({"cause": cause}),
        }
    }
}

/// The event types, for the reference page: number, name, data.
pub const TYPES: &[(u32, &str, &str)] = &[
    (0, "the first profile of a port started", "port_id"),
    (1, "the last profile of a port was stopped", "port_id"),
    (
        2,
        "the last profile of a port that was transmitting was paused",
        "port_id",
    ),
    (
        3,
        "the first of a port's paused profiles was resumed",
        "port_id",
    ),
    (
        4,
        "the last profile of a port has sent everything",
        "port_id",
    ),
    (
        5,
        "a session took a port",
        "port_id, who, session_id, force",
    ),
    (6, "a session gave a port back", "port_id, who, session_id"),
    (
        7,
        "a data thread broke down while the port transmitted",
        "port_id, thread_id",
    ),
    (
        8,
        "an attribute of a port changed; `attr.link.cause` says why a link is down, and \
         `attr.link.mtu` which MTU the interface has now, where it is not what it was at the start",
        "port_id, attr",
    ),
    (10, "a profile started", "port_id, profile_id"),
    (11, "a profile was stopped", "port_id, profile_id"),
    (12, "a profile was paused", "port_id, profile_id"),
    (13, "a profile was resumed", "port_id, profile_id"),
    (14, "a profile has sent everything", "port_id, profile_id"),
    (
        17,
        "a data thread broke down while it sent a profile",
        "port_id, profile_id, thread_id",
    ),
    (
        50,
        "what all stateful profiles do together has changed",
        "state, epoch",
    ),
    (
        60,
        "what a stateful profile does has changed",
        "profile_id, state, epoch, error",
    ),
    (61, "a stateful profile is gone", "profile_id, epoch"),
    (100, "the server is about to end", "cause"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_looks_like_trex_s() {
        let event = Event::ProfileFinished {
            port: 0,
            profile: "_".into(),
        };
        assert_eq!(
            event.to_json(6),
            json!({"data": {"port_id": 0, "profile_id": "_"}, "name": "trex-event", "seq": 6, "type": 14})
        );
    }
}
