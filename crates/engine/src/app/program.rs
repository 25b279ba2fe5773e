//! A program, checked: what runs it checks nothing.
//!
//! Loops without an end are found in `loop_check`; the program runs in `application`.

use std::sync::Arc;

use thiserror::Error;

use super::application::ApplicationFactory;
use super::buffers::{BufferIndex, Buffers};
use super::counters::USER_COUNTERS;
use super::http;
use super::loop_check;
use super::problem::{COMMANDS_MAX, ProgramProblem};
use super::spec::{Addon, ProgramCommand, ProgramSpec, Transport, UNTIL_CLOSE};
use super::substitution::{DRAWN_FIRST, Drawn};
use super::variables::VARIABLES;
use crate::time::{Nanos, SECOND};

/// Longest delay: a year. What is longer is a mistake in the unit.
const DELAY_MAX: Nanos = 365 * 24 * 3600 * SECOND;
/// Shortest delay: one step of the clock of timers.
const DELAY_MIN: Nanos = 1_000;

/// Why a program cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("command {command} ({name}): {problem}")]
pub struct ProgramError {
    /// Which command; the first is 0.
    pub command: usize,
    /// Its name.
    pub name: &'static str,
    /// What is wrong with it.
    pub problem: ProgramProblem,
}

/// What a program may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The buffers of the profile.
    pub buffers: &'a Buffers,
    /// How many template groups have names.
    pub groups: usize,
}

/// A program that is right.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its commands, whose numbers are right: buffers with draws are numbered in `drawn`, what is
    /// waited for is counted from the `rx` before, and what does nothing jumps to the next.
    pub(super) steps: Box<[ProgramCommand]>,
    /// What connections draw in it.
    pub(super) drawn: Box<[Drawn]>,
    /// Of each step, whether it sends a request of HTTP/1; empty where none does.
    pub(super) requests: Box<[bool]>,
    transport: Transport,
    addon: Option<Addon>,
    sent_bytes: u64,
    messages: u64,
    /// What runs in its place.
    application: Option<Arc<dyn ApplicationFactory>>,
    /// Where each list of the rows that it counts begins, among those of the profile.
    first_rows: Box<[usize]>,
}

impl Program {
    /// Checks a program and resolves its numbers.
    pub fn compile(
        spec: &ProgramSpec,
        surroundings: Surroundings<'_>,
    ) -> Result<Program, ProgramError> {
        let commands = &spec.commands;
        let problem = match commands.len() {
            0 => Some(ProgramProblem::Empty),
            count if count > COMMANDS_MAX => Some(ProgramProblem::TooLong(count)),
            _ => None,
        };
        if let Some(problem) = problem {
            let name = commands.first().map_or("none", ProgramCommand::name);
            return Err(ProgramError {
                command: 0,
                name,
                problem,
            });
        }
        let at = |command: usize, problem| ProgramError {
            command,
            name: commands[command].name(),
            problem,
        };
        let mut compiler = Compiler {
            spec,
            surroundings,
            awaited: 0,
            drawn: Vec::new(),
        };
        let mut steps = Vec::with_capacity(commands.len());
        for (i, command) in commands.iter().enumerate() {
            let step = compiler
                .step(i, command)
                .map_err(|problem| at(i, problem))?;
            steps.push(step);
        }
        loop_check::check(&steps).map_err(|(i, problem)| at(i, problem))?;
        let mut program = Program {
            steps: steps.into_boxed_slice(),
            drawn: compiler.drawn.into_boxed_slice(),
            requests: Box::default(),
            transport: spec.transport,
            addon: spec.addon,
            sent_bytes: 0,
            messages: 0,
            application: None,
            first_rows: Box::default(),
        };
        let lens = program
            .sent()
            .map(|buffer| surroundings.buffers.len(buffer));
        let (sent_bytes, messages) = lens.fold((0, 0), |(bytes, messages), len| {
            (bytes + u64::from(len), messages + 1)
        });
        (program.sent_bytes, program.messages) = (sent_bytes, messages);
        program.requests = program.requests(surroundings.buffers);
        Ok(program)
    }

    fn requests(&self, buffers: &Buffers) -> Box<[bool]> {
        let asks = |step: &ProgramCommand| {
            let buffer = self.sent_by(step);
            buffer.is_some_and(|buffer| http::is_request(buffers, buffer))
        };
        let requests: Box<[bool]> = match self.transport {
            Transport::Stream => self.steps.iter().map(asks).collect(),
            Transport::Datagram => Box::default(),
        };
        match requests.contains(&true) {
            true => requests,
            false => Box::default(),
        }
    }

