//! Commands that read the counters of stateful traffic.

use std::collections::BTreeMap;

use super::profiles::StatefulProfile;
use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::ports::default_profile;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::GROUPS_ASKED_MAX;
use crate::method::{Method, StatefulMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `get_dynamic_counter_desc`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DynamicDescriptionsParams {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// Of all profiles together.
    #[serde(default)]
    pub is_sum: bool,
}

/// What `get_dynamic_counter_desc` is asked for: a profile, or the sum of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DynamicDescriptions {
    /// Of all profiles together.
    Sum,
    /// Of one.
    Profile(String),
}

impl DynamicDescriptions {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<DynamicDescriptions, FieldError> {
        let params: DynamicDescriptionsParams = fields.read()?;
        Ok(match params.is_sum {
            true => DynamicDescriptions::Sum,
            false => DynamicDescriptions::Profile(params.profile),
        })
    }
}

/// Parameters of the commands that read dynamic counters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DynamicValues {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The epoch of the descriptions that the client knows already.
    pub epoch: u64,
}

/// Parameters of `get_tg_names`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct GroupNamesParams {
    /// The client knows them, as of `epoch`.
    #[serde(rename = "initialized")]
    pub is_known: bool,
    /// As of when it knows them; needed when it does.
    #[schemars(extend("x-default" = "none"))]
    pub epoch: Option<u64>,
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
}

/// What `get_tg_names` is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNames {
    /// The profile.
    pub profile: String,
    /// The epoch of the names that the client has; `None` when it has none.
    pub known_epoch: Option<u64>,
}

impl GroupNames {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<GroupNames, FieldError> {
        let params: GroupNamesParams = fields.read()?;
        if params.is_known && params.epoch.is_none() {
            return Err(fields.bad("epoch", "is missing; it belongs to what is known"));
        }
        Ok(GroupNames {
            profile: params.profile,
            known_epoch: params.epoch.filter(|_| params.is_known),
        })
    }
}

/// Parameters of `get_tg_id_stats`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TemplateGroupStats {
    /// Numbers of groups, at most 10; the first is 1.
    #[serde(rename = "tg_ids", deserialize_with = "groups")]
    pub groups: Vec<u32>,
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The epoch of the names that the client knows already.
    pub epoch: u64,
}

fn groups<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let groups = Vec::<u32>::deserialize(deserializer)?;
    if groups.len() > GROUPS_ASKED_MAX {
        return Err(D::Error::custom(format_args!(
            "has {} groups; ask for at most {GROUPS_ASKED_MAX} at once",
            groups.len()
        )));
    }
    Ok(groups)
}

/// Reply of `get_counter_desc`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CounterDescriptions {
    /// `counter desc`.
    pub name: &'static str,
    /// The 140 rows of the table.
    pub data: Vec<CounterDescription>,
}

/// Reply of `get_dynamic_counter_desc`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DynamicCounterDescriptions {
    /// `counter desc`.
    pub name: &'static str,
    /// Changes with the counters that there are.
    pub epoch: u64,
    /// The counters.
    pub data: Vec<CounterDescription>,
}

/// A counter of stateful traffic: a row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CounterDescription {
    /// Its number, by which values are told.
    pub id: usize,
    /// Its name; empty for a line that only structures the table.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Its unit; empty for a plain number.
    pub units: &'static str,
    /// `error`: 0 unless something goes wrong.
    pub info: CounterKind,
    /// Shown also when 0.
    pub zero: bool,
    /// The value of the moment: it cannot be counted from a time on.
    pub abs: bool,
    /// False for lines that only structure the table.
    pub real: bool,
}

/// What a counter tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CounterKind {
    /// What happens.
    Info,
    /// What does not happen when all is well.
    Error,
}

/// The value of a counter: a whole number where it counts, a number where it measures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CounterValue {
    /// A count.
    Count(u64),
    /// A rate, a mean, a time.
    Measure(f64),
}

impl CounterValue {
    /// Whether there is nothing to tell.
    pub fn is_zero(self) -> bool {
        match self {
            CounterValue::Count(count) => count == 0,
            CounterValue::Measure(measure) => measure == 0.0,
        }
    }
}

/// Values by the counter's number. Those that are 0 are left out, unless their description says
/// otherwise.
pub type ValuesByCounter = BTreeMap<usize, CounterValue>;

/// What stateful traffic has counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CounterValues {
    /// `counter vals`; of a template group `counters per TGID: ` and its number.
    pub name: String,
    /// How often the profile, or for all together stateful traffic, has begun.
    pub epoch: u64,
    /// Of clients: values by the counter's number. Those that are 0 are left out, unless their
    /// description says otherwise.
    pub client: ValuesByCounter,
    /// The same of servers.
    pub server: ValuesByCounter,
}

