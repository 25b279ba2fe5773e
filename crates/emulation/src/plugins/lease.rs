//! What clients of DHCP for IPv4 and of DHCP for IPv6 have in common: the plugin, and the states of
//! a lease. A protocol is a [`LeaseClient`].

use std::fmt::Debug;
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::Value;

use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::frame::Frame;
use crate::namespace::Namespace;
use crate::params::Params;
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::timers::TimerId;

/// A lease that never ends, in seconds.
pub(super) const INFINITE_S: u32 = u32::MAX;
/// The most that options of a message may take, so that it fits into every link's packet.
pub(super) const OPTION_BYTES_MAX: usize = 1024;

/// Who renews or rebinds waits for half of what is left, at least and at most this long (RFC 2131
/// section 4.4.5; RFC 8415 asks more often than is good for a million clients).
const RENEW_INTERVAL_MIN: Nanos = 60 * SECOND;
const RENEW_INTERVAL_MAX: Nanos = 3600 * SECOND;
/// How many kinds of init JSON are remembered, for clients to share.
const RECENT_MAX: usize = 4;
/// Times between two messages when the init JSON does not say them.
const FIRST_INTERVAL_S: u32 = 5;
const REQUEST_INTERVAL_S: u32 = 10;
/// So often all servers are asked again after the same time, as the reference does all the time.
const FIRST_REPEATS: u8 = 3;
/// Then who is not answered asks less and less often, but at least so often (RFC 2131 section 4.1): a
/// million clients where there is no server ask 16,000 times a second.
const FIRST_INTERVAL_MAX: Nanos = 64 * SECOND;

/// How long to wait before a lease is asked for again: half of the time until `end`, but not past it.
fn retry_delay(now: Nanos, end: Nanos) -> Nanos {
    let left = end.saturating_sub(now);
    let wait = (left / 2).clamp(RENEW_INTERVAL_MIN, RENEW_INTERVAL_MAX);
    wait.min(left)
}

/// How long a client waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    /// To its first message, to all servers.
    first: Nanos,
    /// To the same message, when it was not answered for long.
    first_max: Nanos,
    /// To its request.
    pub(super) request: Nanos,
}

impl Intervals {
    /// Reads the seconds of an init JSON.
    pub(super) fn parse(init: Params<'_>) -> Result<Intervals, Error> {
        let seconds = |name, default| {
            let seconds: u32 = init.nonzero_or(name, default)?;
            Ok::<Nanos, Error>(u64::from(seconds) * SECOND)
        };
        let first = seconds("timerd", FIRST_INTERVAL_S)?;
        let is_given = first != u64::from(FIRST_INTERVAL_S) * SECOND;
        Ok(Intervals {
            first,
            first_max: if is_given { first } else { FIRST_INTERVAL_MAX },
            request: seconds("timero", REQUEST_INTERVAL_S)?,
        })
    }
}

impl Intervals {
    /// To a message to all servers, after so many that were not answered: after some, each time twice as
    /// long, unless the init JSON says how long.
    pub(super) fn first(self, unanswered: u8) -> Nanos {
        let unanswered = unanswered.saturating_sub(FIRST_REPEATS);
        let wait = self.first.saturating_mul(1 << unanswered.min(8));
        wait.min(self.first_max)
    }
}

/// What is made of an init JSON, the messages of a client.
pub(super) trait FromInit: Sized {
    /// Reads the init JSON of a client.
    fn parse(init: &Value) -> Result<Self, Error>;
}

/// Messages of the clients that came last, by their init JSON.
#[derive(Debug)]
pub(super) struct Recent<M>(Vec<(Value, Arc<M>)>);

impl<M> Default for Recent<M> {
    fn default() -> Self {
        Recent(Vec::new())
    }
}

