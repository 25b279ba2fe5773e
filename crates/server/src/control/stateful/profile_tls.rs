//! Programs that run over TLS: from the `tls` of templates' sides to what their flows run.
//!
//! A program may be used with TLS and without. So one that runs over TLS is a copy behind those of the
//! profile, one for each TLS and side; templates that are alike share it, and with it sessions and
//! tickets.

use std::sync::Arc;

use allosaur_api::commands::stateful::profile as json;
use allosaur_api::commands::stateful::tls::{
    TlsClientFields, TlsCommonFields, TlsIdentity, TlsServerFields, TlsServerIdentity, TlsTrust,
};
use allosaur_engine::app::{ApplicationFactory, ProgramCommand, ProgramSpec, Transport};
use allosaur_engine::template::{
    CompiledProfile, PROGRAMS_MAX, ProfileSpec, ProgramIndex, ServerSpec, Side,
};
use allosaur_l7::program::Programs;
use allosaur_l7::protocol::AppProtocol;
use allosaur_l7::tls::{
    ClientTls, FlowTls, Identity, KeyKind, ServerTls, TlsFlows, TlsSettingsError, TlsVersion,
    Verify,
};

use super::profile::StatefulError;
use super::profile_http::{HttpPrograms, HttpSide};
use crate::control::files::CaptureFiles;

/// Different programs over TLS of a profile at most: each has configurations on each core.
const TLS_PROGRAMS_MAX: usize = 1_000;

/// A program over TLS.
#[derive(Clone, Debug)]
pub(super) struct TlsProgram {
    /// The first template that has it.
    template: usize,
    /// The program that is run.
    of: u32,
    /// The copy of it.
    program: ProgramIndex,
    tls: SideTls,
}

/// The TLS of one side.
#[derive(Clone, Debug, PartialEq)]
enum SideTls {
    Client(TlsClientFields),
    Server(TlsServerFields),
}

impl SideTls {
    fn side(&self) -> Side {
        match self {
            SideTls::Client(_) => Side::Client,
            SideTls::Server(_) => Side::Server,
        }
    }
}

/// Gives the sides of templates that have TLS programs of their own.
pub(super) fn take_apart(
    profile: &json::Profile<'_>,
    spec: &mut ProfileSpec,
) -> Result<Vec<TlsProgram>, StatefulError> {
    let mut programs = Vec::new();
    for (i, template) in profile.templates.iter().enumerate() {
        if let Some(tls) = &template.client.tls {
            let tls = SideTls::Client(tls.clone());
            let copy = program_over(i, template.client.program, tls, spec, &mut programs)?;
            spec.templates[i].client.program = copy;
        }
        if let Some(tls) = &template.server.tls {
            check_association(i, &spec.templates[i].server)?;
            let tls = SideTls::Server(tls.clone());
            let copy = program_over(i, template.server.program, tls, spec, &mut programs)?;
            spec.templates[i].server.program = copy;
        }
    }
    Ok(programs)
}

/// The number of the program over TLS that such a side has. A program that there is not is left as it
/// is, to be refused with all others.
fn program_over(
    template: usize,
    of: u32,
    tls: SideTls,
    spec: &mut ProfileSpec,
    programs: &mut Vec<TlsProgram>,
) -> Result<u32, StatefulError> {
    let known = |one: &&TlsProgram| one.of == of && one.tls == tls;
    if let Some(known) = programs.iter().find(known) {
        return Ok(known.program.0.into());
    }
    let refused = |problem: String| Err(StatefulError::Tls(path(template, tls.side()), problem));
    let Some(program) = spec.programs.get(of as usize) else {
        return Ok(of);
    };
    if let Some(problem) = problem_of(program) {
        return refused(format!("of program_list[{of}]: {problem}"));
    }
    let copy = spec.programs.len();
    if programs.len() == TLS_PROGRAMS_MAX || copy >= PROGRAMS_MAX {
        return refused(format!(
            "is one too many: a profile has at most {TLS_PROGRAMS_MAX} programs over different TLS, and \
             {PROGRAMS_MAX} with all others; give templates the same program and the same tls"
        ));
    }
    let program = program.clone();
    spec.programs.push(program);
    programs.push(TlsProgram {
        template,
        of,
        program: ProgramIndex(copy as u16),
        tls,
    });
    Ok(copy as u32)
}

