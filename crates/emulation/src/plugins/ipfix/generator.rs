//! A generator: one template, its records, and how often each is sent.

use allosaur_api::Error;
use serde_json::Value;

use super::record::{Records, Version};
use super::requests::GeneratorInfo;
use crate::field_engine::SplitMix;
use crate::pace::Pace;
use crate::params::{Params, failed_check, mismatch};

/// Templates have numbers above those of special sets.
const TEMPLATE_MIN: u16 = 256;
/// Bytes of the header of a set.
const SET_HEADER: usize = 4;

/// A generator.
#[derive(Clone, Debug)]
pub(super) struct Generator {
    pub(super) name: String,
    /// Whether it sends when it is its turn.
    pub(super) is_enabled: bool,
    pub(super) template: Pace,
    pub(super) data: Pace,
    /// Records of a packet as the user wants them; 0 is as many as fit.
    records_wanted: u32,
    template_id: u16,
    /// How many fields are the scope of an options template; 0 is another template.
    scope_fields: u16,
    is_options: bool,
    records: Records,
}

impl Generator {
    /// Reads one.
    ///
    /// # Errors
    /// When something is missing or wrong.
    pub(super) fn parse(value: &Value, version: Version) -> Result<Generator, Error> {
        if !value.is_object() {
            return Err(mismatch(value, "ipfix.IPFixGenParams"));
        }
        let params = Params::new(value);
        params.only(&[
            "name",
            "auto_start",
            "template_rate_pps",
            "rate_pps",
            "data_records_num",
            "template_id",
            "is_options_template",
            "scope_count",
            "fields",
            "engines",
        ])?;
        let name = params.string_or("name", "")?;
        let pace = |field: &str, default: f64| {
            let rate = params.float_or(field, "float32", default)?;
            Pace::new(field, rate)
        };
        let mut missing = Vec::new();
        if name.is_empty() {
            missing.push(failed_check("IPFixGenParams", "Name", "required").to_string());
        }
        if params.get("fields").is_none() {
            missing.push(failed_check("IPFixGenParams", "Fields", "required").to_string());
        }
        if !missing.is_empty() {
            return Err(Error::execution(missing.join("\n")));
        }
        let template_id = params.number_or("template_id", 0)?;
        if template_id < TEMPLATE_MIN {
            return Err(Error::execution(format!(
                "invalid template ID {template_id}"
            )));
        }
        let is_options = params.bool_or("is_options_template", false)?;
        let scope_fields = params.number_or("scope_count", 0)?;
        let generator = Generator {
            name: name.to_owned(),
            is_enabled: params.bool_or("auto_start", true)?,
            template: pace("template_rate_pps", 1.0)?,
            data: pace("rate_pps", 3.0)?,
            records_wanted: params.number_or("data_records_num", 0)?,
            template_id,
            scope_fields,
            is_options,
            records: Records::parse(params, version)?,
        };
        let fields = generator.records.fields();
        if is_options && (scope_fields == 0 || usize::from(scope_fields) > fields) {
            return Err(Error::execution(format!(
                "invalid scope count {scope_fields}"
            )));
        }
        Ok(generator)
    }

    /// The number of its template.
    pub(super) fn template_id(&self) -> u16 {
        self.template_id
    }

    /// Records of fixed length that a packet with `room` bytes behind its header has.
    pub(super) fn records_per_packet(&self, room: usize) -> u32 {
        let (wanted, longest) = (self.records_wanted, self.records.longest());
        if self.records.is_variable() {
            return wanted;
        }
        let fit = room.saturating_sub(SET_HEADER).checked_div(longest);
        let fit = fit.map_or(0, |fit| u32::try_from(fit).unwrap_or(u32::MAX));
        match wanted {
            0 => fit,
            wanted => wanted.min(fit),
        }
    }

    /// How many of the wanted records a packet with `count` of them has no room for; those beyond the
    /// `limit` of all that is sent are not missed.
    pub(super) fn records_missed(&self, count: u32, limit: u32) -> u32 {
        self.records_wanted.min(limit).saturating_sub(count)
    }

    /// Appends the set with its template.
    pub(super) fn write_template(&self, version: Version, out: &mut Vec<u8>) {
        let at = out.len();
        let set_id: u16 = match (version, self.is_options) {
            (Version::Netflow9, false) => 0,
            (Version::Netflow9, true) => 1,
            (Version::Ipfix, false) => 2,
            (Version::Ipfix, true) => 3,
        };
        out.extend_from_slice(&set_id.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.template_id.to_be_bytes());
        let fields = self.records.fields() as u16;
        let numbers = match (version, self.is_options) {
            (_, false) => [Some(fields), None],
            (Version::Ipfix, true) => [Some(fields), Some(self.scope_fields)],
            (Version::Netflow9, true) => {
                // Bytes of the descriptions, which have four each (RFC 3954, section 6.1).
                let scope = self.scope_fields * 4;
                [Some(scope), Some(fields * 4 - scope)]
            }
        };
        for number in numbers.into_iter().flatten() {
            out.extend_from_slice(&number.to_be_bytes());
        }
        self.records.describe(out);
        end_set(out, at);
    }

    /// Appends a set of records, at most `limit`, into `room` bytes; returns how many there are.
    pub(super) fn write_data(
        &mut self,
        random: &mut SplitMix,
        room: usize,
        limit: u32,
        out: &mut Vec<u8>,
    ) -> u32 {
        let at = out.len();
        out.extend_from_slice(&self.template_id.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        let end = at + room;
        let longest = self.records.longest();
        let wanted = match (self.records_per_packet(room), self.records.is_variable()) {
            (0, true) => limit,
            (wanted, _) => wanted.min(limit),
        };
        let mut count = 0;
        while count < wanted && longest != 0 && out.len() + longest <= end {
            self.records.write_next(random, out);
            count += 1;
        }
        end_set(out, at);
        count
    }

    /// What `ipfix_c_get_gens_info` says of it.
    pub(super) fn info(&self, room: usize) -> GeneratorInfo {
        GeneratorInfo {
            enabled: self.is_enabled,
            options_template: self.is_options,
            scope_count: self.scope_fields,
            template_rate_pps: self.template.to_json(),
            data_rate_pps: self.data.to_json(),
            data_records_num: self.records_wanted,
            data_records_num_send: self.records_per_packet(room),
            template_id: self.template_id,
            fields_num: self.records.fields(),
            engines_num: self.records.engines(),
        }
    }
}

/// Writes the length of the set that begins at `at`.
fn end_set(out: &mut [u8], at: usize) {
    let bytes = (out.len() - at) as u16;
    out[at + 2..at + 4].copy_from_slice(&bytes.to_be_bytes());
}
