//! Commands about ports: state, attributes and ownership.

mod addresses;
pub(in crate::control) mod attributes;
mod lease;
mod modes;
mod state;

use allosaur_api::commands::layers::VXLAN_PORT;
use allosaur_api::commands::ports::{
    Acquire, Handler, PortOwnerName, PortParams, PortStatus, PortStatusParams, ProfileStates,
    SetPortAttribute,
};
use allosaur_api::events::Event;
use allosaur_api::limits::VXLAN_PORTS_MAX;
use allosaur_api::{Empty, Error, Fields, Method, PortMethod, StatefulMethod};
use allosaur_engine::flow_stats::{self, VxlanPorts};
use allosaur_engine::time::Nanos;

use self::attributes::{attribute_problem, attributes, attributes_changed};
pub(in crate::control) use self::state::Ports;
use crate::control::awaited::{Awaited, Awaits};
use crate::control::capture::service::receive_features;
use crate::control::config::{LinkOwner, View};
use crate::control::core::Core;
use crate::control::core::owner::{Lease, Owner};
use crate::control::domain::{Domain, Others};
use crate::control::reply::{Reply, reply};
use crate::control::worker_command::PortMode;
use crate::rx_taps::{PortAnswer, PortRequest, PortState, ServiceMode};

/// As many ports of VXLAN as the RPC lets in, the engine takes; and of both the standard's is the same.
const _: () = assert!(VXLAN_PORTS_MAX <= flow_stats::VXLAN_PORTS_MAX);
const _: () = assert!(VXLAN_PORT == flow_stats::VXLAN_PORT);

impl Awaits for Ports {
    fn awaited(&mut self) -> Option<&mut Awaited<Ports>> {
        Some(&mut self.awaited)
    }
}

impl Domain for Ports {
    fn call(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        Some(match method {
            Method::Ports(PortMethod::PortStatus) => self.port_status(control, others, fields),
            Method::Ports(PortMethod::Owner) => owner(control, fields),
            Method::Ports(PortMethod::SetPortAttribute) => {
                set_port_attribute(control, fields, view)
            }
            Method::Ports(PortMethod::Acquire) => acquire(control, others, fields, view),
            Method::Ports(PortMethod::Release) => release(control, fields, view),
            Method::Ports(PortMethod::SetL2) => addresses::set_l2(control, others, fields),
            Method::Ports(PortMethod::SetL3) => addresses::set_l3(control, others, fields),
            Method::Ports(PortMethod::ConfigureIpv6) => {
                addresses::configure_ipv6(control, others, fields)
            }
            Method::Ports(PortMethod::SetVlan) => addresses::set_vlan(control, others, fields),
            Method::Ports(PortMethod::SetVxlan) => addresses::set_vxlan(control, others, fields),
            Method::Stateful(StatefulMethod::Acquire) => {
                modes::acquire_context(control, others, fields, view)
            }
            Method::Stateful(StatefulMethod::Release) => modes::release_context(control),
            _ => return None,
        })
    }

    fn handle_tick(&mut self, control: &mut Core, others: &mut Others<'_>, view: &View<'_>) {
        self.ask_for_gateways(control);
        self.run_leases(control, others, view);
    }

    fn handle_rest(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        port: u8,
        now_ns: Nanos,
    ) {
        lease::release_at_rest(control, others, port, now_ns);
    }
}

impl Ports {
    fn port_status(
        &mut self,
        control: &mut Core,
        others: &Others<'_>,
        fields: &Fields<'_>,
    ) -> Reply {
        let params = fields.read::<PortStatusParams>()?;
        control.port(params.port)?;
        profile_states(others, params.port, params.profile.as_deref())?;
        let mode = control.request_mode(fields);
        let request = PortRequest::State(params.port);
        self.awaited
            .ask(control, request, move |_, control, others, answer, _| {
                let watched = match answer {
                    Some(PortAnswer::State(state)) => state,
                    _ => PortState::default(),
                };
                watched_port_status(control, others, &params, mode, &watched)
            })
    }
}

fn watched_port_status(
    control: &Core,
    others: &Others<'_>,
    params: &PortStatusParams,
    mode: PortMode,
    watched: &PortState,
) -> Reply {
    let port = control.port(params.port)?;
    let owner = port.owner.as_ref();
    let loaded = others
        .iter()
        .find_map(|domain| domain.port_profiles(params.port));
    let loaded = loaded.unwrap_or_default();
    let state = others.port_use(control, params.port).state;
    let announces = port.layers.has_ipv4() && !control.config.has_linux_stack;
    reply(&PortStatus {
        owner: owner.map(|owner| owner.user.clone()).unwrap_or_default(),
        state: match state.unwrap_or_default() {
            // TRex's stateless client takes the states of flows for errors of the server.
            state if state.starts_with("ASTF") && mode == PortMode::Stateless => "TX",
            state => state,
        },
        state_profile: profile_states(others, params.port, params.profile.as_deref())?,
        service: port.service == ServiceMode::On,
        service_filtered: matches!(port.service, ServiceMode::Filtered(_)),
        profile_count: loaded.names.len(),
        max_stream_id: loaded.stream_id_max,
        attr: attributes(port),
        rx_info: receive_features(watched, announces),
    })
}

