//! Who may do what: the handles of the handshake, and the handlers of owners.

use allosaur_api::{Access, Error, Fields, Mode};

use super::base::Core;
use super::port::{check_owner, in_other_mode};
use crate::control::worker_command::PortMode;

/// The modes, as clients name them in the handshake, with the versions of their RPC.
const APIS: [Api; 2] = [
    Api {
        mode: PortMode::Stateless,
        name: "STL",
        version: (5, 1),
    },
    Api {
        mode: PortMode::Stateful,
        name: "ASTF",
        version: (2, 3),
    },
];

/// The name of a mode, and the version of its RPC.
#[derive(Clone, Copy)]
pub(in crate::control) struct Api {
    pub(in crate::control) mode: PortMode,
    pub(in crate::control) name: &'static str,
    pub(in crate::control) version: (i64, i64),
}

/// A mode as the table of commands knows it.
pub(in crate::control) fn api_mode(mode: PortMode) -> Mode {
    match mode {
        PortMode::Stateless => Mode::Stateless,
        PortMode::Stateful => Mode::Stateful,
    }
}

impl Core {
    /// What a request is for; without a handshake before, the mode that ports begin in.
    pub(in crate::control) fn api(&self, fields: &Fields<'_>) -> Api {
        api_of(self.request_mode(fields))
    }

    /// The modes that the server has, as clients name them.
    pub(in crate::control) fn mode_names(&self) -> Vec<&'static str> {
        let there = APIS.iter().filter(|api| self.config.modes.has(api.mode));
        there.map(|api| api.name).collect()
    }

    /// The mode of that name, if the server has it.
    pub(in crate::control) fn find_api(&self, wanted: &str) -> Result<Api, Error> {
        let mut there = APIS.iter().filter(|api| self.config.modes.has(api.mode));
        let found = there.find(|api| api.name == wanted).copied();
        found.ok_or_else(|| {
            let names = self.mode_names().join("' and '");
            Error::execution(format!(
                "RPC configuration mismatch - server RPC configuration: '{names}', client RPC \
                 configuration: '{wanted:.64}'"
            ))
        })
    }

    /// The mode that a request is for, by the handle that it carries; without one the mode that the
    /// server has, and none where it has both.
    pub(in crate::control) fn mode_of(&self, fields: &Fields<'_>) -> Option<PortMode> {
        let handle = fields.string("api_h").ok();
        let handles = &self.api_handles;
        let both = [PortMode::Stateless, PortMode::Stateful];
        let of_handle = both.into_iter().find(|mode| {
            self.config.modes.has(*mode) && handle.is_some_and(|handle| handle == handles.of(*mode))
        });
        of_handle.or_else(|| self.config.modes.only())
    }

    /// The same; without a handshake before, the mode that ports begin in.
    pub(in crate::control) fn request_mode(&self, fields: &Fields<'_>) -> PortMode {
        let mode = self.mode_of(fields);
        mode.unwrap_or(self.config.modes.first())
    }

    /// Refuses who may not use a command.
    pub(in crate::control) fn check_access(
        &self,
        access: Access,
        fields: &Fields<'_>,
    ) -> Result<(), Error> {
        if access == Access::Open {
            return Ok(());
        }
        let handle = fields.string("api_h")?;
        let mode = self.mode_of(fields);
        if mode.is_none_or(|mode| handle != self.api_handles.of(mode)) {
            return Err(Error::execution(
                "API verification failed - API handler provided mismatch for class: 'common'. \
                 Call api_sync_v2 and pass the api_h that it answers.",
            ));
        }
        if access == Access::Owner {
            let id = fields.byte("port_id")?;
            let port = self.port(id)?;
            let handler = fields.string("handler")?;
            return check_owner(port, handler).map_err(|error| match mode {
                Some(mode) if mode != port.mode => in_other_mode(id, port),
                _ => error,
            });
        }
        if access == Access::Context {
            return self.check_context_owner(fields.string("handler")?);
        }
        Ok(())
    }

    /// Refuses what only the owner of the server may do.
    fn check_context_owner(&self, handler: &str) -> Result<(), Error> {
        match &self.mode_owner {
            Some(owner) if owner.handler == handler => Ok(()),
            _ => Err(Error::execution(
                "must acquire the context for this operation: call 'acquire' and pass its handler",
            )),
        }
    }
}

fn api_of(mode: PortMode) -> Api {
    let mut apis = APIS.into_iter();
    apis.find(|api| api.mode == mode).expect("each has one")
}

/// What clients call a mode.
pub(in crate::control) fn mode_name(mode: PortMode) -> &'static str {
    api_of(mode).name
}
