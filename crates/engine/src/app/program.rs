//! A program, checked: what runs it checks nothing.
//!
//! Loops without an end are found in `loop_check`; the program runs in `application`.

use std::sync::Arc;

use thiserror::Error;

use super::application::ApplicationFactory;
use super::buffers::{BufferIndex, Buffers};
use super::counters::USER_COUNTERS;
use super::loop_check;
use super::spec::{Addon, Command, ProgramSpec, Transport};
use super::step::{COMMANDS_MAX, ProgramProblem, Step};
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
    pub(super) steps: Box<[Step]>,
    /// What connections draw in it.
    pub(super) drawn: Box<[Drawn]>,
    transport: Transport,
    addon: Option<Addon>,
    sent_bytes: u64,
    messages: u64,
    /// What runs in its place.
    application: Option<Arc<dyn ApplicationFactory>>,
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
            let name = commands.first().map_or("none", Command::name);
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
            transport: spec.transport,
            addon: spec.addon,
            sent_bytes: 0,
            messages: 0,
            application: None,
        };
        let lens = program
            .sent()
            .map(|buffer| surroundings.buffers.len(buffer));
        let (sent_bytes, messages) = lens.fold((0, 0), |(bytes, messages), len| {
            (bytes + u64::from(len), messages + 1)
        });
        (program.sent_bytes, program.messages) = (sent_bytes, messages);
        Ok(program)
    }

    /// The same, in whose place flows run an application over bytes.
    #[must_use]
    pub fn with_application(self, application: Arc<dyn ApplicationFactory>) -> Program {
        Program {
            application: Some(application),
            ..self
        }
    }

    /// What flows run in its place, if not the commands.
    #[inline]
    pub fn application(&self) -> Option<&dyn ApplicationFactory> {
        self.application.as_deref()
    }

    /// What carries its bytes.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// What else goes into its messages.
    pub fn addon(&self) -> Option<Addon> {
        self.addon
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
        let mut steps = self.steps.iter();
        let first =
            steps.find(|step| self.sent_by(step).is_some() || matches!(step, Step::Receive { .. }));
        first.and_then(|step| self.sent_by(step))
    }

    /// All buffers that are sent, in the order of the commands; of one with draws, the first
    /// variant.
    pub fn sent(&self) -> impl Iterator<Item = BufferIndex> + '_ {
        self.steps.iter().filter_map(|step| self.sent_by(step))
    }

    fn sent_by(&self, step: &Step) -> Option<BufferIndex> {
        match step {
            Step::Send(buffer) | Step::SendMessage(buffer) => Some(*buffer),
            Step::SendDrawn(place) | Step::SendMessageDrawn(place) => {
                Some(BufferIndex(self.drawn[usize::from(*place)].first))
            }
            _ => None,
        }
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
    fn step(&mut self, i: usize, command: &Command) -> Result<Step, ProgramProblem> {
        self.check_place(i, command)?;
        Ok(match *command {
            Command::Send { buffer } => self.send(buffer)?,
            Command::SendMessage { buffer } => match self.drawn(buffer)? {
                Some(place) => Step::SendMessageDrawn(place),
                None => Step::SendMessage(self.buffer(buffer)?),
            },
            Command::Receive { bytes, clear } => self.receive(bytes, clear),
            Command::ReceiveMessages { messages, clear } => self.receive(messages, clear),
            Command::Delay { duration } => Step::Delay(delay(duration)?),
            Command::DelayRandom { min, max } if min > max => {
                return Err(ProgramProblem::DelayRange);
            }
            Command::DelayRandom { min, max } => Step::DelayRandom {
                min: delay(min)?,
                max: delay(max)?,
            },
            Command::Keepalive { timeout_ms: 0, .. } => return Err(ProgramProblem::NoKeepalive),
            Command::Keepalive {
                timeout_ms,
                received_only,
            } => Step::Keepalive {
                timeout_ms,
                received_only,
            },
            Command::CloseMessage => Step::CloseMessage,
            Command::Reset => Step::Reset,
            Command::WaitForPeerClose => Step::WaitForPeerClose,
            Command::Connect => Step::Connect,
            Command::SendMode { blocking } => Step::SendMode { blocking },
            Command::SetTemplate { group } => self.set_template(group)?,
            Command::ExecuteTemplate => Step::ExecuteTemplate,
            _ => self.arithmetic(i, command)?,
        })
    }

    /// Variables, counters and jumps.
    fn arithmetic(&self, i: usize, command: &Command) -> Result<Step, ProgramProblem> {
        Ok(match *command {
            Command::SetVariable { variable, value } => Step::SetVariable {
                variable: self::variable(variable)?,
                value,
            },
            Command::AddVariable { variable, value } => Step::AddVariable {
                variable: self::variable(variable)?,
                value,
            },
            Command::SetTick { variable } => Step::SetTick {
                variable: self::variable(variable)?,
            },
            Command::AddTick { variable, ticks } => Step::AddTick {
                variable: self::variable(variable)?,
                ticks,
            },
            Command::AddStats { counter, value } => Step::AddStats {
                counter: self::counter(counter)?,
                value,
            },
            Command::AddTickStats { counter, variable } => Step::AddTickStats {
                counter: self::counter(counter)?,
                variable: self::variable(variable)?,
            },
            Command::JumpNotZero { variable, offset } => Step::JumpNotZero {
                variable: self::variable(variable)?,
                target: self.target(i, offset)?,
            },
            Command::JumpWithin {
                variable,
                offset,
                ticks,
            } => Step::JumpWithin {
                variable: self::variable(variable)?,
                target: self.target(i, offset)?,
                ticks,
            },
            Command::Jump {
                offset,
                condition: None,
            } => Step::Jump {
                target: self.target(i, offset)?,
            },
            Command::Jump {
                offset,
                condition: Some(condition),
            } => Step::JumpIf {
                variable: self::variable(condition.variable)?,
                target: self.target(i, offset)?,
                comparison: condition.comparison,
                value: condition.value,
            },
            _ => unreachable!("`step` takes all other commands"),
        })
    }

    /// Whether the command may be in this program, and here.
    fn check_place(&self, i: usize, command: &Command) -> Result<(), ProgramProblem> {
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
            Command::Connect if i > 0 => Err(ProgramProblem::NotFirst),
            Command::Reset | Command::WaitForPeerClose if i + 1 < self.spec.commands.len() => {
                Err(ProgramProblem::NotLast)
            }
            _ => Ok(()),
        }
    }

    fn send(&mut self, buffer: u32) -> Result<Step, ProgramProblem> {
        if let Some(place) = self.drawn(buffer)? {
            return Ok(Step::SendDrawn(place));
        }
        let buffer = self.buffer(buffer)?;
        // Nobody acknowledges nothing.
        Ok(match self.surroundings.buffers.len(buffer) {
            0 => Step::Nothing,
            _ => Step::Send(buffer),
        })
    }

    /// The place of a buffer with draws in this program, if it is one.
    fn drawn(&mut self, buffer: u32) -> Result<Option<u16>, ProgramProblem> {
        let Some(place) = buffer.checked_sub(DRAWN_FIRST) else {
            return Ok(None);
        };
        let buffers = self.surroundings.buffers;
        let drawn = buffers.drawn(place as usize);
        let count = buffers.count();
        let drawn = drawn.ok_or(ProgramProblem::Buffer { buffer, count })?;
        self.drawn.push(drawn.clone());
        // A command adds one at most, and their number fits.
        Ok(Some(self.drawn.len() as u16 - 1))
    }

    fn buffer(&self, buffer: u32) -> Result<BufferIndex, ProgramProblem> {
        let count = self.surroundings.buffers.count();
        if (buffer as usize) < count {
            return Ok(BufferIndex(buffer));
        }
        Err(ProgramProblem::Buffer { buffer, count })
    }

    fn receive(&mut self, total: u64, clear: bool) -> Step {
        let count = total.saturating_sub(self.awaited);
        self.awaited = if clear { 0 } else { self.awaited.max(total) };
        Step::Receive { count, clear }
    }

    fn set_template(&self, group: u32) -> Result<Step, ProgramProblem> {
        let count = self.surroundings.groups;
        match u16::try_from(group) {
            Ok(number) if usize::from(number) <= count => Ok(Step::SetTemplate { group: number }),
            _ => Err(ProgramProblem::Group { group, count }),
        }
    }

    fn target(&self, i: usize, offset: i64) -> Result<u16, ProgramProblem> {
        let count = self.spec.commands.len();
        let target = (i as i64).saturating_add(offset);
        // The end is a place too: labels may stand behind the last command.
        match u16::try_from(target) {
            Ok(place) if usize::from(place) <= count => Ok(place),
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

fn variable(variable: u32) -> Result<u8, ProgramProblem> {
    match variable {
        number if (number as usize) < VARIABLES => Ok(number as u8),
        _ => Err(ProgramProblem::Variable(variable)),
    }
}

fn counter(counter: u32) -> Result<u8, ProgramProblem> {
    match counter {
        number if (number as usize) < USER_COUNTERS => Ok(number as u8),
        _ => Err(ProgramProblem::Counter(counter)),
    }
}
