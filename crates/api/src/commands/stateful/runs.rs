//! Commands that start, stop and change stateful traffic, and ask about its flows.

use super::profiles::STATEFUL_PROFILE_ID;
use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::commands::ports::profile_id;
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatefulMethod};

/// Parameters of `start`.
#[derive(Clone, Debug, PartialEq)]
pub struct StartProfile {
    /// The profile.
    pub profile: String,
    /// How long flows begin, in seconds; `None` is until it is stopped.
    pub duration_s: Option<f64>,
    /// What the connections per second are multiplied by; above 0.
    pub factor: f64,
    /// Ends what flows there are when the duration is over, instead of waiting for them.
    pub no_close: bool,
    /// Packets per second that measure latency beside.
    pub latency_pps: u32,
    /// All addresses are made IPv6.
    pub ipv6: bool,
    /// The ports whose clients begin flows, as bits.
    pub client_mask: u32,
    /// How long to wait for the first flow to be established, in seconds.
    pub establish_s_max: Option<f64>,
    /// How long flows may take to end, in seconds.
    pub close_s_max: Option<f64>,
    /// Between two records of flows, in seconds.
    pub record_interval_s: Option<f64>,
}

impl StartProfile {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<StartProfile, FieldError> {
        let duration_s = fields.double("duration")?;
        Ok(StartProfile {
            profile: profile_id(fields)?,
            duration_s: (duration_s >= 0.0).then_some(seconds(fields, "duration", duration_s)?),
            factor: factor(fields)?,
            no_close: fields.boolean("nc")?,
            latency_pps: fields.uint32("latency_pps")?,
            ipv6: fields.boolean("ipv6")?,
            client_mask: fields.uint32("client_mask")?,
            establish_s_max: limit(fields, "e_duration")?,
            close_s_max: close_limit(fields)?,
            record_interval_s: limit(fields, "dump_interval")?,
        })
    }
}

/// Parameters of `update`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateProfile {
    /// The profile.
    pub profile: String,
    /// What the connections per second are multiplied by; above 0.
    pub factor: f64,
}

impl UpdateProfile {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<UpdateProfile, FieldError> {
        Ok(UpdateProfile {
            profile: profile_id(fields)?,
            factor: fields.double("mult")?,
        })
    }
}

/// Parameters of `get_flow_info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// The profile.
    pub profile: String,
    /// The number of the first record that is wanted.
    pub index: u64,
}

impl FlowInfo {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<FlowInfo, FieldError> {
        Ok(FlowInfo {
            profile: profile_id(fields)?,
            index: fields.optional("index", Fields::uint64)?.unwrap_or(0),
        })
    }
}

/// Longest times: about 31 years, which as nanoseconds is a 64-bit number still.
const SECONDS_MAX: f64 = 1e9;
/// Largest multiplier.
const FACTOR_MAX: f64 = 1e9;

fn seconds(fields: &Fields<'_>, name: &str, value: f64) -> Result<f64, FieldError> {
    if value > SECONDS_MAX {
        let problem = format!("is {value}; give at most {SECONDS_MAX} seconds");
        return Err(fields.bad(name, problem));
    }
    Ok(value)
}

fn factor(fields: &Fields<'_>) -> Result<f64, FieldError> {
    let factor = fields.double("mult")?;
    if factor > 0.0 && factor <= FACTOR_MAX {
        return Ok(factor);
    }
    let problem = format!("is {factor}; give a number above 0, at most {FACTOR_MAX}");
    Err(fields.bad("mult", problem))
}

