//! Commands about profiles and their streams.

use std::collections::BTreeMap;

use allosaur_api::commands::ports::PortParams;
use allosaur_api::commands::streams::stream::{FlowStats, RuleType};
use allosaur_api::commands::streams::{
    AddStream, AllStreams, AllStreamsParams, OneStream, ProfileNames, StreamNumbers, StreamParams,
};
use allosaur_api::commands::traffic::ProfilesParams;
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::flow_stats::tag::tag;
use allosaur_engine::flow_stats::{Group, Rule, Tagging, VxlanPorts};
use allosaur_engine::stream::spec::PACKET_BYTES_PADDED;
use allosaur_engine::stream::{StreamId, StreamSpec};
use allosaur_engine::vm;
use serde_json::value::RawValue;

use super::port::{Profile, StoredStream};
use super::state::Stateless;
use super::stream::{StreamError, convert};
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::port::Port;
use crate::control::profile_name::ALL_PROFILES;
use crate::control::reply::{Reply, reply};

impl Stateless {
    pub(super) fn profile_list(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let PortParams { port } = fields.read()?;
        let port = self.port(control, port)?;
        reply(&ProfileNames(port.profiles.keys().cloned().collect()))
    }

    pub(super) fn stream_list(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<ProfilesParams>()?;
        let port = self.port(control, params.port)?;
        if params.profile == ALL_PROFILES {
            let lists = port.profiles.iter();
            let numbers = |(name, profile): (&String, &Profile)| {
                (name.clone(), profile.streams.keys().copied().collect())
            };
            return reply(&StreamNumbers::All(lists.map(numbers).collect()));
        }
        let streams = &port.profile(&params.profile)?.streams;
        reply(&StreamNumbers::One(streams.keys().copied().collect()))
    }

    pub(super) fn all_streams(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<AllStreamsParams>()?;
        let port = self.port(control, params.port)?;
        if params.profile == ALL_PROFILES {
            let full = port.profiles.iter().filter(|(_, p)| !p.streams.is_empty());
            return reply(&AllStreams {
                profiles: Some(full.map(|(name, p)| (name.clone(), texts(p))).collect()),
                ..AllStreams::default()
            });
        }
        let profile = port.profile(&params.profile)?;
        reply(&AllStreams {
            streams: Some(texts(profile)),
            ..AllStreams::default()
        })
    }

    pub(super) fn stream(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<StreamParams>()?;
        let profile = self.port(control, params.port)?.profile(&params.profile)?;
        let stream = profile.streams.get(&params.stream_id).ok_or_else(|| {
            let (id, profile, port) = (params.stream_id, &params.profile, params.port);
            Error::execution(format!(
                "stream id {id}, profile id {profile} on port {port} does not exists"
            ))
        })?;
        reply(&OneStream {
            stream: text(stream),
        })
    }

    pub(super) fn add_stream(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = AddStream::parse(fields)?;
        let port = control.port(params.port)?;
        let (mut spec, counted) = check_stream(&params, port)?;
        self.port_mut(control, params.port)?
            .profile_or_new(&params.profile)?;
        let pg_id = counted.map(|counted| counted.pg_id);
        let member = (params.port, params.profile.clone());
        if let Some(counted) = counted {
            let rule = self
                .groups
                .join(&counted, member.clone(), &self.ports, view);
            let rule = rule.map_err(|problem| problem_of(spec.id, problem))?;
            spec.rule = Some(rule);
        }
        let json = params.stream.to_string();
        let stream = StoredStream { json, spec, pg_id };
        let profile = self
            .port_mut(control, params.port)?
            .profile_mut(&params.profile)?;
        let added = profile.add(stream, &params.profile);
        if added.is_err() {
            self.groups.leave(pg_id, &member);
        }
        added.and_then(|()| reply(&Empty {}))
    }

    pub(super) fn remove_stream(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<StreamParams>()?;
        let name = &params.profile;
        let profile = self.port_mut(control, params.port)?.profile_mut(name)?;
        profile.check_not_transmitting("remove", name)?;
        let removed = profile.streams.remove(&params.stream_id).ok_or_else(|| {
            Error::execution(format!(
                "stream {} does not exists in profile_id({name})",
                params.stream_id
            ))
        })?;
        let member = (params.port, params.profile);
        self.groups.leave(removed.pg_id, &member);
        reply(&Empty {})
    }

    pub(super) fn remove_all_streams(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<ProfilesParams>()?;
        let port = self.port_mut(control, params.port)?;
        let names = port.profile_names(&params.profile)?;
        for name in &names {
            let profile = port.profile(name)?;
            profile.check_not_transmitting("remove_all", name)?;
        }
        let mut removed = Vec::new();
        for name in &names {
            let streams = std::mem::take(&mut port.profile_mut(name)?.streams);
            let member = (params.port, name.clone());
            let counted = streams.into_values().filter_map(|stream| stream.pg_id);
            removed.extend(counted.map(|pg_id| (pg_id, member.clone())));
        }
        for (pg_id, member) in removed {
            self.groups.leave(Some(pg_id), &member);
        }
        reply(&Empty {})
    }
}

/// All that can be said of a stream without the other streams of its profile.
fn check_stream(
    params: &AddStream<'_>,
    port: &Port,
) -> Result<(StreamSpec, Option<FlowStats>), Error> {
    let spec = convert(params.stream_id, params.stream);
    let (spec, counted) = spec.map_err(|error| Error::execution(error.to_string()))?;
    let problem = |problem| problem_of(spec.id, problem);
    let threads = port.threads.len();
    if let Some(core) = spec.core.filter(|core| usize::from(*core) >= threads) {
        return Err(problem(format!(
            "field 'core_id' is {core}. It must be an integer between 0 and {} (inclusive), which \
             counts the data threads of the port",
            threads.saturating_sub(1)
        )));
    }
    if !spec.program.is_empty() {
        let verified = vm::verify(&spec.program, &padded(&spec));
        verified.map_err(|error| problem(format!("vm: {error}")))?;
    }
    if let Some(counted) = &counted {
        check_countable(&spec, counted, &port.reception.vxlan).map_err(problem)?;
    }
    Ok((spec, counted))
}

fn problem_of(stream: StreamId, problem: String) -> Error {
    Error::execution(StreamError { stream, problem }.to_string())
}

fn check_countable(
    spec: &StreamSpec,
    counted: &FlowStats,
    vxlan: &VxlanPorts,
) -> Result<(), String> {
    if spec.dummy {
        let text = "field 'flow_stats.enabled' is true for a dummy stream, which sends nothing: \
                    leave flow_stats out";
        return Err(text.to_owned());
    }
    let first = match counted.rule {
        RuleType::Latency => Group::latency(0),
        RuleType::Stats | RuleType::Tagged => Group::flow(0),
    };
    let rule = Rule {
        group: first.expect("there is a first group"),
        vxlan: counted.vxlan,
        run: 0,
    };
    tag(&mut padded(spec), rule, Tagging::default(), vxlan).map_err(|error| error.to_string())
}

/// The packet template as it will be sent, but for what the port puts in.
fn padded(spec: &StreamSpec) -> Vec<u8> {
    let mut template = spec.packet.clone();
    template.resize(template.len().max(PACKET_BYTES_PADDED), 0);
    template
}

/// The streams of a profile, as they were given.
fn texts(profile: &Profile) -> BTreeMap<u32, &RawValue> {
    let streams = profile.streams.iter();
    streams.map(|(id, stream)| (*id, text(stream))).collect()
}

fn text(stream: &StoredStream) -> &RawValue {
    serde_json::from_str(&stream.json).expect("it was written from a JSON value")
}
