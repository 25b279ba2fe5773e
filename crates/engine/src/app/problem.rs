//! What may be wrong with a command of a program.

use thiserror::Error;

/// Most commands of a program.
pub const COMMANDS_MAX: usize = 65_534;

/// What is wrong with a command, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramProblem {
    /// No commands.
    #[error("the program has no commands: give it at least one")]
    Empty,
    /// Too many commands.
    #[error("the program has {0} commands; the most is {COMMANDS_MAX}: use loops")]
    TooLong(usize),
    /// A buffer that is not there.
    #[error("buf_index is {buffer}, but buf_list has {count}: use {}", range(*.count))]
    Buffer {
        /// The number given.
        buffer: u32,
        /// How many there are.
        count: usize,
    },
    /// A jump to where nothing is.
    #[error("offset {offset} leads to command {target}, but the program has {count}: use {}", range(*.count))]
    JumpOutside {
        /// The offset given.
        offset: i64,
        /// Where it leads.
        target: i64,
        /// How many commands there are.
        count: usize,
    },
    /// A variable that is not there.
    #[error("variable {0} does not exist: a program has 5, use 0 to 4")]
    Variable(u32),
    /// A counter that is not there.
    #[error("stats_id is {0}: use 0 to 3, for the counters A to D")]
    Counter(u32),
    /// A group that is not there.
    #[error("tg_id is {group}, but the profile has {count} template groups: name the group first")]
    Group {
        /// The number given.
        group: u32,
        /// How many there are.
        count: usize,
    },
    /// A command of TCP in a program of UDP.
    #[error(
        "a program of messages (stream is false) cannot do that: use tx_msg and rx_msg, or leave out stream"
    )]
    StreamCommand,
    /// A command of UDP in a program of TCP.
    #[error(
        "a program of a stream (TCP) cannot do that: set stream to false for UDP, or use tx and rx"
    )]
    DatagramCommand,
    /// A command that is only right at the beginning.
    #[error("it can only be the first command: move it there")]
    NotFirst,
    /// A command that is only right at the end.
    #[error("it can only be the last command: remove what follows")]
    NotLast,
    /// A range whose end is before its beginning.
    #[error("min_usec is above max_usec: swap them")]
    DelayRange,
    /// A delay beyond all use.
    #[error("the delay is longer than a year; give it in microseconds")]
    DelayTooLong,
    /// A keepalive without time.
    #[error("msec is 0; it must be at least 1")]
    NoKeepalive,
    /// A loop that never ends and takes no time.
    #[error(
        "the loop over commands {first} to {last} never ends and never waits: give it a delay, something to wait for, or a jmp_nz with a limit"
    )]
    Endless {
        /// Where the loop begins.
        first: usize,
        /// Where it ends.
        last: usize,
    },
    /// Loops in loops in loops.
    #[error("loops stand in each other more than {0} deep: use fewer")]
    LoopsTooDeep(usize),
}

/// "0 to 3", or what to do when there is none.
fn range(count: usize) -> String {
    match count {
        0 => "none: add one first".to_owned(),
        1 => "0".to_owned(),
        _ => format!("0 to {}", count - 1),
    }
}
