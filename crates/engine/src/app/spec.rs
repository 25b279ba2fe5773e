//! A program as the user wrote it.

use crate::time::{MILLISECOND, Nanos};

/// The unit of time variables: 10 ms, as TRex counts.
pub const TICK: Nanos = 10 * MILLISECOND;

/// As a number of bytes that are waited for: all that come until the peer is done.
pub(super) const UNTIL_CLOSE: u64 = u64::MAX;

/// What carries the bytes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A stream of bytes: TCP.
    Stream,
    /// Messages: UDP.
    Datagram,
}

/// What else goes into each message of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addon {
    /// Twelve bytes in front, by which the round trip is measured.
    Latency,
}

impl Addon {
    /// How many bytes stand in front of each message.
    pub const fn header_bytes(self) -> usize {
        match self {
            Addon::Latency => 12,
        }
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSpec {
    /// The commands, in order; at least one.
    pub commands: Vec<ProgramCommand>,
    /// What carries its bytes.
    pub transport: Transport,
    /// What else goes into its messages.
    pub addon: Option<Addon>,
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramCommand {
    /// `tx`: send a buffer.
    Send {
        /// The number of the buffer.
        buffer: u32,
    },
    /// `rx`: wait until so many bytes arrived. The counts of one `rx` after another add up, as
    /// TRex's client writes them: the second waits for `bytes` since the beginning, or since the
    /// last `clear`.
    Receive {
        /// How many bytes.
        bytes: u64,
        /// Forget what arrived when there are enough, also what is too many.
        clear: bool,
    },
    /// `rx` with `until_close`: wait until the peer is done, however much it sends before, and
    /// forget what arrived.
    ReceiveUntilClose,
    /// `tx_msg`: send a buffer as one message.
    SendMessage {
        /// The number of the buffer.
        buffer: u32,
    },
    /// `rx_msg`: wait until so many messages arrived; they add up as bytes do.
    ReceiveMessages {
        /// How many messages.
        messages: u64,
        /// Forget what arrived when there are enough.
        clear: bool,
    },
    /// `delay`.
    Delay {
        /// How long.
        duration: Nanos,
    },
    /// `delay_rnd`: any time in a range, all alike.
    DelayRandom {
        /// At least so long.
        min: Nanos,
        /// At most so long.
        max: Nanos,
    },
    /// `keepalive`: end the flow after a silence.
    Keepalive {
        /// How long it may be silent.
        timeout_ms: u32,
        /// Only what arrives breaks the silence, not what is sent.
        received_only: bool,
    },
    /// `close_msg`: end the flow.
    CloseMessage,
    /// `reset`: end the connection with a reset.
    Reset,
    /// `nc`: wait until the peer is done, then close.
    WaitForPeerClose,
    /// `connect`: wait until the connection is there, on either side.
    Connect,
    /// `set_var`.
    SetVariable {
        /// Which variable.
        variable: u32,
        /// Its new value.
        value: u64,
    },
    /// `add_var`.
    AddVariable {
        /// Which variable.
        variable: u32,
        /// What is added; goes round.
        value: i64,
    },
    /// `set_tick_var`: remember the time.
    SetTick {
        /// Which time variable.
        variable: u32,
    },
    /// `add_tick_var`: move the time that is remembered.
    AddTick {
        /// Which time variable.
        variable: u32,
        /// By so many ticks.
        ticks: u64,
    },
    /// `add_stats`: add to a counter of the user.
    AddStats {
        /// Which counter, 0 to 3 for A to D.
        counter: u32,
        /// What is added.
        value: u64,
    },
    /// `add_tick_stats`: add the ticks since a time to a counter of the user.
    AddTickStats {
        /// Which counter.
        counter: u32,
        /// Which time variable.
        variable: u32,
    },
    /// `jmp_nz`: take one away from a variable, jump while something is left. A variable that is
    /// zero already stays zero.
    JumpNotZero {
        /// Which variable.
        variable: u32,
        /// Where to, counted from this command.
        offset: i64,
    },
    /// `jmp_dp`: jump while fewer ticks passed since a time.
    JumpWithin {
        /// Which time variable.
        variable: u32,
        /// Where to, counted from this command.
        offset: i64,
        /// How many ticks.
        ticks: u64,
    },
    /// `jmp_cmp`: jump if a variable compares so, or always.
    Jump {
        /// Where to, counted from this command.
        offset: i64,
        /// When; `None` is always.
        condition: Option<Condition>,
    },
    /// `tx_mode`: whether `tx` waits for its acknowledgment.
    SendMode {
        /// It waits (the beginning); else it goes on as soon as there is room for more.
        blocking: bool,
    },
    /// `set_template`: choose the group of the flow that `exec_template` makes.
    SetTemplate {
        /// The number of the group; the first is 1, 0 is none.
        group: u32,
    },
    /// `exec_template`: make a flow of the chosen group and wait for its end.
    ExecuteTemplate,
}

impl ProgramCommand {
    /// Its name in profiles.
    pub fn name(&self) -> &'static str {
        match self {
            ProgramCommand::Send { .. } => "tx",
            ProgramCommand::Receive { .. } | ProgramCommand::ReceiveUntilClose => "rx",
            ProgramCommand::SendMessage { .. } => "tx_msg",
            ProgramCommand::ReceiveMessages { .. } => "rx_msg",
            ProgramCommand::Delay { .. } => "delay",
            ProgramCommand::DelayRandom { .. } => "delay_rnd",
            ProgramCommand::Keepalive { .. } => "keepalive",
            ProgramCommand::CloseMessage => "close_msg",
            ProgramCommand::Reset => "reset",
            ProgramCommand::WaitForPeerClose => "nc",
            ProgramCommand::Connect => "connect",
            ProgramCommand::SetVariable { .. } => "set_var",
            ProgramCommand::AddVariable { .. } => "add_var",
            ProgramCommand::SetTick { .. } => "set_tick_var",
            ProgramCommand::AddTick { .. } => "add_tick_var",
            ProgramCommand::AddStats { .. } => "add_stats",
            ProgramCommand::AddTickStats { .. } => "add_tick_stats",
            ProgramCommand::JumpNotZero { .. } => "jmp_nz",
            ProgramCommand::JumpWithin { .. } => "jmp_dp",
            ProgramCommand::Jump { .. } => "jmp_cmp",
            ProgramCommand::SendMode { .. } => "tx_mode",
            ProgramCommand::SetTemplate { .. } => "set_template",
            ProgramCommand::ExecuteTemplate => "exec_template",
        }
    }

    /// What carries a flow with this command; `None` when either may.
    pub fn transport(&self) -> Option<Transport> {
        match self {
            ProgramCommand::Send { .. }
            | ProgramCommand::Receive { .. }
            | ProgramCommand::ReceiveUntilClose
            | ProgramCommand::Reset
            | ProgramCommand::WaitForPeerClose
            | ProgramCommand::Connect
            | ProgramCommand::SendMode { .. } => Some(Transport::Stream),
            ProgramCommand::SendMessage { .. }
            | ProgramCommand::ReceiveMessages { .. }
            | ProgramCommand::Keepalive { .. }
            | ProgramCommand::CloseMessage => Some(Transport::Datagram),
            _ => None,
        }
    }
}

/// When a `jmp_cmp` jumps: the variable stands on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which variable.
    pub variable: u32,
    /// How it compares.
    pub comparison: Comparison,
    /// To what.
    pub value: u64,
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `gt`.
    Greater,
    /// `lt`.
    Less,
    /// `eq`.
    Equal,
    /// `ge`.
    GreaterOrEqual,
    /// `le`.
    LessOrEqual,
    /// `ne`.
    NotEqual,
}

impl Comparison {
    /// Whether `left` compares so to `right`.
    #[inline]
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Comparison::Greater => left > right,
            Comparison::Less => left < right,
            Comparison::Equal => left == right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::LessOrEqual => left <= right,
            Comparison::NotEqual => left != right,
        }
    }
}
