//! What the server does: who owns what, and what runs since when.

use allosaur_api::Fields;
use allosaur_api::commands::status::{PortOwner, PortUse, Status};

use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::access::mode_name;
use crate::control::core::owner::Owner;
use crate::control::domain::{Others, Scope};
use crate::control::reply::{Reply, reply};
use crate::control::time::seconds_since;

pub(super) fn status(
    control: &Core,
    others: &Others<'_>,
    fields: &Fields<'_>,
    view: &View<'_>,
) -> Reply {
    let now_ns = view.now_ns;
    let profiles = |scope| {
        let domains = others.iter();
        let uses = domains.flat_map(|domain| domain.profile_uses(control, scope, now_ns));
        uses.collect()
    };
    let ports = (0_u8..).zip(&control.ports);
    let ports = ports.map(|(id, port)| PortUse {
        port_id: id,
        mode: mode_name(port.mode),
        owner: control.owner_of(port).map(owner),
        state: others.port_use(control, id).state.unwrap_or_default(),
        profiles: profiles(Scope::Port(id)),
    });
    reply(&Status {
        mode: control.api(fields).name,
        modes: control.mode_names(),
        uptime_s: seconds_since(control.started_ns, now_ns),
        ports: ports.collect(),
        profiles: profiles(Scope::Mode),
    })
}

fn owner(owner: &Owner) -> PortOwner {
    PortOwner {
        user: owner.user.clone(),
        session_id: owner.session,
        lease_s: owner.lease.map(|lease| lease.length_s()),
    }
}
