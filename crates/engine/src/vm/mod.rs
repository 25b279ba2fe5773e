//! The field engine: programs that change fields of a packet template from packet to packet.
//!
//! Five parts: the instruction set ([`instruction`]), the compiler (`compile`), the verifier
//! (`verify`), the runner (`run`) and the disassembler (`disassemble`). Between them stand the
//! compiled `program`, which is all that the runner reads, and the `state` of a stream on a core, with the arithmetic of counters. What single
//! instructions need stands beside them, the compiler's part and the runner's: `checksum`, and `masked`
//! for writes of some bits; `sequence` reads random values that repeat.
//!
//! How it is driven: [`FieldProgram::compile`] once for each stream, [`State::new`] once for each
//! stream and core, one [`Stage`] for each core. Then, for each burst: [`Stage::run`] with the
//! stream's program, state and template, and for each packet `i` of the burst,
//! [`Stage::length`] and [`Stage::write`].

#![deny(clippy::cast_possible_truncation)]

mod checksum;
mod compile;
mod disassemble;
mod header;
pub mod instruction;
mod masked;
mod offload;
mod program;
mod run;
mod sequence;
mod state;
mod verify;

pub use instruction::{
    Checksums, Flows, Instruction, Layer4, Operation, Range, Sequence, Values, Width,
};
pub use offload::left_checksums;
pub use program::FieldProgram;
pub use run::Stage;
pub use state::State;
pub use verify::{InstructionError, verify};

/// Most packets of one burst.
pub const BURST: usize = 64;

/// The lower 32 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are not wanted"
)]
fn low32(value: u64) -> u32 {
    value as u32
}

/// The lower 16 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are not wanted"
)]
fn low16(value: u32) -> u16 {
    value as u16
}

/// The lower 8 bits.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the upper bits are not wanted"
)]
fn low8(value: u32) -> u8 {
    value as u8
}
