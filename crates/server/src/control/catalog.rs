//! What there is to be counted, for whoever reads metrics: the part that the core knows.

use allosaur_engine::time::Nanos;

use super::config::LinkOwner;
use super::core::Core;
use super::core::access::mode_name;
use super::core::port::Port;
use super::time::seconds_since;
use crate::metrics::{Catalog, CatalogPort};

impl Core {
    /// What the core knows of: domains add theirs.
    pub(in crate::control) fn catalog(&self, now_ns: Nanos) -> Catalog {
        let build = &self.config.build;
        Catalog {
            version: build.version.clone(),
            built: format!("{} {}", build.date, build.time),
            uptime_s: seconds_since(self.started_ns, now_ns),
            ports: self.ports.iter().map(catalog_port).collect(),
            groups: Vec::new(),
            runs: Vec::new(),
            echo: None,
            bgp_sessions: Vec::new(),
            problems: Vec::new(),
        }
    }
}

fn catalog_port(port: &Port) -> CatalogPort {
    let config = &port.config;
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
        is_sending: false,
        profiles: Vec::new(),
    }
}
