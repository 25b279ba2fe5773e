//! The field engine: programs that change fields of a packet template from packet to packet.
//!
//! Five parts: the instruction set ([`instruction`]), the compiler (`compile`), the verifier
//! (`verify`), the runner (`run`, with the loops over values in `column`) and the disassembler
//! (`disassemble`). Between them stand the compiled `program` and the `state` of a stream on a
//! core; `cycle` is the arithmetic of counters, `odometer` that of counters that follow one
//! another, `digit` that of tuples, `sequence` reads random values that repeat.
//!
//! How it is driven: [`FieldProgram::compile`] once for each stream, [`State::new`] once for each
//! stream and core, one [`Stage`] for each core. Then, for each burst: [`Stage::run`] with the
//! stream's program, state and template, and for each packet `i` of the burst,
//! [`Stage::length`] and [`Stage::write`].

#![deny(clippy::cast_possible_truncation)]

mod checksum;
mod column;
mod compile;
mod cycle;
mod digit;
mod disassemble;
mod header;
pub mod instruction;
mod odometer;
mod program;
mod run;
mod sequence;
mod state;
mod verify;

pub use checksum::left_checksums;
pub use instruction::{
    Checksums, Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width,
};
pub use program::FieldProgram;
pub use run::Stage;
pub use state::State;
pub use verify::{InstructionError, verify};

/// Most packets of one burst.
pub const BURST: usize = 64;
