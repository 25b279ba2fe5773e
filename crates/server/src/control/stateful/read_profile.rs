//! From the JSON of a stateful profile to what data threads run.
//!
//! The simulator reads its profiles here too.

use allosaur_api::commands::stateful::profile as json;
use allosaur_api::limits::STATEFUL_PROFILE_BYTES_MAX;
use allosaur_engine::app::DrawsSpec;
use allosaur_engine::template::{CompiledProfile, Layout, ProfileSpec, Tunable};
use serde_json::Value;

use super::profile::{StatefulError, convert};
use super::profile_http::HttpPrograms;
use super::profile_tls::{TlsProgram, secure, take_apart};
use crate::control::files::{CaptureFiles, NoFiles};

/// A profile that was read.
#[derive(Clone, Debug)]
pub struct ReadProfile {
    /// What the engine is asked to do.
    pub spec: ProfileSpec,
    /// What its connections draw.
    draws: DrawsSpec,
    /// Which of its programs speak HTTP.
    http: HttpPrograms,
    /// Which of its programs run over TLS.
    tls: Vec<TlsProgram>,
}

/// Reads a profile and compiles it for the cores that there are; it must name no files.
pub fn compile(text: &str, layout: Layout) -> Result<CompiledProfile, StatefulError> {
    compile_as(text, false, layout, &NoFiles)
}

/// The same, with the files that it names; with all its addresses IPv6, if `ipv6` says so.
pub(super) fn compile_as(
    text: &str,
    ipv6: bool,
    layout: Layout,
    files: &dyn CaptureFiles,
) -> Result<CompiledProfile, StatefulError> {
    let mut read = read(text)?;
    if ipv6 {
        let spec = &mut read.spec;
        let templates = spec.templates.iter_mut();
        let own = templates.flat_map(|t| [&mut t.client.tunables, &mut t.server.tunables]);
        for tunables in own.chain([&mut spec.client, &mut spec.server]) {
            tunables.set(Tunable::Ipv6Enable, 1);
        }
    }
    read.compile(layout, files)
}

/// Reads a profile.
pub fn read(text: &str) -> Result<ReadProfile, StatefulError> {
    if text.len() > STATEFUL_PROFILE_BYTES_MAX {
        return Err(StatefulError::TooLarge(text.len()));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| StatefulError::Json(error.to_string()))?;
    let profile = json::Profile::parse(&value)?;
    let (mut spec, draws) = convert(&profile)?;
    let http = HttpPrograms::of(&profile)?;
    http.disable_nagle(&mut spec);
    let tls = take_apart(&profile, &mut spec)?;
    Ok(ReadProfile {
        spec,
        draws,
        http,
        tls,
    })
}

impl ReadProfile {
    /// Compiles it for the cores that there are, and opens its key logs.
    pub fn compile(
        &self,
        layout: Layout,
        files: &dyn CaptureFiles,
    ) -> Result<CompiledProfile, StatefulError> {
        let compiled = CompiledProfile::compile_with(&self.spec, &self.draws, layout)?;
        let compiled = self.http.run(compiled)?;
        secure(compiled, &self.tls, &self.http, files)
    }
}
