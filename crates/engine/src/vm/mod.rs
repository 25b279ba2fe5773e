//! The field engine: programs that change fields of a packet template from packet to packet.
//!
//! Five parts: the instruction set ([`instruction`]), the compiler (`compile`), the verifier
//! (`verify`), the runner (`run`) and the disassembler (`disassemble`).

pub mod instruction;

pub use instruction::{Instruction, Operation, Range, Values, Width};