/// The states of profiles of a port, where they are asked for.
fn profile_states(
    others: &Others<'_>,
    port: u8,
    profile: Option<&str>,
) -> Result<Option<ProfileStates>, Error> {
    let Some(profile) = profile else {
        return Ok(None);
    };
    let mut states = others
        .iter()
        .map(|domain| domain.profile_state(port, profile));
    states.find_map(Result::transpose).transpose()
}

fn owner(control: &Core, fields: &Fields<'_>) -> Reply {
    let PortParams { port } = fields.read()?;
    let owner = &control.port(port)?.owner;
    let user = owner.as_ref().map_or("<FREE>", |owner| &owner.user);
    reply(&PortOwnerName {
        owner: user.to_owned(),
    })
}

fn set_port_attribute(control: &mut Core, fields: &Fields<'_>, view: &View<'_>) -> Reply {
    let params = SetPortAttribute::parse(fields)?;
    let port = control.port(params.port)?;
    if let Some(name) = params.others.first() {
        return Err(Error::execution(attribute_problem(name)));
    }
    if params.link_up.is_some() && port.config.link == LinkOwner::System {
        return Err(Error::execution(attribute_problem("link_status")));
    }
    let mut reception = port.reception;
    reception.link_up = params.link_up.unwrap_or(reception.link_up);
    if let Some(ports) = &params.vxlan_ports {
        reception.vxlan =
            VxlanPorts::with(ports).expect("the RPC lets in no more than there is room for");
    }
    let before = (port.promiscuous, port.multicast);
    let promiscuous = params.promiscuous.unwrap_or(port.promiscuous);
    let multicast = params.multicast.unwrap_or(port.multicast);
    let has_emulation = control.config.has_emulation;
    let port = control.port_mut(params.port)?;
    (port.promiscuous, port.multicast) = (promiscuous, multicast);
    reception.mac_filter = port.mac_filter(has_emulation);
    let action = port.set_receive(params.port);
    let mut changed = control.set_reception(params.port, reception)?;
    if before != (promiscuous, multicast) {
        changed.insert(params.port);
        control.push(action);
    }
    for id in changed {
        let event = attributes_changed(id, control.port(id)?);
        control.queue_event(event, view.now_ns);
    }
    reply(&Empty {})
}

fn acquire(
    control: &mut Core,
    others: &mut Others<'_>,
    fields: &Fields<'_>,
    view: &View<'_>,
) -> Reply {
    let params = fields.read::<Acquire>()?;
    let was_taken = control.port(params.port)?.owner.is_some();
    modes::leave_stateful_mode(control, others, &params, view)?;
    let owner = control.port(params.port)?.owner.clone();
    let lease = params.lease_s.map(Lease::new);
    if let (Some(owner), false) = (&owner, params.force) {
        check_same_session(owner, &params)?;
        control.port_mut(params.port)?.owner = Some(Owner {
            lease,
            ..owner.clone()
        });
        return reply(&Handler(owner.handler.clone()));
    }
    control.touch_session(params.session, fields, view)?;
    let handler = control.secrets.draw();
    control.port_mut(params.port)?.owner = Some(Owner {
        user: params.user.clone(),
        session: params.session,
        handler: handler.clone(),
        lease,
    });
    let event = Event::PortAcquired {
        port: params.port,
        who: params.user,
        session: params.session,
        force: was_taken,
    };
    control.queue_event(event, view.now_ns);
    reply(&Handler(handler))
}

fn release(control: &mut Core, fields: &Fields<'_>, view: &View<'_>) -> Reply {
    let PortParams { port: id } = fields.read()?;
    if let Some(owner) = control.port_mut(id)?.owner.take() {
        let event = Event::PortReleased {
            port: id,
            who: owner.user,
            session: owner.session,
        };
        control.queue_event(event, view.now_ns);
    }
    reply(&Empty {})
}

fn check_same_session(owner: &Owner, params: &Acquire) -> Result<(), Error> {
    let user = &owner.user;
    if *user != params.user {
        return Err(Error::execution(format!(
            "port is already taken by '{user}'"
        )));
    }
    if owner.session != params.session {
        return Err(Error::execution(format!(
            "port is already owned by another session of '{user}'"
        )));
    }
    Ok(())
}
