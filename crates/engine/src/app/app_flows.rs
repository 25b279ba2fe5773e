//! A core for applications that are a struct a flow.

use std::fmt::Debug;

use super::application::{AppCore, AppFlow, AppFlowInfo, ApplicationContext, FlowEvent, Output};
use super::variables::VariablePool;
use crate::time::Nanos;

/// The application of one flow; the methods are those of [`AppCore`].
pub trait Application: Debug + Send + Sized {
    /// What the flows of a core share.
    type Shared: Debug + Send;

    /// See [`AppCore::wants_acknowledged`].
    const WANTS_ACKNOWLEDGED: bool = false;

    /// That of a flow that begins.
    fn start(
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        flow: &AppFlowInfo,
    ) -> Self;

    /// See [`AppCore::handle_event`].
    fn handle_event(
        &mut self,
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    );

    /// See [`AppCore::handle_data`].
    fn handle_data(
        &mut self,
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize;

    /// See [`AppCore::handle_timeout`].
    fn handle_timeout(&mut self, _: &mut Self::Shared, _: &mut ApplicationContext<'_>) {}

    /// See [`AppCore::poll_output`].
    fn poll_output(
        &mut self,
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output>;

    /// See [`AppCore::poll_timeout`].
    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    /// Its flow is gone.
    fn release(self, _: &mut Self::Shared, _: &mut VariablePool) {}
}

/// The applications of a core's flows.
#[derive(Debug)]
pub struct AppFlows<A: Application> {
    shared: A::Shared,
    flows: Vec<Option<A>>,
    free: Vec<u32>,
}

impl<A: Application> AppFlows<A> {
    /// None yet.
    pub fn new(shared: A::Shared) -> AppFlows<A> {
        AppFlows {
            shared,
            flows: Vec::new(),
            free: Vec::new(),
        }
    }

    fn at(&mut self, flow: AppFlow) -> (&mut A, &mut A::Shared) {
        let it = self.flows[flow.0 as usize].as_mut();
        let it = it.expect("a flow is called until it is released");
        (it, &mut self.shared)
    }
}

impl<A: Application> AppCore for AppFlows<A> {
    fn start(&mut self, cx: &mut ApplicationContext<'_>, flow: &AppFlowInfo) -> AppFlow {
        let made = Some(A::start(&mut self.shared, cx, flow));
        if let Some(place) = self.free.pop() {
            self.flows[place as usize] = made;
            return AppFlow(place);
        }
        self.flows.push(made);
        AppFlow(self.flows.len() as u32 - 1)
    }

    fn handle_event(&mut self, flow: AppFlow, cx: &mut ApplicationContext<'_>, event: FlowEvent) {
        let (it, shared) = self.at(flow);
        it.handle_event(shared, cx, event);
    }

    fn handle_data(
        &mut self,
        flow: AppFlow,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        let (it, shared) = self.at(flow);
        it.handle_data(shared, cx, data)
    }

    fn handle_timeout(&mut self, flow: AppFlow, cx: &mut ApplicationContext<'_>) {
        let (it, shared) = self.at(flow);
        it.handle_timeout(shared, cx);
    }

    fn poll_output(
        &mut self,
        flow: AppFlow,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        let (it, shared) = self.at(flow);
        it.poll_output(shared, cx, room, out)
    }

    fn poll_timeout(&self, flow: AppFlow) -> Option<Nanos> {
        self.flows[flow.0 as usize].as_ref()?.poll_timeout()
    }

    fn wants_acknowledged(&self) -> bool {
        A::WANTS_ACKNOWLEDGED
    }

    fn release(&mut self, flow: AppFlow, variables: &mut VariablePool) {
        if let Some(it) = self.flows[flow.0 as usize].take() {
            self.free.push(flow.0);
            it.release(&mut self.shared, variables);
        }
    }
}
