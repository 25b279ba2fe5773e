//! The limits of the RPC. What happens at each is written beside it on the reference page.

/// Most bytes of a request, zipped and plain.
pub const REQUEST_BYTES_MAX: usize = 999_999;
/// Most messages of one client that are not answered.
pub const MESSAGES_PER_PEER_MAX: usize = 16;
/// Most messages of all clients that are not answered.
pub const MESSAGES_MAX: usize = 256;
/// Most requests of a batch.
pub const BATCH_REQUESTS_MAX: usize = 32_768;
/// Most bytes of the replies to one message.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
/// Most bytes of the replies to all messages that are not answered.
pub const REPLIES_BYTES_MAX: usize = 256 << 20;
/// Most sessions with an event queue.
pub const SESSIONS_MAX: usize = 256;
/// Most events that one session has not fetched.
pub const EVENTS_MAX: usize = 4096;
/// A session with events to fetch that is silent for longer is taken for gone, in seconds.
pub const SESSION_SILENCE_S_MAX: u64 = 10;
/// Most profiles on a port.
pub const PROFILES_MAX: usize = 128;
/// Longest name of a profile, in bytes.
pub const PROFILE_NAME_BYTES_MAX: usize = 128;
/// Most UDP ports of VXLAN that a port is told besides 4789.
pub const VXLAN_PORTS_MAX: usize = 8;
/// Most streams of a profile.
pub const STREAMS_MAX: usize = 20_000;
/// Longest name of a user, in bytes.
pub const USER_BYTES_MAX: usize = 256;
/// Shortest lease of a port or a server, in seconds.
pub const LEASE_S_MIN: f64 = 1.0;
/// Longest lease of a port or a server, in seconds.
pub const LEASE_S_MAX: f64 = 3600.0;
/// Most packet groups in one request.
pub const PGIDS_MAX: usize = 1152;
/// Longest JSON of a stateful profile, in bytes.
pub const STATEFUL_PROFILE_BYTES_MAX: usize = 64 << 20;
/// Longest JSON of all stateful profiles that are loaded, in bytes.
pub const STATEFUL_PROFILES_BYTES_MAX: usize = 512 << 20;
/// Most stateful profiles, the default one among them.
pub const STATEFUL_PROFILES_MAX: usize = 1024;
/// Longest JSON of a topology, in bytes.
pub const TOPOLOGY_BYTES_MAX: usize = 64 << 20;
/// Most virtual interfaces, and most gateways, of a topology.
pub const TOPOLOGY_ENTRIES_MAX: usize = 100_000;
/// Most template groups in one request.
pub const GROUPS_ASKED_MAX: usize = 10;
/// Most MAC addresses, and most IPv4 addresses, that get no answer.
pub const IGNORED_MAX: usize = 1000;
/// Most clients that one request asks about.
pub const CLIENTS_ASKED_MAX: usize = 1 << 16;
/// Most ranges of clients that are disabled.
pub const DISABLED_RANGES_MAX: usize = 10_000;
/// Most packets that a capture or a receive queue keeps.
pub const CAPTURE_PACKETS_MAX: u32 = 1_000_000;
/// Most captures at a time.
pub const CAPTURES_MAX: usize = 10;
/// Most packets in one reply. With what base64 and JSON add, a reply of jumbo frames has 13 MB.
pub const FETCHED_PACKETS_MAX: usize = 1000;

/// Largest capture file that the server reads, in bytes.
pub const CAPTURE_FILE_BYTES_MAX: u64 = 1 << 30;

/// The limits for the reference page: what, how much, what happens beyond it.
pub fn table() -> Vec<(&'static str, String, &'static str)> {
    let mut table = message_table();
    table.extend(stateless_table());
    table.extend(stateful_table());
    table
}

fn message_table() -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "a request, compressed or plain",
            format!("{REQUEST_BYTES_MAX} bytes"),
            "an error",
        ),
        (
            "messages of one client, and of all, that are not answered",
            format!("{MESSAGES_PER_PEER_MAX} and {MESSAGES_MAX}"),
            "an error at once; earlier ones are answered",
        ),
        (
            "requests of a batch",
            BATCH_REQUESTS_MAX.to_string(),
            "an error for the batch",
        ),
        (
            "replies to one message, and to all that are not answered",
            format!("{REPLY_BYTES_MAX} and {REPLIES_BYTES_MAX} bytes"),
            "an error for each request that is left of a batch",
        ),
        (
            "sessions with an event queue",
            SESSIONS_MAX.to_string(),
            "the one that has been silent longest and owns no port goes; if all own ports, an error",
        ),
        (
            "events in a session's queue",
            EVENTS_MAX.to_string(),
            "later events are not queued until it is read",
        ),
        (
            "silence of a session with events in its queue",
            format!("{SESSION_SILENCE_S_MAX} s"),
            "a reader is forgotten; an owner gets no further events until it reads",
        ),
    ]
}

fn stateless_table() -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "profiles of a port",
            PROFILES_MAX.to_string(),
            "profiles without streams are forgotten; if there are none, an error",
        ),
        (
            "the name of a profile",
            format!("{PROFILE_NAME_BYTES_MAX} bytes"),
            "an error",
        ),
        ("captures at a time", CAPTURES_MAX.to_string(), "an error"),
        (
            "packets that a capture or a receive queue keeps",
            CAPTURE_PACKETS_MAX.to_string(),
            "an error when it is asked for",
        ),
        (
            "packets fetched from a capture at once",
            FETCHED_PACKETS_MAX.to_string(),
            "the others stay in the capture",
        ),
        (
            "UDP ports of VXLAN, besides 4789",
            VXLAN_PORTS_MAX.to_string(),
            "an error",
        ),
        ("streams of a profile", STREAMS_MAX.to_string(), "an error"),
        (
            "a capture file to be sent",
            format!("{CAPTURE_FILE_BYTES_MAX} bytes"),
            "an error",
        ),
        (
            "the name of a user",
            format!("{USER_BYTES_MAX} bytes"),
            "an error",
        ),
        (
            "a lease",
            format!("{LEASE_S_MIN} to {LEASE_S_MAX} s"),
            "an error",
        ),
    ]
}

fn stateful_table() -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "the JSON of a stateful profile",
            format!("{STATEFUL_PROFILE_BYTES_MAX} bytes"),
            "an error",
        ),
        (
            "the JSON of all stateful profiles together",
            format!("{STATEFUL_PROFILES_BYTES_MAX} bytes"),
            "an error",
        ),
        (
            "stateful profiles",
            STATEFUL_PROFILES_MAX.to_string(),
            "an error",
        ),
        (
            "the JSON of a topology",
            format!("{TOPOLOGY_BYTES_MAX} bytes"),
            "an error",
        ),
        (
            "virtual interfaces, and gateways, of a topology",
            TOPOLOGY_ENTRIES_MAX.to_string(),
            "an error",
        ),
        (
            "template groups asked about at once",
            GROUPS_ASKED_MAX.to_string(),
            "an error",
        ),
        (
            "MAC addresses, and IPv4 addresses, that get no answer",
            IGNORED_MAX.to_string(),
            "an error",
        ),
        (
            "stateful clients asked about at once",
            CLIENTS_ASKED_MAX.to_string(),
            "an error",
        ),
        (
            "ranges of stateful clients that are disabled",
            DISABLED_RANGES_MAX.to_string(),
            "an error",
        ),
    ]
}
