//! The JSON of the commands of a program.

use super::values::{duration, flag_or_no, number, number32};
use crate::fields::{FieldError, Fields};

/// A command, by its `name`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramCommand {
    /// `tx`.
    Tx {
        /// The number of the buffer.
        buf_index: u32,
    },
    /// `rx`.
    Rx {
        /// Bytes that must have arrived in all.
        min_bytes: u64,
        /// Count anew then.
        clear: bool,
    },
    /// `rx` with `until_close`: until the other side closes, however much comes before. Allosaur's own.
    RxUntilClose,
    /// `tx_msg`.
    TxMsg {
        /// The number of the buffer.
        buf_index: u32,
    },
    /// `rx_msg`.
    RxMsg {
        /// Messages that must have arrived in all.
        min_pkts: u64,
        /// Count anew then.
        clear: bool,
    },
    /// `keepalive`.
    Keepalive {
        /// How long the flow may be silent, in milliseconds.
        msec: u32,
        /// Only what arrives counts.
        rx_mode: bool,
    },
    /// `close_msg`.
    CloseMsg,
    /// `delay`.
    Delay {
        /// In microseconds.
        usec: f64,
    },
    /// `delay_rnd`.
    DelayRnd {
        /// At least, in microseconds.
        min_usec: f64,
        /// At most.
        max_usec: f64,
    },
    /// `reset`.
    Reset,
    /// `nc`.
    Nc,
    /// `connect`.
    Connect,
    /// `set_var`.
    SetVar {
        /// Which variable.
        id: u32,
        /// Its value.
        val: u64,
    },
    /// `add_var`.
    AddVar {
        /// Which variable.
        id: u32,
        /// What is added.
        val: i64,
    },
    /// `set_tick_var`.
    SetTickVar {
        /// Which time variable.
        id: u32,
    },
    /// `add_tick_var`.
    AddTickVar {
        /// Which time variable.
        id: u32,
        /// In seconds.
        duration: f64,
    },
    /// `add_stats`.
    AddStats {
        /// Which counter.
        stats_id: u32,
        /// What is added.
        val: u64,
    },
    /// `add_tick_stats`.
    AddTickStats {
        /// Which counter.
        stats_id: u32,
        /// Which time variable.
        var_id: u32,
    },
    /// `jmp_nz`.
    JmpNz {
        /// Which variable.
        id: u32,
        /// Where to.
        offset: i64,
    },
    /// `jmp_dp`.
    JmpDp {
        /// Which time variable.
        id: u32,
        /// Where to.
        offset: i64,
        /// In seconds.
        duration: f64,
    },
    /// `jmp_cmp`.
    JmpCmp {
        /// Where to.
        offset: i64,
        /// When; `None` is always.
        condition: Option<Condition>,
    },
    /// `tx_mode`.
    TxMode {
        /// Bit 0: do not wait for acknowledgments.
        flags: u32,
    },
    /// `set_template`.
    SetTemplate {
        /// The number of the template group.
        tg_id: u32,
    },
    /// `exec_template`.
    ExecTemplate,
}

/// When a `jmp_cmp` jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which variable.
    pub id: u32,
    /// How it must compare.
    pub cmp_op: CmpOp,
    /// To what.
    pub cmp_val: u64,
}

/// How two numbers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmpOp {
    /// Greater.
    Gt,
    /// Less.
    Lt,
    /// Equal.
    Eq,
    /// Greater or equal.
    Ge,
    /// Less or equal.
    Le,
    /// Not equal.
    Ne,
}

const CMP_OPS: [(&str, CmpOp); 6] = [
    ("gt", CmpOp::Gt),
    ("lt", CmpOp::Lt),
    ("eq", CmpOp::Eq),
    ("ge", CmpOp::Ge),
    ("le", CmpOp::Le),
    ("ne", CmpOp::Ne),
];

/// The names of all commands.
pub const NAMES: [&str; 23] = [
    "tx",
    "rx",
    "tx_msg",
    "rx_msg",
    "keepalive",
    "close_msg",
    "delay",
    "delay_rnd",
    "reset",
    "nc",
    "connect",
    "set_var",
    "add_var",
    "set_tick_var",
    "add_tick_var",
    "add_stats",
    "add_tick_stats",
    "jmp_nz",
    "jmp_dp",
    "jmp_cmp",
    "tx_mode",
    "set_template",
    "exec_template",
];

