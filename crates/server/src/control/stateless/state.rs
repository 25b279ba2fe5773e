//! The state of stateless traffic.

use allosaur_api::Error;
use allosaur_engine::stream::ProfileKey;

use super::groups::Groups;
use super::port::{Run, StreamPort};
use crate::control::awaited::Awaited;
use crate::control::core::Core;

/// Profiles of streams, what runs of them, and packet groups.
#[derive(Debug)]
pub(in crate::control) struct Stateless {
    pub(super) awaited: Awaited<Stateless>,
    pub(super) ports: Vec<StreamPort>,
    pub(super) groups: Groups,
    next_profile_key: u32,
}

impl Stateless {
    /// So many ports without streams.
    pub(in crate::control) fn new(ports: usize) -> Stateless {
        Stateless {
            awaited: Awaited::default(),
            ports: std::iter::repeat_with(StreamPort::default)
                .take(ports)
                .collect(),
            groups: Groups::new(ports),
            next_profile_key: 0,
        }
    }

    /// The streams of a port that is there.
    pub(super) fn port(&self, control: &Core, id: u8) -> Result<&StreamPort, Error> {
        control.port(id)?;
        Ok(&self.ports[usize::from(id)])
    }

    /// The streams of a port that is there, to be changed.
    pub(super) fn port_mut(&mut self, control: &Core, id: u8) -> Result<&mut StreamPort, Error> {
        control.port(id)?;
        Ok(&mut self.ports[usize::from(id)])
    }

    /// A name for what data threads are told to send.
    pub(super) fn next_key(&mut self) -> ProfileKey {
        self.next_profile_key = self.next_profile_key.wrapping_add(1);
        ProfileKey(self.next_profile_key)
    }

    /// All profiles that run.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        let profiles = self.ports.iter().flat_map(|port| port.profiles.values());
        profiles.filter_map(|profile| profile.run.as_ref())
    }
}
