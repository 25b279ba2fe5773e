//! Template groups: their names, and what each has counted.

use std::collections::BTreeMap;

use allosaur_api::commands::stateful::counters::{
    GroupNames, TemplateGroupNames, TemplateGroupStats, TemplateGroupValues,
};
use allosaur_api::{Error, Fields};

use super::app_latency;
use super::counters::values_of;
use super::loaded::Profile;
use super::state::Stateful;
use crate::control::config::View;
use crate::control::reply::{Reply, reply};

impl Stateful {
    pub(super) fn group_names(&self, fields: &Fields<'_>) -> Reply {
        let params = GroupNames::parse(fields)?;
        let profile = self.profile(&params.profile)?;
        let epoch = profile.epoch;
        if params.known_epoch == Some(epoch) {
            return reply(&TemplateGroupNames {
                epoch,
                tg_names: None,
                tg_addon_desc: None,
            });
        }
        let names = names(profile);
        let first = self.rows.count();
        let addon = |group: usize| {
            let run = profile.run.as_ref();
            run.map_or(Vec::new(), |run| {
                app_latency::of_group(&run.profile, group, first)
            })
        };
        let addon = (0..=names.len()).map(|group| (group, addon(group)));
        reply(&TemplateGroupNames {
            epoch,
            tg_names: Some(names.to_vec()),
            tg_addon_desc: Some(addon.collect()),
        })
    }

    pub(super) fn group_stats(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params: TemplateGroupStats = fields.read()?;
        let name = &params.profile;
        if let Some(run) = &mut self.profile_mut(name)?.run {
            run.read(view);
        }
        let profile = self.profile(name)?;
        let (epoch, groups) = (profile.epoch, names(profile).len());
        let mut values = TemplateGroupValues {
            epoch,
            groups: BTreeMap::new(),
        };
        if params.epoch != epoch {
            return reply(&values);
        }
        for &group in &params.groups {
            if !(1..=groups).contains(&(group as usize)) {
                return Err(Error::execution(format!(
                    "profile_id {name} has no template group {group}: it has {groups}, numbered \
                     from 1 on; get_tg_names names them"
                )));
            }
        }
        let Some(run) = &profile.run else {
            return reply(&values);
        };
        for &group in &params.groups {
            let counters = run.group(group as usize);
            let rates = run.readings.of_group(group as usize);
            let duration_s = run.duration_s(view.now_ns);
            let about = (format!("counters per TGID: {group}"), epoch);
            let rows = &self.rows;
            let mut of_group = values_of(rows, about, &counters, rates, duration_s, None);
            app_latency::add_values(&mut of_group, &counters, rows.count());
            values.groups.insert(group.to_string(), of_group);
        }
        reply(&values)
    }
}

/// The groups of a profile that was started.
fn names(profile: &Profile) -> &[String] {
    profile.run.as_ref().map_or(&[], |run| run.profile.groups())
}
