//! Sequence numbers: 32 bits that go round (RFC 9293 section 3.4).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A sequence number. Two are compared by the shorter way round, so what is compared lies less
/// than 2³¹ apart.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether this comes before `other`.
    #[inline]
    #[must_use]
    pub const fn is_before(self, other: Seq) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether this comes after `other`.
    #[inline]
    #[must_use]
    pub const fn is_after(self, other: Seq) -> bool {
        other.is_before(self)
    }

    /// The later one.
    #[inline]
    #[must_use]
    pub const fn max(self, other: Seq) -> Seq {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier one.
    #[inline]
    #[must_use]
    pub const fn min(self, other: Seq) -> Seq {
        if self.is_before(other) { self } else { other }
    }

    /// Bytes from here to `later`; 0 when that is no later.
    #[inline]
    #[must_use]
    pub const fn until(self, later: Seq) -> u32 {
        if self.is_before(later) {
            later.0.wrapping_sub(self.0)
        } else {
            0
        }
    }
}

impl Add<u32> for Seq {
    type Output = Seq;

    #[inline]
    fn add(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;

    #[inline]
    fn sub(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_round() {
        let (old, new) = (Seq(u32::MAX - 5), Seq(10));
        assert!(old.is_before(new) && new.is_after(old) && !new.is_before(old));
        assert_eq!((old.until(new), new.until(old)), (16, 0));
        assert_eq!((old + 16, new - 16), (new, old));
        assert_eq!((old.max(new), old.min(new)), (new, old));
        assert!(!old.is_before(old) && !old.is_after(old));
    }
}
