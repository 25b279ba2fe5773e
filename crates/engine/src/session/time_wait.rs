//! What is left of a flow whose connection is in TIME-WAIT: who it was between, and enough to answer
//! what comes late.

use super::application::FlowApplication;
use super::begin_time::BeginTime;
use super::context::{Pools, SideCounters};
use super::flow::{FlowTransport, Session, SessionFlag, SessionFlags};
use super::links::LinkIndex;
use super::outbox::Outbox;
use crate::app::ProgramRun;
use crate::flow::FlowKey;
use crate::tcp::{Info, TimeWait, Tunables};
use crate::time::{Nanos, Tight};

/// A flow whose connection is in TIME-WAIT, and whose application has nothing left to do.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(1))]
pub struct TimeWaitSession {
    key: FlowKey,
    tcp: TimeWait,
    link: LinkIndex,
    identification: u16,
}

impl Session {
    /// What is left of it in TIME-WAIT; `None` while it is not there, or has something else to do.
    /// It may be forgotten then, if it was judged, after
    /// [`release_all_but_link`](Session::release_all_but_link).
    #[inline(always)]
    pub fn to_time_wait(&self, now: Nanos, pools: &Pools) -> Option<TimeWaitSession> {
        let FlowTransport::Tcp(connection) = &self.transport else {
            return None;
        };
        let is_told = match &self.application {
            FlowApplication::Program(program) => program.is_over(),
            FlowApplication::Bytes(index) => pools.applications.has_heard_all(*index),
        };
        let is_over = is_told && self.wake_at.get() == Nanos::MAX && self.outbox.is_empty();
        if !is_over || self.flags.has(SessionFlag::Aborted) {
            return None;
        }
        let tcp = connection.to_time_wait(pools.tcp_ms(now), &pools.recovery)?;
        Some(TimeWaitSession {
            key: self.key,
            tcp,
            link: self.link,
            identification: self.identification,
        })
    }
}

impl TimeWaitSession {
    /// The flow again, to take what comes late.
    pub fn session(&self, tunables: &Tunables, begin_time: BeginTime) -> Session {
        let tcp = self.tcp;
        let mut flags = SessionFlags::default();
        flags.set(SessionFlag::Closing);
        flags.set(SessionFlag::Connected);
        flags.set(SessionFlag::Judged);
        Session {
            key: self.key,
            transport: FlowTransport::Tcp(tcp.connection(tunables)),
            application: FlowApplication::Program(ProgramRun::over()),
            outbox: Outbox::default(),
            wake_at: Tight::MAX,
            link: self.link,
            identification: self.identification,
            flags,
            begin_time,
        }
    }

    /// A look at its connection, see [`TimeWait::info`].
    pub fn info(&self, tunables: &Tunables) -> Info {
        let tcp = self.tcp;
        tcp.info(tunables)
    }

    /// The key by which it is found.
    #[inline]
    pub fn key(&self) -> FlowKey {
        self.key
    }

    /// When it is over, by TCP's clock.
    #[inline]
    pub fn until_ms(&self) -> u32 {
        let tcp = self.tcp;
        tcp.until_ms()
    }

    /// Its time has come. From now on only its key means something, until `until_ms`.
    pub fn finish(&mut self, counters: &mut SideCounters, pools: &mut Pools, until_ms: u32) {
        let mut tcp = self.tcp;
        tcp.finish(&mut counters.tcp);
        tcp.set_until_ms(until_ms);
        self.tcp = tcp;
        pools.links.release(self.link);
    }
}