impl ProgramCommand {
    /// Reads a command.
    pub fn parse(fields: &Fields<'_>) -> Result<ProgramCommand, FieldError> {
        Ok(match fields.one_of("name", &NAMES)? {
            "tx" => ProgramCommand::Tx {
                buf_index: number32(fields, "buf_index")?,
            },
            "rx" if flag_or_no(fields, "until_close")? => ProgramCommand::RxUntilClose,
            "rx" => ProgramCommand::Rx {
                min_bytes: number(fields, "min_bytes")?,
                clear: flag_or_no(fields, "clear")?,
            },
            "tx_msg" => ProgramCommand::TxMsg {
                buf_index: number32(fields, "buf_index")?,
            },
            "rx_msg" => ProgramCommand::RxMsg {
                min_pkts: number(fields, "min_pkts")?,
                clear: flag_or_no(fields, "clear")?,
            },
            "keepalive" => ProgramCommand::Keepalive {
                msec: number32(fields, "msec")?,
                rx_mode: flag_or_no(fields, "rx_mode")?,
            },
            "delay" => ProgramCommand::Delay {
                usec: duration(fields, "usec")?,
            },
            "delay_rnd" => ProgramCommand::DelayRnd {
                min_usec: duration(fields, "min_usec")?,
                max_usec: duration(fields, "max_usec")?,
            },
            "close_msg" => ProgramCommand::CloseMsg,
            "reset" => ProgramCommand::Reset,
            "nc" => ProgramCommand::Nc,
            "connect" => ProgramCommand::Connect,
            "exec_template" => ProgramCommand::ExecTemplate,
            name => return variables(name, fields),
        })
    }
}

/// The commands about variables, counters, jumps and modes.
fn variables(name: &str, fields: &Fields<'_>) -> Result<ProgramCommand, FieldError> {
    let id = || number32(fields, "id");
    Ok(match name {
        "set_var" => ProgramCommand::SetVar {
            id: id()?,
            val: number(fields, "val")?,
        },
        "add_var" => ProgramCommand::AddVar {
            id: id()?,
            val: fields.int("val")?,
        },
        "set_tick_var" => ProgramCommand::SetTickVar { id: id()? },
        "add_tick_var" => ProgramCommand::AddTickVar {
            id: id()?,
            duration: duration(fields, "duration")?,
        },
        "add_stats" => ProgramCommand::AddStats {
            stats_id: number32(fields, "stats_id")?,
            val: number(fields, "val")?,
        },
        "add_tick_stats" => ProgramCommand::AddTickStats {
            stats_id: number32(fields, "stats_id")?,
            var_id: number32(fields, "var_id")?,
        },
        "jmp_nz" => ProgramCommand::JmpNz {
            id: id()?,
            offset: fields.int("offset")?,
        },
        "jmp_dp" => ProgramCommand::JmpDp {
            id: id()?,
            offset: fields.int("offset")?,
            duration: duration(fields, "duration")?,
        },
        "jmp_cmp" => ProgramCommand::JmpCmp {
            offset: fields.int("offset")?,
            condition: condition(fields)?,
        },
        "tx_mode" => ProgramCommand::TxMode {
            flags: number32(fields, "flags")?,
        },
        _ => ProgramCommand::SetTemplate {
            tg_id: number32(fields, "tg_id")?,
        },
    })
}

fn condition(fields: &Fields<'_>) -> Result<Option<Condition>, FieldError> {
    if fields.is_missing("cmp_op") {
        return Ok(None);
    }
    let name = fields.one_of("cmp_op", &CMP_OPS.map(|(name, _)| name))?;
    let found = CMP_OPS.iter().find(|(known, _)| *known == name);
    let (_, cmp_op) = found.expect("it is one of these");
    Ok(Some(Condition {
        id: number32(fields, "id")?,
        cmp_op: *cmp_op,
        cmp_val: number(fields, "cmp_val")?,
    }))
}