/// A time that 0 or nothing switches off.
fn limit(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, FieldError> {
    let Some(value) = fields.optional(name, Fields::double)? else {
        return Ok(None);
    };
    seconds(fields, name, value).map(|value| Some(value).filter(|value| *value > 0.0))
}

/// Negative is: at once.
fn close_limit(fields: &Fields<'_>) -> Result<Option<f64>, FieldError> {
    let given = fields.optional("t_duration", Fields::double)?;
    let given = given.filter(|value| *value != 0.0);
    let Some(value) = given else { return Ok(None) };
    seconds(fields, "t_duration", value.max(0.0)).map(Some)
}

const MULT: Param = Param::required(
    "mult",
    Kind::Double,
    "What the connections per second of all templates are multiplied by, above 0.",
);

const OUTCOMES: &str = "`client` and `server`: how many of their flows are `completed` (the program came to its \
     end, and all that it sent was acknowledged), and how many ended before: `reset` by the peer, \
     `closed_early` (the peer closed in order while the program waited for data, or had some to \
     deliver), `timed_out` (the peer was silent), `refused` (a reset answered the SYN), `cut_off` (by \
     the end of the test), `aborted` (we gave it up for want of room, or could not handle what came). A \
     server is `completed`, too, when its peer closes between two requests. `unanswered`: flows \
     whose program waits for data, and that ended without any. `http_1xx` to `http_5xx`: answers \
     to requests of HTTP/1 by the class of their status, and `http_other`: those that begin with no \
     status line. `groups`: the same by the name of the template group. `times` of flows that clients \
     began: `connect` (TCP: from the SYN to the connection), `first_byte` (from the beginning to the \
     first data), `program` (from the beginning to the end of the program, of flows that completed), \
     each with `count`, and where that is not 0 `min_us`, `average_us`, `max_us`, `p50_us`, `p90_us`, \
     `p99_us`, `p99_9_us`: percentiles are right within a few percent.";
const OUTCOMES_EXAMPLE: &str = r#"{"client": {"completed": 98, "reset": 0, "closed_early": 0, "timed_out": 2, "refused": 0, "cut_off": 0, "aborted": 0, "unanswered": 2, "http_1xx": 0, "http_2xx": 98, "http_3xx": 0, "http_4xx": 0, "http_5xx": 0, "http_other": 0}, "server": {"completed": 98, "reset": 0, "closed_early": 0, "timed_out": 0, "refused": 0, "cut_off": 0, "aborted": 0, "unanswered": 0, "http_1xx": 0, "http_2xx": 0, "http_3xx": 0, "http_4xx": 0, "http_5xx": 0, "http_other": 0}, "groups": {}, "times": {"connect": {"count": 98, "min_us": 80.9, "average_us": 95.2, "max_us": 310.3, "p50_us": 92.2, "p90_us": 101.4, "p99_us": 188.4, "p99_9_us": 310.3}, "first_byte": {"count": 98, "min_us": 160.8, "average_us": 188.4, "max_us": 420.9, "p50_us": 184.3, "p90_us": 204.8, "p99_us": 376.8, "p99_9_us": 420.9}, "program": {"count": 0}}}"#;

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::Start),
        name: "start",
        access: Access::Context,
        doc: "Starts a profile: events 60 with states 2 (unless it was read before), 3 and 4. When \
              its JSON is wrong or a gateway is not known: then 1 with `error`. When the duration is over and all flows \
              have ended: 5 and 1.",
        types: Types::prose(
            &[
                STATEFUL_PROFILE_ID,
                Param::required(
                    "duration",
                    Kind::Double,
                    "How long flows begin, in seconds; negative: until it is stopped.",
                ),
                MULT,
                Param::required(
                    "nc",
                    Kind::Boolean,
                    "End the flows that there are with the duration, instead of waiting for them.",
                ),
                Param::required(
                    "latency_pps",
                    Kind::Uint32,
                    "Packets per second of each client port that measure latency; 0 is none.",
                ),
                Param::required(
                    "ipv6",
                    Kind::Boolean,
                    "Make all addresses IPv6, with the prefixes of the profile.",
                ),
                Param::required(
                    "client_mask",
                    Kind::Uint32,
                    "The ports whose clients begin flows, as bits.",
                ),
                Param::optional(
                    "e_duration",
                    Kind::Double,
                    "0",
                    "Give up when no flow is established so many seconds after the start; 0 is never.",
                ),
                Param::optional(
                    "t_duration",
                    Kind::Double,
                    "0",
                    "How long flows may take to end after the duration, in seconds; 0 is as long as it \
                 takes, negative is no time.",
                ),
                Param::optional(
                    "dump_interval",
                    Kind::Double,
                    "0",
                    "Record the flows every so many seconds for `get_flow_info`; 0 is never.",
                ),
            ],
            "`null`.",
            |f| StartProfile::parse(f).map(drop),
        ),
        errors: &[
            "no such profile",
            "it is not loaded, or runs",
            "no data thread is left",
        ],
        example: Example {
            params: r#"{"profile_id": "_", "duration": 10, "mult": 5, "nc": false, "latency_pps": 0, "ipv6": false, "client_mask": 4294967295, "e_duration": 0, "t_duration": 0, "dump_interval": 0}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Stop),
        name: "stop",
        access: Access::Context,
        doc: "Stops a profile: no more flows begin, and those that there are end: at once if it was \
              started with `nc`, and after 5 s at the latest unless `t_duration` was given. Events 60 with states 5 and 1. A profile that is stopping ends its \
              flows at once; one that ended less than 2 s ago tells so again; any other is left alone.",
        types: Types::prose(&[STATEFUL_PROFILE_ID], "`null`.", |f| {
            profile_id(f).map(drop)
        }),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Update),
        name: "update",
        access: Access::Context,
        doc: "Gives a profile that runs or starts another multiplier, in place of the one that it has.",
        types: Types::prose(&[STATEFUL_PROFILE_ID, MULT], "`null`.", |f| {
            UpdateProfile::parse(f).map(drop)
        }),
        errors: &[
            "no such profile",
            "it does not run",
            "`mult` is not above 0",
        ],
        example: Example {
            params: r#"{"profile_id": "_", "mult": 20}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::FlowRates),
        name: "get_flow_rates",
        access: Access::Api,
        doc: "What a profile was asked for against what it does. A server of TRex does not know this \
              command. Connections that could not begin in time are missed: they are not made up \
              for later.",
        types: Types::prose(
            &[STATEFUL_PROFILE_ID],
            "`offered_cps`: connections per second that the profile asks for now, with its \
                multiplier and on the client ports that take part. `begun_cps` and \
                `achieved_cps`: those that began and those that were established over the last \
                second. `begun`, `established`, `missed`: how many since the start. \
                `duration_s`: since the start, or until the end. \
                `ended_by`: `done`, `stopped` or `not established`; `null` while it runs. `hosts`: \
                how many emulated clients were ready when it began, of all its pools of such.",
            |f| profile_id(f).map(drop),
        ),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: r#"{"offered_cps": 100.0, "begun_cps": 99.0, "achieved_cps": 98.0, "begun": 500, "established": 490, "missed": 0, "duration_s": 5.0, "ended_by": null, "hosts": 0}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::FlowOutcomes),
        name: "get_flow_outcomes",
        access: Access::Api,
        doc: "How the flows of a profile ended, since its last start: each end that is ours in one way. A \
              server of TRex does not know this command. A flow is counted when its program has come to \
              its end and all that it sent is acknowledged, or at the latest when it is over: flows that \
              are not there yet are still going on.",
        types: Types::prose(&[STATEFUL_PROFILE_ID], OUTCOMES, |f| {
            profile_id(f).map(drop)
        }),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: OUTCOMES_EXAMPLE,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::FlowInfo),
        name: "get_flow_info",
        access: Access::Api,
        doc: "What TCP knows of the flows of a profile that was started with `dump_interval`. Records \
              of the last ten seconds are kept, also after the end.",
        types: Types::prose(
            &[
                STATEFUL_PROFILE_ID,
                Param::optional(
                    "index",
                    Kind::Uint64,
                    "0",
                    "The number of the first record that is wanted.",
                ),
            ],
            "A list, a record each: `index` is its number; for each flow, by \
                `address:port-address:port`, an object with `origin` (`client` or `server`), \
                `duration` (ms), `state` (of TCP, as a number), `options`, `snd_wscale`, \
                `rcv_wscale`, `rto`, `last_data_recv`, `rtt`, `rttvar` (ms), `snd_ssthresh`, \
                `snd_cwnd`, `rcv_space`, `snd_wnd` (bytes), `rcv_nxt`, `snd_nxt` (sequence numbers), \
                `snd_mss`, `rcv_mss`, `snd_rexmitpack`, `rcv_ooopack`, `snd_zerowin`.",
            |f| FlowInfo::parse(f).map(drop),
        ),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_", "index": 0}"#,
            result: r#"[{"index": 0, "16.0.0.1:1024-48.0.0.1:80": {"origin": "client", "duration": 120, "state": 4}}]"#,
        },
    },
];
