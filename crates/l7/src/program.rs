//! A program of the engine as a protocol: what it sends and waits for are bytes of whatever carries it.

use std::sync::Arc;

use allosaur_engine::app::{
    Action, AppFlowInfo, AppRow, Application, ApplicationContext, Buffers, CoreInfo, FlowEvent,
    Output, Program, ProgramContext, ProgramRun, VariablePool,
};
use allosaur_engine::time::Nanos;

use crate::protocol::AppProtocol;

/// Flows that run a program.
#[derive(Debug)]
pub struct Programs {
    program: Arc<Program>,
    buffers: Arc<Buffers>,
}

impl Programs {
    /// Those that run this one. It opens no flows of other templates.
    pub fn new(program: Program, buffers: Arc<Buffers>) -> Programs {
        Programs {
            program: Arc::new(program),
            buffers,
        }
    }
}

impl AppProtocol for Programs {
    type Flow = ProgramFlow;

    fn rows(&self) -> Vec<&'static [AppRow]> {
        Vec::new()
    }

    fn shared(&self, _: &CoreInfo) -> ProgramShared {
        ProgramShared {
            program: Arc::clone(&self.program),
            buffers: Arc::clone(&self.buffers),
        }
    }

    fn buffers(&self) -> &Arc<Buffers> {
        &self.buffers
    }
}

/// What the flows of a core share.
#[derive(Debug)]
pub struct ProgramShared {
    program: Arc<Program>,
    buffers: Arc<Buffers>,
}

/// A program on one flow.
#[derive(Debug)]
pub struct ProgramFlow {
    run: ProgramRun,
    wake_at: Option<Nanos>,
    /// What it said last was given away: when it is asked again, there is room for more.
    has_said: bool,
    is_over: bool,
}

impl Application for ProgramFlow {
    type Shared = ProgramShared;

    /// Programs wait for it after what they send.
    const WANTS_ACKNOWLEDGED: bool = true;

    fn start(
        shared: &mut ProgramShared,
        _: &mut ApplicationContext<'_>,
        _: &AppFlowInfo,
    ) -> ProgramFlow {
        ProgramFlow {
            run: ProgramRun::start(&shared.program),
            wake_at: None,
            has_said: false,
            is_over: false,
        }
    }

    fn handle_event(
        &mut self,
        _: &mut ProgramShared,
        _: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        match event {
            FlowEvent::Connected => self.run.handle_connected(),
            FlowEvent::Acknowledged => {
                self.note_room();
                self.run.handle_acknowledged();
            }
            FlowEvent::PeerClosed => self.run.handle_peer_closed(),
            FlowEvent::Woken | FlowEvent::Ended(_) => {}
        }
    }

    fn handle_data(
        &mut self,
        shared: &mut ProgramShared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        let bytes = data.len() as u32;
        if !self.run.take_part(&shared.program, bytes) {
            self.run.handle_delivered(bytes);
            if self.run.looks() {
                if let Some(status) = self.run.look(data).status {
                    cx.measures.count_status(status);
                }
            }
        }
        data.len()
    }

    fn handle_timeout(&mut self, _: &mut ProgramShared, _: &mut ApplicationContext<'_>) {
        self.wake_at = None;
        self.run.handle_timeout();
    }

    fn poll_output(
        &mut self,
        shared: &mut ProgramShared,
        cx: &mut ApplicationContext<'_>,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Option<Output> {
        self.note_room();
        while !self.is_over {
            let mut inner = ProgramContext {
                program: &shared.program,
                now: cx.now,
                rng: cx.rng,
                variables: cx.variables,
                counters: cx.counters,
            };
            match self.run.poll_action(&mut inner)? {
                Action::Send { buffer } if shared.buffers.len(buffer) == 0 => {
                    self.run.handle_acknowledged();
                }
                Action::Send { buffer } => {
                    self.has_said = true;
                    return Some(Output::Buffer(buffer));
                }
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Close => {
                    self.is_over = true;
                    return Some(Output::EndProgram(self.run.end_reached()));
                }
                Action::Reset => {
                    self.is_over = true;
                    return Some(Output::Reset);
                }
                // Nothing waits for an acknowledgment here.
                Action::Acknowledge => {}
                // Programs of other flows are refused where profiles are read.
                Action::Execute { .. } => self.run.handle_executed(0),
                Action::SendMessage { .. } | Action::Keepalive { .. } => {}
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.wake_at
    }

    fn release(mut self, _: &mut ProgramShared, variables: &mut VariablePool) {
        self.run.release(variables);
    }
}

impl ProgramFlow {
    fn note_room(&mut self) {
        if std::mem::take(&mut self.has_said) {
            self.run.handle_room();
        }
    }
}
