//! `export_from_dir_params`: files that are there already, instead of what generators make.

use allosaur_api::Error;
use serde_json::Value;

use super::duration;
use crate::exports::Folder;
use crate::params::Params;

const NAME: &str = "export_from_dir_params";
/// Times in names of files go between a hundredth and a million times as fast.
const SPEEDUP_MIN: f64 = 0.01;
const SPEEDUP_MAX: f64 = 1e6;

/// Reads which files, and when.
///
/// # Errors
/// When something is missing, wrong or unknown.
pub(super) fn read(exporter: Params<'_>) -> Result<Folder, Error> {
    let params = Params::object(
        exporter.get(NAME).unwrap_or(&Value::Null),
        "map[string]interface {}",
    )?;
    params.only(&[
        "dir",
        "dir_scans_num",
        "files_wait_time",
        "files_wait_time_speedup",
        "packets_wait_time",
    ])?;
    let path = params.string_or("dir", "")?;
    if path.is_empty() {
        let message = format!("dir of {NAME} is missing: write a folder, or a file");
        return Err(Error::execution(message));
    }
    let time = |name| match params.string_or(name, "")? {
        "" => Ok(0),
        text => duration::parse(text),
    };
    let speedup = params.float_or("files_wait_time_speedup", "float64", 1.0)?;
    if !(SPEEDUP_MIN..=SPEEDUP_MAX).contains(&speedup) {
        return Err(Error::execution(format!(
            "files_wait_time_speedup {speedup} of {NAME} is out of range: write {SPEEDUP_MIN} to {SPEEDUP_MAX}"
        )));
    }
    Ok(Folder {
        path: path.to_owned(),
        scans: params.nonzero_or("dir_scans_num", 1)?,
        file_wait_ns: Some(time("files_wait_time")?).filter(|wait| *wait != 0),
        speedup_percent: (speedup * 100.0).round() as u32,
        packet_wait_ns: time("packets_wait_time")?,
    })
}
