//! What there is to be counted, of all domains of control, for whoever reads metrics.

use allosaur_api::Fields;
use allosaur_api::commands::metrics::MetricsParams;

use super::server::mode_name;
use super::server::status::seconds_since;
use super::{Control, LinkOwner, Reply, View, reply};
use crate::control::ports::port::{Port, State};
use crate::metrics::{self, Catalog, CatalogPort, CatalogProfile, Readout};

impl Control {
    /// What there is to be counted.
    pub fn catalog(&self, view: &View<'_>) -> Catalog {
        let build = &self.config.build;
        Catalog {
            version: build.version.clone(),
            built: format!("{} {}", build.date, build.time),
            uptime_s: seconds_since(self.started_ns, view.now_ns),
            ports: self
                .ports
                .iter()
                .map(|port| self.catalog_port(port))
                .collect(),
            groups: self.groups.catalog(),
            runs: self.catalog_runs(view.now_ns),
            echo: self.catalog_echo(),
            problems: Vec::new(),
        }
    }

    /// Answers `get_metrics`.
    pub(super) fn metrics(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = fields.read::<MetricsParams>()?;
        let readout = Readout {
            catalog: &self.catalog(view),
            snapshot: view.snapshot,
            groups: view.groups,
        };
        reply(&metrics::reading(&readout, &params, view.now_ns))
    }

    fn catalog_port(&self, port: &Port) -> CatalogPort {
        let config = &port.config;
        let profiles = port.profiles.iter();
        let used = profiles.filter(|(_, profile)| profile.state() != State::Idle);
        let profiles = used.map(|(name, profile)| CatalogProfile {
            name: name.clone(),
            streams: profile.streams.len(),
            is_running: profile.run.is_some(),
        });
        CatalogPort {
            driver: config.driver.clone(),
            interface: config.interface.clone().unwrap_or_default(),
            description: config.description.clone(),
            peer: match config.link {
                LinkOwner::Server { peer } => peer,
                LinkOwner::System => None,
            },
            mode: mode_name(port.mode),
            is_link_up: port.reception.link_up,
            is_sending: self.is_busy(port),
            profiles: profiles.collect(),
        }
    }
}