impl<M: FromInit> Recent<M> {
    /// The messages of an init JSON.
    pub(super) fn messages(&mut self, init: &Value) -> Result<Arc<M>, Error> {
        if let Some((_, messages)) = self.0.iter().find(|(of, _)| of == init) {
            return Ok(Arc::clone(messages));
        }
        let messages = Arc::new(M::parse(init)?);
        self.0.truncate(RECENT_MAX - 1);
        self.0.insert(0, (init.clone(), Arc::clone(&messages)));
        Ok(messages)
    }
}

/// States of RFC 2131 figure 5, which RFC 8415 has under other names; INIT is left at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All servers are asked (RFC 8415: SOLICIT).
    Selecting,
    /// The server that was chosen is asked.
    Requesting,
    /// There is a lease.
    Bound,
    /// T1 is over: the server of the lease is asked for more time.
    Renewing,
    /// T2 is over: any server is asked for more time.
    Rebinding,
    /// An address was declined; nothing is sent for a while.
    Waiting,
}

/// What a client does when its timer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks all servers again.
    Discover,
    /// Gives the chosen server up, and asks all.
    StartOver,
    /// Asks the chosen server again.
    Request,
    /// Asks the server of the lease for more time, for the first time or again.
    Renew { is_first: bool },
    /// Asks any server for more time, for the first time or again.
    Rebind { is_first: bool },
    /// Gives the address up.
    Lose,
}

/// When a lease must be asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseTimes {
    /// T2, from which any server may be asked.
    pub(super) rebinds: Nanos,
    /// When the address may not be used any more.
    pub(super) expires: Nanos,
}

impl LeaseTimes {
    /// Those of a client without a lease.
    pub(super) const NEVER: LeaseTimes = LeaseTimes {
        rebinds: Nanos::MAX,
        expires: Nanos::MAX,
    };

    /// How long to wait for an answer of the lease's server.
    pub(super) fn renew_delay(self, now: Nanos) -> Nanos {
        retry_delay(now, self.rebinds.min(self.expires))
    }

    /// How long to wait for an answer of any server.
    pub(super) fn rebind_delay(self, now: Nanos) -> Nanos {
        retry_delay(now, self.expires)
    }
}

impl State {
    /// Whether the client has an address in it.
    pub(super) fn has_lease(self) -> bool {
        matches!(self, State::Bound | State::Renewing | State::Rebinding)
    }

    /// What to do when the timer is over after `retries` requests, of which there may be `retries_max`;
    /// the state is the next one then.
    pub(super) fn step(
        &mut self,
        retries: u8,
        retries_max: u8,
        times: LeaseTimes,
        now: Nanos,
    ) -> Step {
        match *self {
            State::Selecting | State::Waiting => Step::Discover,
            State::Requesting if retries == retries_max => Step::StartOver,
            State::Requesting => Step::Request,
            _ if now >= times.expires => Step::Lose,
            State::Bound => {
                *self = State::Renewing;
                Step::Renew { is_first: true }
            }
            State::Renewing if now >= times.rebinds => {
                *self = State::Rebinding;
                Step::Rebind { is_first: true }
            }
            State::Renewing => Step::Renew { is_first: false },
            State::Rebinding => Step::Rebind { is_first: false },
        }
    }
}

