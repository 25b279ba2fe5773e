//! Stateless traffic, as control sees it: profiles of streams, what runs of them, packet groups, and
//! packets and captures that are sent once.

mod changes;
pub(super) mod percentiles;
pub(super) mod pgid;
mod push;
mod remote;
pub(super) mod start;
mod stop;
pub mod stream;
mod streams;
mod validate;

use allosaur_api::{Fields, StatelessMethod};

use crate::control::{Control, Reply, View};

impl Control {
    /// One arm for each command of the domain.
    pub(super) fn call_stateless(
        &mut self,
        method: StatelessMethod,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        match method {
            StatelessMethod::PushPackets => self.push_packets(fields, view),
            StatelessMethod::ProfileList => self.profile_list(fields),
            StatelessMethod::StreamList => self.stream_list(fields),
            StatelessMethod::AllStreams => self.all_streams(fields),
            StatelessMethod::Stream => self.stream(fields),
            StatelessMethod::AddStream => self.add_stream(fields, view),
            StatelessMethod::RemoveStream => self.remove_stream(fields),
            StatelessMethod::RemoveAllStreams => self.remove_all_streams(fields),
            StatelessMethod::StartTraffic => self.start_traffic(fields, view),
            StatelessMethod::StopTraffic => self.stop_traffic(fields),
            StatelessMethod::PushRemote => self.push_remote(fields),
            StatelessMethod::Validate => self.validate(fields),
            StatelessMethod::PauseTraffic => self.pause_traffic(fields, view),
            StatelessMethod::ResumeTraffic => self.resume_traffic(fields, view),
            StatelessMethod::UpdateTraffic => self.update_traffic(fields, view),
            StatelessMethod::PauseStreams => self.pause_streams(fields, view),
            StatelessMethod::ResumeStreams => self.resume_streams(fields, view),
            StatelessMethod::UpdateStreams => self.update_streams(fields, view),
            StatelessMethod::ActivePgids => self.active_pgids(),
            StatelessMethod::PgidStats => self.pgid_stats(fields, view),
            StatelessMethod::RemoveRxFilters => self.remove_rx_filters(fields),
            StatelessMethod::TpgStatus => self.tpg_status(fields),
        }
    }
}