    /// The same, in whose place flows run an application over bytes; each list of its rows
    /// begins at one of `first_rows`.
    #[must_use]
    pub fn with_application(
        self,
        application: Arc<dyn ApplicationFactory>,
        first_rows: Box<[usize]>,
    ) -> Program {
        Program {
            application: Some(application),
            first_rows,
            ..self
        }
    }

    /// Where each list of its application's rows begins among those of the profile.
    pub fn first_rows(&self) -> &[usize] {
        &self.first_rows
    }

    /// What flows run in its place, if not the commands.
    #[inline]
    pub fn application(&self) -> Option<&Arc<dyn ApplicationFactory>> {
        self.application.as_ref()
    }

    /// What carries its bytes.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// What else goes into its messages.
    pub fn addon(&self) -> Option<Addon> {
        self.addon
    }

    /// Whether something must arrive for it to come to its end. An application over bytes always waits
    /// for something.
    pub fn receives(&self) -> bool {
        let waits = |step: &ProgramCommand| {
            matches!(
                step,
                ProgramCommand::Receive { bytes: 1.., .. }
                    | ProgramCommand::ReceiveMessages { messages: 1.., .. }
            )
        };
        self.application.is_some() || self.steps.iter().any(waits)
    }

    /// Whether it resets its connection itself.
    pub fn resets(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step, ProgramCommand::Reset))
    }

    /// The bytes that its commands send, each command once.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// How many of its commands send.
    pub fn sends(&self) -> u64 {
        self.messages
    }

    /// How many commands it has.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Always false: a program has at least one command.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The buffer that is sent first, if something is sent before anything must arrive.
    pub fn first_sent(&self) -> Option<BufferIndex> {
        let waits = |step: &ProgramCommand| {
            matches!(
                step,
                ProgramCommand::Receive { .. } | ProgramCommand::ReceiveMessages { .. }
            )
        };
        let mut steps = self.steps.iter();
        let first = steps.find(|step| self.sent_by(step).is_some() || waits(step));
        first.and_then(|step| self.sent_by(step))
    }

    /// All buffers that are sent, in the order of the commands; of one with draws, the first
    /// variant.
    pub fn sent(&self) -> impl Iterator<Item = BufferIndex> + '_ {
        self.steps.iter().filter_map(|step| self.sent_by(step))
    }

    fn sent_by(&self, step: &ProgramCommand) -> Option<BufferIndex> {
        let (ProgramCommand::Send { buffer } | ProgramCommand::SendMessage { buffer }) = *step
        else {
            return None;
        };
        let place = buffer.checked_sub(DRAWN_FIRST);
        let first = place.map(|place| self.drawn[place as usize].first);
        Some(BufferIndex(first.unwrap_or(buffer)))
    }
}

struct Compiler<'a> {
    spec: &'a ProgramSpec,
    surroundings: Surroundings<'a>,
    /// What was waited for since the last `clear`: counts in profiles add up.
    awaited: u64,
    /// What connections draw in the commands so far.
    drawn: Vec<Drawn>,
}

