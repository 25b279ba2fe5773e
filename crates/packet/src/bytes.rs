//! Reading and writing big-endian numbers at named ranges. Only for views, which have checked
//! that the bytes are there.

use std::ops::Range;

/// Where a field lies in its header.
pub(crate) type Field = Range<usize>;

/// Copies a field out; `N` is its width.
pub(crate) fn array<const N: usize>(bytes: &[u8], field: Field) -> [u8; N] {
    bytes[field]
        .try_into()
        .expect("the named range is as wide as its type")
}

/// Reads a 16-bit number.
pub(crate) fn u16_at(bytes: &[u8], field: Field) -> u16 {
    u16::from_be_bytes(array(bytes, field))
}

/// Reads a 32-bit number.
pub(crate) fn u32_at(bytes: &[u8], field: Field) -> u32 {
    u32::from_be_bytes(array(bytes, field))
}

/// Writes a 16-bit number.
pub(crate) fn set_u16(bytes: &mut [u8], field: Field, value: u16) {
    bytes[field].copy_from_slice(&value.to_be_bytes());
}

/// Writes a 32-bit number.
pub(crate) fn set_u32(bytes: &mut [u8], field: Field, value: u32) {
    bytes[field].copy_from_slice(&value.to_be_bytes());
}
