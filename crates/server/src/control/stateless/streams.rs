//! Commands about profiles and their streams.

use std::collections::BTreeMap;

use allosaur_api::commands::ports::PortParams;
use allosaur_api::commands::streams::{
    AllStreams, AllStreamsParams, OneStream, ProfileNames, StreamNumbers, StreamParams,
};
use allosaur_api::commands::traffic::ProfilesParams;
use allosaur_api::{Empty, Error, Fields};
use serde_json::value::RawValue;

use super::port::{Profile, StoredStream};
use super::state::Stateless;
use crate::control::core::Core;
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

/// The streams of a profile, as they were given.
fn texts(profile: &Profile) -> BTreeMap<u32, &RawValue> {
    let streams = profile.streams.iter();
    streams.map(|(id, stream)| (*id, text(stream))).collect()
}

fn text(stream: &StoredStream) -> &RawValue {
    serde_json::from_str(&stream.json).expect("it was written from a JSON value")
}
