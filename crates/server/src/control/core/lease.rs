//! Owners: that they are there renews their leases; what they own is released.

use allosaur_api::events::Event;
use allosaur_api::{Access, Fields, Method, ServerMethod};
use allosaur_engine::time::Nanos;

use super::base::Core;

impl Core {
    /// The owner who makes this request is there: its leases begin anew. One that is over stays over.
    pub(in crate::control) fn renew_leases(
        &mut self,
        access: Access,
        method: Method,
        fields: &Fields<'_>,
    ) {
        let session = match access {
            Access::Owner => fields
                .byte("port_id")
                .ok()
                .and_then(|id| self.ports.get(usize::from(id)))
                .and_then(|port| Some(port.owner.as_ref()?.session)),
            Access::Context => self.mode_owner.as_ref().map(|owner| owner.session),
            _ if method == Method::Server(ServerMethod::AsyncEvents) => {
                fields.uint32("session_id").ok()
            }
            _ => None,
        };
        let Some(session) = session else { return };
        let of_ports = self.ports.iter_mut().map(|port| &mut port.owner);
        let owners = of_ports.chain([&mut self.mode_owner]).flatten();
        for owner in owners.filter(|owner| owner.session == session) {
            if let Some(lease) = &mut owner.lease {
                lease.silent = 0;
            }
        }
    }

    /// Nobody has stateful mode any more, and those who listen hear of it.
    pub(in crate::control) fn release_stateful_ports(&mut self, now_ns: Nanos) {
        self.mode_owner = None;
        for id in self.stateful_ports() {
            self.release_port(id, now_ns);
        }
    }

    /// Nobody owns a port any more, and those who listen are told.
    pub(in crate::control) fn release_port(&mut self, id: u8, now_ns: Nanos) {
        if let Some(owner) = self.ports[usize::from(id)].owner.take() {
            let event = Event::PortReleased {
                port: id,
                who: owner.user,
                session: owner.session,
            };
            self.queue_event(event, now_ns);
        }
    }
}
