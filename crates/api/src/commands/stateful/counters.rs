//! Commands that read the counters of stateful traffic.

use super::profiles::STATEFUL_PROFILE_ID;
use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::commands::ports::profile_id;
use crate::fields::{FieldError, Fields};
use crate::limits::GROUPS_ASKED_MAX;
use crate::method::{Method, StatefulMethod};

/// Parameters of `get_dynamic_counter_desc`: a profile, or the sum of all.
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
        let profile = profile_id(fields)?;
        Ok(match fields.optional("is_sum", Fields::boolean)? {
            Some(true) => DynamicDescriptions::Sum,
            _ => DynamicDescriptions::Profile(profile),
        })
    }
}

/// Parameters of the commands that read dynamic counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicValues {
    /// The profile.
    pub profile: String,
    /// The epoch of the descriptions that the client has.
    pub epoch: u64,
}

impl DynamicValues {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<DynamicValues, FieldError> {
        Ok(DynamicValues {
            profile: profile_id(fields)?,
            epoch: fields.uint64("epoch")?,
        })
    }
}

/// Parameters of `get_tg_names`.
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
        let is_known = fields.boolean("initialized")?;
        let epoch = fields.optional("epoch", Fields::uint64)?;
        if is_known && epoch.is_none() {
            return Err(fields.bad("epoch", "is missing; it belongs to what is known"));
        }
        Ok(GroupNames {
            profile: profile_id(fields)?,
            known_epoch: epoch.filter(|_| is_known),
        })
    }
}

/// Parameters of `get_tg_id_stats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateGroupStats {
    /// The profile.
    pub profile: String,
    /// The epoch of the names that the client has.
    pub epoch: u64,
    /// Which groups; the first is 1.
    pub groups: Vec<u32>,
}

impl TemplateGroupStats {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<TemplateGroupStats, FieldError> {
        let groups = fields.uint_array("tg_ids", u32::MAX.into(), "uint32")?;
        if groups.len() > GROUPS_ASKED_MAX {
            let problem = format!(
                "has {} groups; ask for at most {GROUPS_ASKED_MAX} at once",
                groups.len()
            );
            return Err(fields.bad("tg_ids", problem));
        }
        Ok(TemplateGroupStats {
            profile: profile_id(fields)?,
            epoch: fields.uint64("epoch")?,
            groups: groups.into_iter().map(|group| group as u32).collect(),
        })
    }
}

const EPOCH: Param = Param::required(
    "epoch",
    Kind::Uint64,
    "The epoch of what the client knows already.",
);
const VALUES: &str = "`name`, `epoch`, and `client` and `server`: values by the counter's number. \
                      Those that are 0 are left out, unless their description says otherwise.";
const VALUES_EXAMPLE: &str = r#"{"name": "counter vals", "epoch": 1, "client": {"0": 14, "14": 53}, "server": {"0": 14, "15": 53}}"#;
const DYNAMIC_VALUES: &str = "As `get_counter_values`; `epoch_err` alone when the epoch is over: then \
                              ask for the descriptions again.";
const NO_VALUES: &str = r#"{"name": "counter vals", "epoch": 1, "client": {}, "server": {}}"#;

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::CounterDescriptions),
        name: "get_counter_desc",
        access: Access::Api,
        doc: "The counters of stateful traffic: the same for each profile, each template group, and \
              all together.",
        types: Types::prose(
            &[STATEFUL_PROFILE_ID],
            "`name` and `data`: 140 rows with `id`, `name`, `help`, `units`, `info` (`info` or \
                `error`: 0 unless something goes wrong), `zero` (shown also when 0), `abs` (the value \
                of the moment: it cannot be counted from a time on) and `real` (false for lines \
                that only structure the table).",
            |f| profile_id(f).map(drop),
        ),
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
        types: Types::prose(&[STATEFUL_PROFILE_ID], VALUES, |f| profile_id(f).map(drop)),
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
        types: Types::prose(&[], VALUES, |_| Ok(())),
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
        types: Types::prose(
            &[
                Param::optional(
                    "is_sum",
                    Kind::Boolean,
                    "false",
                    "Of all profiles together.",
                ),
                STATEFUL_PROFILE_ID,
            ],
            "As `get_counter_desc`, with `epoch`.",
            |f| DynamicDescriptions::parse(f).map(drop),
        ),
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
        types: Types::prose(&[STATEFUL_PROFILE_ID, EPOCH], DYNAMIC_VALUES, |f| {
            DynamicValues::parse(f).map(drop)
        }),
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
        types: Types::prose(&[STATEFUL_PROFILE_ID, EPOCH], DYNAMIC_VALUES, |f| {
            DynamicValues::parse(f).map(drop)
        }),
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
        types: Types::prose(
            &[
                STATEFUL_PROFILE_ID,
                Param::required(
                    "initialized",
                    Kind::Boolean,
                    "The client knows them, as of `epoch`.",
                ),
                Param::optional("epoch", Kind::Uint64, "none", "As of when it knows them."),
            ],
            "`epoch`; and when that is another than the client's, `tg_names`: the names, the first \
                has number 1, and `tg_addon_desc`: by number, descriptions of further counters, whose \
                numbers follow those of `get_counter_desc`.",
            |f| GroupNames::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[
                STATEFUL_PROFILE_ID,
                EPOCH,
                Param::required("tg_ids", Kind::Array, "Numbers of groups, at most 10."),
            ],
            "`epoch`; and when that is the client's, by the group's number what \
                `get_counter_values` answers.",
            |f| TemplateGroupStats::parse(f).map(drop),
        ),
        errors: &["no such profile", "no such group"],
        example: Example {
            params: r#"{"profile_id": "_", "epoch": 1, "tg_ids": [1]}"#,
            result: r#"{"epoch": 1, "1": {"name": "counters per TGID: 1", "epoch": 1, "client": {"0": 14}, "server": {"0": 14}}}"#,
        },
    },
];