/// What dynamic counters have counted, or that they are others than the client knows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DynamicCounterValues {
    /// What they have counted.
    Values(CounterValues),
    /// The client must ask for the descriptions again.
    Other(OtherCounters),
}

/// There are other dynamic counters than those that the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherCounters {
    /// The epoch is over: ask for the descriptions again.
    pub epoch_err: &'static str,
}

/// Reply of `get_tg_names`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TemplateGroupNames {
    /// Changes with each start of the profile. The other fields are there when it is not the
    /// client's.
    pub epoch: u64,
    /// The names; the first has number 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tg_names: Option<Vec<String>>,
    /// By the group's number, descriptions of further counters, whose numbers follow those of
    /// `get_counter_desc`. 0 is the group of templates without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tg_addon_desc: Option<BTreeMap<usize, Vec<CounterDescription>>>,
}

/// Reply of `get_tg_id_stats`. When the epoch is the client's it has, by the group's number, what
/// `get_counter_values` answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TemplateGroupValues {
    /// Changes with each start of the profile.
    pub epoch: u64,
    /// By the group's number; none when the epoch is not the client's.
    #[serde(flatten)]
    pub groups: BTreeMap<String, CounterValues>,
}

const VALUES_EXAMPLE: &str = r#"{"name": "counter vals", "epoch": 1, "client": {"0": 14, "14": 53}, "server": {"0": 14, "15": 53}}"#;
const NO_VALUES: &str = r#"{"name": "counter vals", "epoch": 1, "client": {}, "server": {}}"#;

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::CounterDescriptions),
        name: "get_counter_desc",
        access: Access::Api,
        doc: "The counters of stateful traffic: the same for each profile, each template group, and \
              all together.",
        types: Types::of::<StatefulProfile, CounterDescriptions>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: r#"{"name": "counter desc", "data": [{"id": 0, "name": "m_active_flows", "help": "active flows", "units": "", "info": "info", "zero": true, "abs": true, "real": true}]}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::CounterValues),
        name: "get_counter_values",
        access: Access::Api,
        doc: "The counters of a profile, since its last start. What belongs to no flow (the last part \
              of the table) is that of all profiles in this time.",
        types: Types::of::<StatefulProfile, CounterValues>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: VALUES_EXAMPLE,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TotalCounterValues),
        name: "get_total_counter_values",
        access: Access::Api,
        doc: "The counters of all profiles together, since traffic began when none ran.",
        types: Types::of::<Empty, CounterValues>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: VALUES_EXAMPLE,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::DynamicDescriptions),
        name: "get_dynamic_counter_desc",
        access: Access::Api,
        doc: "Counters that are there only while something has them.",
        types: Types::of::<DynamicDescriptionsParams, DynamicCounterDescriptions>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"is_sum": true}"#,
            result: r#"{"name": "counter desc", "epoch": 0, "data": []}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::DynamicValues),
        name: "get_dynamic_counter_values",
        access: Access::Api,
        doc: "The values of dynamic counters of a profile.",
        types: Types::of::<DynamicValues, DynamicCounterValues>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_", "epoch": 1}"#,
            result: NO_VALUES,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TotalDynamicValues),
        name: "get_total_dynamic_counter_values",
        access: Access::Api,
        doc: "The values of dynamic counters of all profiles together.",
        types: Types::of::<DynamicValues, DynamicCounterValues>(),
        errors: &[],
        example: Example {
            params: r#"{"profile_id": "_", "epoch": 1}"#,
            result: NO_VALUES,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::GroupNames),
        name: "get_tg_names",
        access: Access::Api,
        doc: "The template groups of a profile that has been started.",
        types: Types::of::<GroupNamesParams, TemplateGroupNames>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_", "initialized": false}"#,
            result: r#"{"epoch": 1, "tg_names": ["web", "mail"], "tg_addon_desc": {"0": [], "1": [], "2": []}}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::GroupStats),
        name: "get_tg_id_stats",
        access: Access::Api,
        doc: "The counters of template groups of a profile, since its last start.",
        types: Types::of::<TemplateGroupStats, TemplateGroupValues>(),
        errors: &["no such profile", "no such group"],
        example: Example {
            params: r#"{"profile_id": "_", "epoch": 1, "tg_ids": [1]}"#,
            result: r#"{"epoch": 1, "1": {"name": "counters per TGID: 1", "epoch": 1, "client": {"0": 14}, "server": {"0": 14}}}"#,
        },
    },
];