impl Compiler<'_> {
    /// A command with all its numbers checked, and those that depend on others resolved.
    fn step(
        &mut self,
        i: usize,
        command: &ProgramCommand,
    ) -> Result<ProgramCommand, ProgramProblem> {
        self.check_place(i, command)?;
        self.check_numbers(i, command)?;
        let mut step = *command;
        match &mut step {
            ProgramCommand::Send { buffer } => {
                let index = self.buffer(*buffer)?;
                // Nobody acknowledges nothing.
                if index < DRAWN_FIRST && self.surroundings.buffers.len(BufferIndex(index)) == 0 {
                    return Ok(ProgramCommand::Jump {
                        offset: 1,
                        condition: None,
                    });
                }
                *buffer = index;
            }
            ProgramCommand::SendMessage { buffer } => *buffer = self.buffer(*buffer)?,
            ProgramCommand::Receive {
                bytes: count,
                clear,
            }
            | ProgramCommand::ReceiveMessages {
                messages: count,
                clear,
            } => *count = self.receive(*count, *clear),
            ProgramCommand::ReceiveUntilClose => {
                self.awaited = 0;
                step = ProgramCommand::Receive {
                    bytes: UNTIL_CLOSE,
                    clear: true,
                };
            }
            ProgramCommand::Delay { duration } => *duration = delay(*duration)?,
            ProgramCommand::DelayRandom { min, max } => (*min, *max) = (delay(*min)?, delay(*max)?),
            _ => {}
        }
        Ok(step)
    }

    /// Whether variables, counters, groups and targets are there.
    fn check_numbers(&self, i: usize, command: &ProgramCommand) -> Result<(), ProgramProblem> {
        match *command {
            ProgramCommand::DelayRandom { min, max } if min > max => {
                Err(ProgramProblem::DelayRange)
            }
            ProgramCommand::Keepalive { timeout_ms: 0, .. } => Err(ProgramProblem::NoKeepalive),
            ProgramCommand::SetVariable { variable, .. }
            | ProgramCommand::AddVariable { variable, .. }
            | ProgramCommand::SetTick { variable }
            | ProgramCommand::AddTick { variable, .. } => check_variable(variable),
            ProgramCommand::AddStats { counter, .. } => check_counter(counter),
            ProgramCommand::AddTickStats { counter, variable } => {
                check_counter(counter)?;
                check_variable(variable)
            }
            ProgramCommand::JumpNotZero { variable, offset }
            | ProgramCommand::JumpWithin {
                variable, offset, ..
            } => {
                check_variable(variable)?;
                self.check_target(i, offset)
            }
            ProgramCommand::Jump { offset, condition } => {
                condition.map_or(Ok(()), |condition| check_variable(condition.variable))?;
                self.check_target(i, offset)
            }
            ProgramCommand::SetTemplate { group } => self.check_group(group),
            _ => Ok(()),
        }
    }

    /// Whether the command may be in this program, and here.
    fn check_place(&self, i: usize, command: &ProgramCommand) -> Result<(), ProgramProblem> {
        match (command.transport(), self.spec.transport) {
            (Some(Transport::Stream), Transport::Datagram) => {
                return Err(ProgramProblem::StreamCommand);
            }
            (Some(Transport::Datagram), Transport::Stream) => {
                return Err(ProgramProblem::DatagramCommand);
            }
            _ => {}
        }
        match command {
            ProgramCommand::Connect if i > 0 => Err(ProgramProblem::NotFirst),
            ProgramCommand::Reset | ProgramCommand::WaitForPeerClose
                if i + 1 < self.spec.commands.len() =>
            {
                Err(ProgramProblem::NotLast)
            }
            _ => Ok(()),
        }
    }

    /// The number of a buffer in the profile, or above [`DRAWN_FIRST`] of one with draws in this
    /// program.
    fn buffer(&mut self, buffer: u32) -> Result<u32, ProgramProblem> {
        let buffers = self.surroundings.buffers;
        let count = buffers.count();
        let unknown = ProgramProblem::Buffer { buffer, count };
        let Some(place) = buffer.checked_sub(DRAWN_FIRST) else {
            return ((buffer as usize) < count).then_some(buffer).ok_or(unknown);
        };
        let drawn = buffers.drawn(place as usize).ok_or(unknown)?;
        self.drawn.push(drawn.clone());
        // A command adds one at most, and their number fits.
        Ok(DRAWN_FIRST + self.drawn.len() as u32 - 1)
    }

    /// What must arrive since what was waited for before.
    fn receive(&mut self, total: u64, clear: bool) -> u64 {
        let count = total.saturating_sub(self.awaited).min(UNTIL_CLOSE - 1);
        self.awaited = if clear { 0 } else { self.awaited.max(total) };
        count
    }

    fn check_group(&self, group: u32) -> Result<(), ProgramProblem> {
        let count = self.surroundings.groups;
        match u16::try_from(group) {
            Ok(number) if usize::from(number) <= count => Ok(()),
            _ => Err(ProgramProblem::Group { group, count }),
        }
    }

    fn check_target(&self, i: usize, offset: i64) -> Result<(), ProgramProblem> {
        let count = self.spec.commands.len();
        let target = (i as i64).saturating_add(offset);
        // The end is a place too: labels may stand behind the last command.
        match usize::try_from(target) {
            Ok(place) if place <= count => Ok(()),
            _ => Err(ProgramProblem::JumpOutside {
                offset,
                target,
                count,
            }),
        }
    }
}

fn delay(duration: Nanos) -> Result<Nanos, ProgramProblem> {
    match duration {
        0..=DELAY_MAX => Ok(duration.max(DELAY_MIN)),
        _ => Err(ProgramProblem::DelayTooLong),
    }
}

fn check_variable(variable: u32) -> Result<(), ProgramProblem> {
    match variable {
        number if (number as usize) < VARIABLES => Ok(()),
        _ => Err(ProgramProblem::Variable(variable)),
    }
}

fn check_counter(counter: u32) -> Result<(), ProgramProblem> {
    match counter {
        number if (number as usize) < USER_COUNTERS => Ok(()),
        _ => Err(ProgramProblem::Counter(counter)),
    }
}
