//! Addresses of stateful traffic: who has which, which clients rest, who gets no answer.

use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_api::commands::stateful::clients::{
    AddressSpan, ClientInfo, ClientState, Clients, ClientsInfo, Distributed, EnableClients,
    IgnoredAddress, IgnoredAddresses, IgnoredAddressesParams, IgnoredMac, IgnoredMacs,
    IgnoredMacsParams, TrafficDistributionParams,
};
use allosaur_api::limits::{CLIENTS_ASKED_MAX, DISABLED_RANGES_MAX};
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::stateful::{Blocklist, StatefulCommand};
use allosaur_engine::template::{
    AddressRange, CompiledProfile, Distribution, HostTable, PerCore, PoolShare, PoolSpec, Side,
};
use allosaur_packet::MacAddress;
use serde_json::Value;

use super::client_terms::ClientTerms;
use super::state::Stateful;
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};

impl Stateful {
    pub(super) fn enable_clients(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = EnableClients::parse(fields)?;
        let mut terms = ClientTerms {
            disabled: self.clients.disabled.clone(),
            ..ClientTerms::default()
        };
        for &(first, last) in &params.clients.ranges {
            terms.disabled = terms.with(first, last, !params.enabled);
            if terms.disabled.len() > DISABLED_RANGES_MAX {
                return Err(Error::execution(format!(
                    "more than {DISABLED_RANGES_MAX} ranges of clients would be disabled, which is \
                     the most: use larger ranges"
                )));
            }
        }
        self.clients.disabled = terms.disabled;
        for (first, last) in params.clients.ranges {
            let enabled = params.enabled;
            control.command_all_flows(|| StatefulCommand::EnableClients {
                first,
                last,
                enabled,
            });
        }
        reply(&Empty {})
    }

    pub(super) fn ask_for_clients(&mut self, fields: &Fields<'_>) -> Reply {
        let clients = Clients::parse(fields)?;
        let counts = clients
            .ranges
            .iter()
            .map(|(first, last)| u64::from(last - first) + 1);
        let count: u64 = counts.sum();
        if count > CLIENTS_ASKED_MAX as u64 {
            return Err(Error::execution(format!(
                "{count} clients are too many at once: ask about at most {CLIENTS_ASKED_MAX}"
            )));
        }
        self.clients.asked = Some(clients);
        Ok(Value::Null)
    }

    pub(super) fn clients_info(&self, control: &Core) -> Reply {
        let Some(asked) = &self.clients.asked else {
            return Err(Error::execution(
                "The clients info is not ready yet: ask for it by get_clients_info_start",
            ));
        };
        let ranges = self.clients_that_run(control);
        let tables = self.hosts_that_run();
        let info = |client: u32| {
            let runs = ranges.iter().any(|range| range.contains(client))
                || tables.iter().any(|hosts| hosts.has_address(client));
            let state = match self.clients.is_disabled(client) {
                true => ClientState::Inactive,
                false => ClientState::Active,
            };
            ClientInfo {
                found: u8::from(runs),
                state: runs.then_some(state),
            }
        };
        let clients = asked.ranges.iter().flat_map(|(first, last)| *first..=*last);
        let infos = clients.map(|client| (client, info(client)));
        reply(&ClientsInfo(infos.collect()))
    }

    /// The clients of all profiles that run, on all ports.
    fn clients_that_run(&self, control: &Core) -> Vec<AddressRange> {
        let pairs = self.flow_layout(control).pairs;
        let profiles = self.profiles.values();
        let runs = profiles.filter_map(|profile| profile.run.as_ref());
        let runs = runs.filter(|run| run.ended_at.is_none());
        let mut ranges: Vec<AddressRange> = Vec::new();
        for range in runs.flat_map(|run| client_ranges(&run.profile, pairs)) {
            if !ranges.contains(&range) {
                ranges.push(range);
            }
        }
        ranges
    }

    /// The hosts that are clients of profiles that run.
    fn hosts_that_run(&self) -> Vec<Arc<HostTable>> {
        let profiles = self.profiles.values();
        let runs = profiles.filter_map(|profile| profile.run.as_ref());
        let runs = runs.filter(|run| run.ended_at.is_none());
        let templates = runs.flat_map(|run| run.profile.templates());
        let mut tables: Vec<Arc<HostTable>> = Vec::new();
        for table in templates.filter_map(|template| template.client.hosts.as_ref()) {
            if !tables.iter().any(|known| Arc::ptr_eq(known, table)) {
                tables.push(Arc::clone(table));
            }
        }
        tables
    }

