//! Commands of emulated clients, for who has no connection to their own port. Data threads do them, as
//! they do those that come by that port; who may call them is looked at here.

use allosaur_api::{Error, Fields, Method};
use allosaur_emulation::rpc::call::RpcCall;

use crate::control::awaited::{Awaited, Awaits};
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::domain::{Domain, Others};
use crate::control::reply::Reply;
use crate::emulation::{EmulationAnswer, EmulationRequest, PART_CLIENTS};

/// The numbers of calls of control, which those of the clients' own port do not reach.
const CALLS_OF_CONTROL: u64 = 1 << 63;

/// What waits for data threads.
#[derive(Debug, Default)]
pub(in crate::control) struct EmulatedClients {
    awaited: Awaited<EmulatedClients>,
    calls: u64,
}

impl Awaits for EmulatedClients {
    fn awaited(&mut self) -> Option<&mut Awaited<EmulatedClients>> {
        Some(&mut self.awaited)
    }
}

impl Domain for EmulatedClients {
    fn call(
        &mut self,
        control: &mut Core,
        _others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        let Method::Emulation(name) = method else {
            return None;
        };
        self.calls += 1;
        let call = RpcCall::new(name, fields.to_value()).admitted();
        Some(self.ask(control, call, CALLS_OF_CONTROL | self.calls, view))
    }
}

impl EmulatedClients {
    /// Has data threads do a call, a long one part after part: between two parts they look at frames and
    /// timers.
    fn ask(
        &mut self,
        control: &mut Core,
        mut call: RpcCall,
        number: u64,
        view: &View<'_>,
    ) -> Reply {
        let (part, rest) = match call.split_off(PART_CLIENTS) {
            Some(part) => (part, Some(call)),
            None => (call, None),
        };
        let request = EmulationRequest::Call {
            usage: part.wants_usage().then(|| view.endpoints.process_usage()),
            call: part,
            number,
        };
        self.awaited.ask(
            control,
            request,
            move |domain, control, _, answer, view| match (answer, rest) {
                (Some(EmulationAnswer::Called(Ok(_))), Some(rest)) => {
                    domain.ask(control, rest, number, view)
                }
                (Some(EmulationAnswer::Called(reply)), _) => reply,
                _ => Err(Error::execution(
                    "this server has no emulated clients: start it with --emu",
                )),
            },
        )
    }
}
