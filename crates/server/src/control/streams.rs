//! Commands about profiles and their streams.

use std::collections::BTreeMap;

use allosaur_api::commands::ports::port_id;
use allosaur_api::commands::streams::{AddStream, StreamParams};
use allosaur_api::commands::traffic::ProfileParams;
use allosaur_api::{Error, Fields};
use allosaur_engine::stream::StreamSpec;
use allosaur_engine::stream::spec::PACKET_BYTES_PADDED;
use allosaur_engine::vm;
use serde_json::{Map, Value, json};

use super::port::{ALL_PROFILES, Profile, StoredStream};
use super::stream::{StreamError, convert};
use super::{Control, Reply};

impl Control {
    pub(super) fn profile_list(&self, fields: &Fields<'_>) -> Reply {
        let port = self.port(port_id(fields)?)?;
        Ok(port.profiles.keys().cloned().collect())
    }

    pub(super) fn stream_list(&self, fields: &Fields<'_>) -> Reply {
        let params = ProfileParams::parse(fields)?;
        let port = self.port(params.port)?;
        if params.profile == ALL_PROFILES {
            let lists = port.profiles.iter();
            let lists = lists.map(|(name, profile)| (name, profile.streams.keys().collect()));
            return Ok(json!(lists.collect::<BTreeMap<_, Vec<_>>>()));
        }
        let streams = &port.profile(&params.profile)?.streams;
        Ok(streams.keys().copied().collect())
    }

    pub(super) fn all_streams(&self, fields: &Fields<'_>) -> Reply {
        let params = ProfileParams::parse(fields)?;
        let port = self.port(params.port)?;
        if params.profile == ALL_PROFILES {
            let full = port.profiles.iter().filter(|(_, p)| !p.streams.is_empty());
            let full: Map<_, _> = full.map(|(name, p)| (name.clone(), all_json(p))).collect();
            return Ok(json!({"profiles": full}));
        }
        let profile = port.profile(&params.profile)?;
        Ok(json!({"streams": all_json(profile)}))
    }

    pub(super) fn stream(&self, fields: &Fields<'_>) -> Reply {
        let params = StreamParams::parse(fields)?;
        let profile = self.port(params.port)?.profile(&params.profile)?;
        let stream = profile.streams.get(&params.stream_id).ok_or_else(|| {
            let (id, profile, port) = (params.stream_id, &params.profile, params.port);
            Error::execution(format!(
                "stream id {id}, profile id {profile} on port {port} does not exists"
            ))
        })?;
        Ok(json!({"stream": stream_json(stream)}))
    }

    pub(super) fn add_stream(&mut self, fields: &Fields<'_>) -> Reply {
        let params = AddStream::parse(fields)?;
        let spec = self.check_stream(&params)?;
        let profile = self
            .port_mut(params.port)?
            .profile_or_new(&params.profile)?;
        let json = params.stream.to_string();
        profile.add(StoredStream { json, spec }, &params.profile)?;
        Ok(json!({}))
    }

    /// All that can be said of a stream without the other streams of its profile.
    fn check_stream(&self, params: &AddStream<'_>) -> Result<StreamSpec, Error> {
        let spec = convert(params.stream_id, params.stream);
        let spec = spec.map_err(|error| Error::execution(error.to_string()))?;
        let problem = |problem| {
            let stream = spec.id;
            Error::execution(StreamError { stream, problem }.to_string())
        };
        let data_cores = self.config.data_cores;
        if let Some(core) = spec.core.filter(|core| usize::from(*core) >= data_cores) {
            return Err(problem(format!(
                "field 'core_id' is {core}; the server has {data_cores} data threads, counted \
                 from 0"
            )));
        }
        if !spec.program.is_empty() {
            let mut template = spec.packet.clone();
            template.resize(template.len().max(PACKET_BYTES_PADDED), 0);
            let compiled = vm::Program::compile(&spec.program, &template);
            compiled.map_err(|error| problem(format!("vm: {error}")))?;
        }
        Ok(spec)
    }

    pub(super) fn remove_stream(&mut self, fields: &Fields<'_>) -> Reply {
        let params = StreamParams::parse(fields)?;
        let name = &params.profile;
        let profile = self.port_mut(params.port)?.profile_mut(name)?;
        profile.check_not_transmitting("remove", name)?;
        if profile.streams.remove(&params.stream_id).is_none() {
            return Err(Error::execution(format!(
                "stream {} does not exists in profile_id({name})",
                params.stream_id
            )));
        }
        Ok(json!({}))
    }

    pub(super) fn remove_all_streams(&mut self, fields: &Fields<'_>) -> Reply {
        let params = ProfileParams::parse(fields)?;
        let port = self.port_mut(params.port)?;
        let names = port.profile_names(&params.profile)?;
        for name in &names {
            let profile = port.profile(name)?;
            profile.check_not_transmitting("remove_all", name)?;
        }
        for name in &names {
            port.profile_mut(name)?.streams.clear();
        }
        Ok(json!({}))
    }
}

fn all_json(profile: &Profile) -> Value {
    let streams = profile.streams.iter();
    let streams = streams.map(|(id, stream)| (id.to_string(), stream_json(stream)));
    Value::Object(streams.collect())
}

fn stream_json(stream: &StoredStream) -> Value {
    serde_json::from_str(&stream.json).expect("it was written from a JSON value")
}