    pub(super) fn traffic_distribution(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let params = TrafficDistributionParams::parse(fields)?;
        let pool = PoolSpec {
            first: params.first.into(),
            last: params.last.into(),
            distribution: Distribution::Sequence,
            side: Side::Client,
            offset: params.offset.into(),
            per_core: match params.is_sequential {
                true => PerCore::Sequence,
                false => PerCore::Default,
            },
            hosts: None,
        };
        let layout = self.flow_layout(control);
        let threads = match pool.per_core {
            PerCore::Default => layout.cores * layout.pairs,
            PerCore::Sequence => layout.cores,
        };
        if pool.count() < u64::from(threads) {
            return Err(Error::execution(format!(
                "{} addresses are too few for {threads} data threads: give one each at least",
                pool.count()
            )));
        }
        let of_port = |(pair, port): (u32, u8)| {
            let cores = (0..layout.cores).map(|rank| {
                let share = PoolShare {
                    rank,
                    cores: layout.cores,
                    pair,
                    pairs: layout.pairs,
                };
                let range = AddressRange::of(&pool, share);
                let [start, end] = [range.first, range.last].map(Ipv4Addr::from);
                (rank, AddressSpan { start, end })
            });
            (port, cores.collect())
        };
        let ports = (0..).zip(self.client_ports(control)).map(of_port);
        reply(&Distributed(ports.collect()))
    }

    pub(super) fn set_ignored_macs(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params: IgnoredMacsParams = fields.read()?;
        self.clients.macs = params.macs.iter().map(|of| of.mac).collect();
        self.send_ignored(control);
        Ok(Value::Null)
    }

    pub(super) fn ignored_macs(&self) -> Reply {
        let macs = self.clients.macs.iter();
        let macs = macs.map(|&mac| IgnoredMac { mac });
        reply(&IgnoredMacs(macs.collect()))
    }

    pub(super) fn set_ignored_addresses(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
    ) -> Reply {
        let params: IgnoredAddressesParams = fields.read()?;
        let addresses = params.addresses.iter();
        self.clients.addresses = addresses.map(|of| of.address).collect();
        self.send_ignored(control);
        Ok(Value::Null)
    }

    pub(super) fn ignored_addresses(&self) -> Reply {
        let addresses = self.clients.addresses.iter();
        let addresses = addresses.map(|&address| IgnoredAddress { address });
        reply(&IgnoredAddresses(addresses.collect()))
    }

    /// Tells all data threads who rests, and who gets no answer.
    pub(super) fn send_client_terms(&mut self, control: &mut Core) {
        for (first, last) in self.clients.disabled.clone() {
            control.command_all_flows(|| StatefulCommand::EnableClients {
                first,
                last,
                enabled: false,
            });
        }
        self.send_ignored(control);
    }

    fn send_ignored(&mut self, control: &mut Core) {
        let terms = &self.clients;
        let macs = terms.macs.iter().map(|mac| {
            let [_, _, mac @ ..] = mac.to_be_bytes();
            MacAddress(mac)
        });
        let addresses = terms
            .addresses
            .iter()
            .map(|address| Ipv4Addr::from(*address));
        let ignored = Arc::new(Blocklist::new(macs, addresses));
        control.command_all_flows(|| StatefulCommand::SetIgnored(Arc::clone(&ignored)));
    }
}

/// The clients of a profile on all pairs of ports.
fn client_ranges(profile: &CompiledProfile, pairs: u32) -> Vec<AddressRange> {
    let templates = profile.templates().iter();
    let templates = templates.filter(|template| template.client.hosts.is_none());
    let mut pools: Vec<usize> = templates.map(|t| t.client.client_pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let on_pair = |pool: usize, pair: u32| {
        let spec = &profile.pools()[pool];
        let moved = pair.wrapping_mul(spec.offset);
        AddressRange {
            first: spec.first.wrapping_add(moved),
            last: spec.last.wrapping_add(moved),
        }
    };
    let ranges = pools
        .into_iter()
        .flat_map(|pool| (0..pairs).map(move |pair| (pool, pair)));
    ranges.map(|(pool, pair)| on_pair(pool, pair)).collect()
}
