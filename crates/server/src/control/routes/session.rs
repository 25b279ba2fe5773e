//! What a session is to be, from what is asked for and from its speaker.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use allosaur_api::commands::routes::{AddBgpSession, RouteFamily};
use allosaur_api::{Error, Fields};
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::wire::prefix::AddressFamily;

use crate::counters::BgpSessionBlock;
use crate::routes::{SessionSpec, SpeakerSpec};

const SECOND_NS: u64 = 1_000_000_000;

/// A session of a speaker, or which field is wrong.
pub(super) fn session_spec(
    speaker: &SpeakerSpec,
    params: AddBgpSession,
    block: Arc<BgpSessionBlock>,
    fields: &Fields<'_>,
) -> Result<SessionSpec, Error> {
    let addresses = &speaker.place.addresses;
    if !addresses.is_empty() && speaker.place.address_to(params.peer).is_none() {
        let problem = format!(
            "is {}, and the speaker has no address of that family: give a peer of the family of {}",
            params.peer, addresses[0]
        );
        return Err(fields.bad("peer", problem).into());
    }
    let own = NextHops {
        ipv4: params
            .next_hop_ipv4
            .or_else(|| addresses.iter().find_map(ipv4)),
        ipv6: params
            .next_hop_ipv6
            .or_else(|| addresses.iter().find_map(ipv6)),
    };
    let config = BgpSessionConfig {
        local_as: speaker.asn,
        peer_as: params.peer_asn,
        identifier: speaker.router_id,
        hold_time_s: speaker.hold_time_s,
        connect_retry_ns: u64::from(params.connect_retry_s) * SECOND_NS,
        passive: params.passive,
        families: own.families(params.families.as_deref(), fields)?,
        extended_messages: params.extended_messages,
        restart_time_s: params.restart_time_s,
        next_hop_ipv4: own.ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED),
        next_hop_ipv6: own.ipv6.unwrap_or(Ipv6Addr::UNSPECIFIED),
    };
    config
        .check()
        .map_err(|error| Error::execution(error.to_string()))?;
    Ok(SessionSpec {
        config,
        peer: SocketAddr::new(params.peer, params.peer_port),
        md5: params.md5,
        block,
    })
}

fn ipv4(address: &IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    }
}

fn ipv6(address: &IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(*address),
        IpAddr::V4(_) => None,
    }
}

/// The next hops of a session's routes.
struct NextHops {
    ipv4: Option<Ipv4Addr>,
    ipv6: Option<Ipv6Addr>,
}

impl NextHops {
    /// The families that are offered: those that are wanted, or all that have a next hop.
    fn families(
        &self,
        wanted: Option<&[RouteFamily]>,
        fields: &Fields<'_>,
    ) -> Result<Vec<AddressFamily>, Error> {
        let has = |family: RouteFamily| match family {
            RouteFamily::Ipv4 => self.ipv4.is_some(),
            RouteFamily::Ipv6 => self.ipv6.is_some(),
        };
        let all = [RouteFamily::Ipv4, RouteFamily::Ipv6];
        let chosen: Vec<RouteFamily> = match wanted {
            Some(wanted) => all.into_iter().filter(|one| wanted.contains(one)).collect(),
            None => all.into_iter().filter(|one| has(*one)).collect(),
        };
        let without = chosen.iter().find(|family| !has(**family));
        let missing = match without {
            Some(RouteFamily::Ipv6) => Some("next_hop_ipv6"),
            Some(RouteFamily::Ipv4) => Some("next_hop_ipv4"),
            None if chosen.is_empty() => Some("next_hop_ipv4"),
            None => None,
        };
        if let Some(name) = missing {
            let problem = "is missing, and the speaker has no address of that family: give it, or give the \
                           speaker an address";
            return Err(fields.bad(name, problem).into());
        }
        let families = chosen.into_iter().map(address_family);
        Ok(families.collect())
    }
}

/// A family, as the speaker has it.
pub(super) fn address_family(family: RouteFamily) -> AddressFamily {
    match family {
        RouteFamily::Ipv4 => AddressFamily::Ipv4,
        RouteFamily::Ipv6 => AddressFamily::Ipv6,
    }
}
