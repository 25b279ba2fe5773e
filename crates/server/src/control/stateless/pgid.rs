//! Commands about packet groups.

use std::collections::BTreeMap;

use allosaur_api::commands::groups::{
    ActivePgids, GroupLatencies, PgidStats, PgidStatsParams, StrayPackets,
};
use allosaur_api::commands::traffic::ProfileParams;
use allosaur_api::{Empty, Error, Fields};

use super::state::Stateless;
use crate::control::action::Action;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::percentiles::Percentiles;
use crate::control::reply::{Reply, reply};
use crate::counters::LatencyTerms;

impl Stateless {
    pub(super) fn active_pgids(&self) -> Reply {
        let mut reply_of = ActivePgids::default();
        for (pg_id, active) in &self.groups.active {
            match active.group.is_latency() {
                true => reply_of.ids.latency.push(*pg_id),
                false => reply_of.ids.flow_stats.push(*pg_id),
            }
        }
        reply(&reply_of)
    }

    pub(super) fn pgid_stats(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let PgidStatsParams { pgids } = fields.read()?;
        let groups = self.groups.active.iter();
        let groups = groups.filter(|(id, _)| pgids.is_empty() || pgids.contains(id));
        let (mut stats, mut versions) = (BTreeMap::new(), BTreeMap::new());
        let (mut latency, mut percentiles) = (BTreeMap::new(), Percentiles::default());
        for (pg_id, active) in groups {
            stats.insert(*pg_id, active.stats(view));
            versions.insert(*pg_id, active.version);
            if let Some(measured) = active.latency(&mut percentiles, view) {
                latency.insert(pg_id.to_string(), measured);
            }
        }
        reply(&PgidStats {
            flow_stats: Some(stats).filter(|stats| !stats.is_empty()),
            latency: GroupLatencies {
                g: stray_packets(view),
                groups: latency,
            },
            ver_id: Some(versions).filter(|versions| !versions.is_empty()),
        })
    }

    /// A profile is about to start: the packets of its streams whose latency is measured begin
    /// with number zero, and the receive thread must know.
    pub(super) fn begin_latency(
        &mut self,
        control: &mut Core,
        port: u8,
        name: &str,
    ) -> Result<(), Error> {
        let groups = &self.groups.active;
        control.port(port)?;
        let profile = self.ports[usize::from(port)].profile_mut(name)?;
        if profile.run.is_some() {
            return Ok(());
        }
        for stream in profile.streams.values_mut() {
            let active = stream.pg_id.and_then(|pg_id| groups.get(&pg_id));
            let rule = stream.spec.rule.as_mut().filter(|r| r.group.is_latency());
            if let (Some(active), Some(rule)) = (active, rule) {
                rule.run = rule.run.wrapping_add(1);
                control.push(Action::ExpectLatency {
                    group: rule.group.wire_id(),
                    terms: LatencyTerms {
                        version: active.version,
                        run: rule.run,
                    },
                });
            }
        }
        Ok(())
    }

    pub(super) fn remove_rx_filters(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let params: ProfileParams = fields.read()?;
        let port = self.port(control, params.port)?;
        for name in port.profile_names(&params.profile)? {
            let profile = port.profile(&name)?;
            profile.check_not_transmitting("remove_rx_filters", &name)?;
        }
        reply(&Empty {})
    }
}

fn stray_packets(view: &View<'_>) -> Option<StrayPackets> {
    let errors = view.groups.latency_errors();
    let stray = StrayPackets {
        old_flow: errors.old_flow,
        bad_header: errors.bad_header,
    };
    (stray != StrayPackets::default()).then_some(stray)
}
