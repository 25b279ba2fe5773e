//! What the commands about a client's flow records take and give.

use std::collections::BTreeMap;

use allosaur_api::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::read::{Float32, Listed};

/// Whether to send records.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct SetState {
    /// Whether to.
    pub(super) enable: bool,
}

/// Which generators.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct GeneratorNames {
    /// Their names; all without any.
    pub(super) gen_names: Listed<String>,
}

/// What to change of a generator.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct SetGenerator {
    /// Its name.
    #[schemars(required)]
    pub(super) gen_name: String,
    /// Whether it shall make records; as before without it.
    pub(super) enable: Option<bool>,
    /// Packets with records a second; as before when it is 0.
    pub(super) rate: Float32,
    /// Packets with its template a second; as before when it is 0.
    pub(super) template_rate: Float32,
}

/// What generators do.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GeneratorInfos {
    /// By their names.
    pub(super) generators_info: BTreeMap<String, GeneratorInfo>,
}

/// What a generator does.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GeneratorInfo {
    /// Whether it makes records.
    pub(super) enabled: bool,
    /// Whether its template is one of options.
    pub(super) options_template: bool,
    /// How many fields of options say what they are about.
    pub(super) scope_count: u16,
    /// Packets with its template a second.
    #[schemars(with = "f64")]
    pub(super) template_rate_pps: Value,
    /// Packets with records a second.
    #[schemars(with = "f64")]
    pub(super) data_rate_pps: Value,
    /// Records that a packet shall have; 0 is as many as fit.
    pub(super) data_records_num: u32,
    /// Records that a packet has.
    pub(super) data_records_num_send: u32,
    /// The number of its template.
    pub(super) template_id: u16,
    /// Fields of its records.
    pub(super) fields_num: usize,
    /// Fields that engines write.
    pub(super) engines_num: usize,
}

/// How records leave.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExporterInfo {
    /// `emu-udp`, `udp`, `file`, `http` or `https`.
    pub(super) exporter_type: &'static str,
    /// `true` or `false`, as a string: whether the client shall send.
    pub(super) enabled: String,
    /// Of `http` and `https`: the files that were posted last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<Vec<PostInfo>>,
}

/// A file that was posted.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PostInfo {
    /// Its name.
    pub(super) name: String,
    /// When it was posted.
    pub(super) time: String,
    /// `success` or `failure`.
    pub(super) status: &'static str,
    /// The status of the reply, such as `200 OK`; empty without a reply.
    pub(super) http_status_code: String,
    /// What the reply said.
    pub(super) http_response_msg: String,
    /// `success`, or why there was no reply.
    pub(super) transport_status: String,
    /// Bytes that the server took.
    pub(super) bytes_uploaded: u64,
    /// Templates that it took.
    pub(super) temp_records_uploaded: u64,
    /// Records that it took.
    pub(super) data_records_uploaded: u64,
}