/// Why a program cannot run over TLS.
fn problem_of(program: &ProgramSpec) -> Option<String> {
    if program.transport == Transport::Datagram {
        return Some("TLS needs a program with stream true (TCP)".to_owned());
    }
    let opens = |command: &ProgramCommand| *command == ProgramCommand::ExecuteTemplate;
    let at = program.commands.iter().position(opens)?;
    Some(format!(
        "command {at} opens a flow of another template (exec_template), which a program over TLS cannot: \
         open it from a program without tls, or leave it out"
    ))
}

/// First bytes that choose a server are those of a handshake.
fn check_association(template: usize, server: &ServerSpec) -> Result<(), StatefulError> {
    let mut rules = server.associations.iter();
    match rules.position(|rule| rule.l7_map.is_some()) {
        None => Ok(()),
        Some(rule) => Err(StatefulError::Tls(
            path(template, Side::Server),
            format!(
                "stands beside assoc[{rule}].l7_map, which would look at the handshake: tell servers \
                 apart by port or address (ip_start, ip_end)"
            ),
        )),
    }
}

fn path(template: usize, side: Side) -> String {
    format!("templates[{template}].{side}_template.tls")
}

/// Has those programs run over TLS, and what takes the place of some.
pub(super) fn secure(
    mut compiled: CompiledProfile,
    programs: &[TlsProgram],
    http: &HttpPrograms,
    files: &dyn CaptureFiles,
) -> Result<CompiledProfile, StatefulError> {
    for one in programs {
        let buffers = Arc::clone(compiled.buffers());
        let made = match http.make(one.of, &buffers)? {
            None => {
                let program = compiled.program(one.program).clone();
                over_tls(&one.tls, Programs::new(program, buffers), files)
            }
            Some(HttpSide::Client(clients)) => over_tls(&one.tls, clients, files),
            Some(HttpSide::Server(servers)) => over_tls(&one.tls, servers, files),
        };
        let made = made.map_err(|error| {
            let path = path(one.template, one.tls.side());
            StatefulError::Tls(format!("{path}.{}", error.field), error.reason)
        })?;
        compiled = compiled.with_application(one.program, made);
    }
    Ok(compiled)
}

fn over_tls<P: AppProtocol>(
    tls: &SideTls,
    protocol: P,
    files: &dyn CaptureFiles,
) -> Result<Arc<dyn ApplicationFactory>, TlsSettingsError> {
    let made = match tls {
        SideTls::Client(tls) => TlsFlows::client(&client(tls, files)?, protocol)?,
        SideTls::Server(tls) => TlsFlows::server(&server(tls, files)?, protocol)?,
    };
    Ok(Arc::new(made))
}

fn client(tls: &TlsClientFields, files: &dyn CaptureFiles) -> Result<ClientTls, TlsSettingsError> {
    Ok(ClientTls {
        common: common(&tls.common, files)?,
        server_name: tls.server_name.clone(),
        verify: match &tls.trust {
            TlsTrust::Any => Verify::Off,
            TlsTrust::Authorities(pem) => Verify::Authorities(pem.clone()),
            TlsTrust::Pinned(pem) => Verify::Pinned(pem.clone()),
        },
        identity: tls.identity.as_ref().map(identity),
        resume: tls.resume,
    })
}

fn server(tls: &TlsServerFields, files: &dyn CaptureFiles) -> Result<ServerTls, TlsSettingsError> {
    Ok(ServerTls {
        common: common(&tls.common, files)?,
        identity: match &tls.identity {
            TlsServerIdentity::Given(given) => identity(given),
            TlsServerIdentity::Made { kind, name } => Identity::made(key_kind(kind), name)?,
        },
        authorities: tls.authorities.clone(),
        resume: tls.tickets,
    })
}

fn common(tls: &TlsCommonFields, files: &dyn CaptureFiles) -> Result<FlowTls, TlsSettingsError> {
    let open = |path: &String| {
        let opened = files.open_key_log(path);
        opened.map_err(|error| TlsSettingsError {
            field: "key_log",
            reason: format!("{path}: {error}"),
        })
    };
    Ok(FlowTls {
        version: tls.version.map(|version| match version {
            "1.2" => TlsVersion::V1_2,
            _ => TlsVersion::V1_3,
        }),
        suites: tls.suites.clone(),
        groups: tls.groups.clone(),
        alpn: tls.alpn.clone(),
        key_log: tls.key_log.as_ref().map(open).transpose()?,
    })
}

fn identity(given: &TlsIdentity) -> Identity {
    Identity {
        certificate: given.certificate.clone(),
        key: given.key.clone(),
    }
}

fn key_kind(name: &str) -> KeyKind {
    match name {
        "p384" => KeyKind::P384,
        "ed25519" => KeyKind::Ed25519,
        _ => KeyKind::P256,
    }
}
