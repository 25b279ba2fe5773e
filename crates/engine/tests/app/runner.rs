//! One application and all that it works with, in a small pocket.

use allosaur_engine::app::{
    Action, ApplicationCounters, BufferIndex, BufferSpec, Buffers, Program, ProgramCommand,
    ProgramContext, ProgramError, ProgramRun, ProgramSpec, Surroundings, Transport, VariablePool,
};
use allosaur_engine::rng::Lcg;
use allosaur_engine::time::Nanos;

/// Template groups that exist.
pub(crate) const GROUPS: usize = 3;

/// Four buffers: of 10, 20, 0 and 100,000 bytes.
pub(crate) fn buffers() -> Buffers {
    let of = |bytes: u64| BufferSpec {
        bytes: Some(bytes),
        ..BufferSpec::default()
    };
    Buffers::new(&[of(10), of(20), of(0), of(100_000)]).expect("small buffers")
}

/// Compiles commands.
pub(crate) fn compile(
    transport: Transport,
    commands: &[ProgramCommand],
) -> Result<Program, ProgramError> {
    let spec = ProgramSpec {
        commands: commands.to_vec(),
        transport,
        addon: None,
    };
    let buffers = buffers();
    let surroundings = Surroundings {
        buffers: &buffers,
        groups: GROUPS,
    };
    Program::compile(&spec, surroundings)
}

/// An application that runs.
pub(crate) struct Runner {
    pub(crate) program: Program,
    pub(crate) application: ProgramRun,
    pub(crate) now: Nanos,
    pub(crate) rng: Lcg,
    pub(crate) variables: VariablePool,
    pub(crate) counters: ApplicationCounters,
}

impl Runner {
    pub(crate) fn tcp(commands: &[ProgramCommand]) -> Runner {
        Runner::new(compile(Transport::Stream, commands).expect("a right program"))
    }

    pub(crate) fn udp(commands: &[ProgramCommand]) -> Runner {
        Runner::new(compile(Transport::Datagram, commands).expect("a right program"))
    }

    pub(crate) fn new(program: Program) -> Runner {
        Runner {
            application: ProgramRun::start(&program),
            program,
            now: 1_000_000_000,
            rng: Lcg::new(1),
            variables: VariablePool::default(),
            counters: ApplicationCounters::default(),
        }
    }

    /// The next action.
    pub(crate) fn poll(&mut self) -> Option<Action> {
        let mut cx = ProgramContext {
            program: &self.program,
            now: self.now,
            rng: &mut self.rng,
            variables: &mut self.variables,
            counters: &mut self.counters,
        };
        self.application.poll_action(&mut cx)
    }

    /// All actions until it waits.
    pub(crate) fn drain(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.poll()).collect()
    }

    /// Something happens, then all actions.
    pub(crate) fn after(&mut self, event: impl FnOnce(&mut ProgramRun)) -> Vec<Action> {
        event(&mut self.application);
        self.drain()
    }
}

/// The action of sending a buffer on a stream.
pub(crate) fn send(buffer: u32) -> Action {
    Action::Send {
        buffer: BufferIndex(buffer),
    }
}

/// The action of sending a buffer as a message.
pub(crate) fn message(buffer: u32) -> Action {
    Action::SendMessage {
        buffer: BufferIndex(buffer),
    }
}