/// A client of one of the two protocols.
pub(super) trait LeaseClient: Debug + Send + Sized + 'static {
    /// What is made of its init JSON.
    type Messages: FromInit + Debug + Send + Sync;
    /// What the clients of a namespace share.
    type Shared: Debug + Default + Send;
    /// What it lacks until a server agrees, a noun for the user.
    const LEASE: &'static str;
    /// The family of its address.
    const IS_IPV6: bool;

    /// A client without a lease.
    fn new(context: &mut Context<'_>, messages: Arc<Self::Messages>) -> Self;
    /// Asks all servers, for the first time.
    fn start(&mut self, context: &mut Context<'_>, id: ClientId);
    /// Gives its lease back.
    fn release(&mut self, context: &mut Context<'_>, id: ClientId);
    /// A message arrived, for one of the clients.
    fn handle_frame(plugin: &mut LeasePlugin<Self>, context: &mut Context<'_>, frame: &Frame<'_>);
    /// Its timer is over.
    fn handle_timeout(&mut self, context: &mut Context<'_>, id: ClientId);
    /// Its state.
    fn state(&self) -> State;
    /// The timer that it waits for.
    fn timer(&self) -> TimerId;
    /// Its counters.
    fn counters(&mut self) -> &mut dyn Counters;
}

/// The clients of a namespace that have a protocol.
#[derive(Debug)]
pub(super) struct LeasePlugin<C: LeaseClient> {
    pub(super) clients: ClientMap<C>,
    pub(super) shared: C::Shared,
    recent: Recent<C::Messages>,
}

impl<C: LeaseClient> Default for LeasePlugin<C> {
    fn default() -> Self {
        LeasePlugin {
            clients: ClientMap::default(),
            shared: C::Shared::default(),
            recent: Recent::default(),
        }
    }
}

impl<C: LeaseClient> Plugin for LeasePlugin<C> {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        id: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let client = C::new(context, self.recent.messages(init)?);
        self.clients.insert(id, client);
        if let Some(client) = self.clients.get_mut(id) {
            client.start(context, id);
        }
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, id: ClientId) {
        if let Some(mut client) = self.clients.remove(id) {
            if client.state().has_lease() {
                client.release(context, id);
            }
            context.cancel_timer(client.timer());
        }
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        C::handle_frame(self, context, frame);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let id = timeout.client;
        let client = id.and_then(|id| Some((id, self.clients.get_mut(id)?)));
        if let Some((id, client)) = client.filter(|(_, client)| client.timer() == timeout.timer) {
            client.handle_timeout(context, id);
        }
    }

    fn prefetch(&self, client: ClientId) {
        self.clients.prefetch(client);
    }

    fn missing(&self, client: ClientId, is_ipv6: bool) -> Option<&'static str> {
        let client = self.clients.get(client);
        let client = client.filter(|_| is_ipv6 == C::IS_IPV6)?;
        (!client.state().has_lease()).then_some(C::LEASE)
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if let Some(client) = client.and_then(|id| self.clients.get_mut(id)) {
            show(0, client.counters());
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.table_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_renewed_then_rebound_then_lost() {
        let times = LeaseTimes {
            rebinds: 700,
            expires: 900,
        };
        let mut state = State::Bound;
        let mut step = |now| (state.step(0, 5, times, now), state);
        let renew = |is_first| (Step::Renew { is_first }, State::Renewing);
        let rebind = |is_first| (Step::Rebind { is_first }, State::Rebinding);
        assert_eq!(step(500), renew(true));
        assert_eq!(step(699), renew(false));
        assert_eq!(step(700), rebind(true));
        assert_eq!(step(899), rebind(false));
        assert_eq!(step(900), (Step::Lose, State::Rebinding));
    }

    #[test]
    fn requests_are_repeated_so_often_before_the_client_starts_over() {
        let step = |retries| State::Requesting.step(retries, 5, LeaseTimes::NEVER, 1);
        assert_eq!(step(4), Step::Request);
        assert_eq!(step(5), Step::StartOver);
        for mut state in [State::Selecting, State::Waiting] {
            assert_eq!(state.step(5, 5, LeaseTimes::NEVER, 1), Step::Discover);
        }
    }

    #[test]
    fn what_is_left_of_a_lease_bounds_the_wait_for_more() {
        let times = LeaseTimes {
            rebinds: 1000 * SECOND,
            expires: 1030 * SECOND,
        };
        assert_eq!(times.renew_delay(0), 500 * SECOND);
        assert_eq!(times.renew_delay(960 * SECOND), 40 * SECOND);
        assert_eq!(times.rebind_delay(960 * SECOND), 60 * SECOND);
        assert_eq!(times.rebind_delay(1000 * SECOND), 30 * SECOND);
        assert_eq!(times.rebind_delay(2000 * SECOND), 0);
    }
}
