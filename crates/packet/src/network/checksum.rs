//! The internet checksum: whole (RFC 1071), over pseudo headers, and updated in place (RFC 1624).
//!
//! Nothing here knows where a checksum lies in its header; the views do.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::network::ip_protocol::IpProtocol;

/// A ones' complement sum that is not finished yet.
///
/// Add what the checksum covers, in any order but with each piece at an even offset of the whole
/// (so only the last piece may have an odd length), then take [`Sum::checksum`]. Exact up to
/// 16 GiB of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum over bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Sum {
        // RFC 1071 section 2(B): the sum does not care about byte order, so the words are added
        // as the machine holds them and turned once at the end. Carries of wide words pile up in
        // the upper bits of their halves (section 2(C)): the upper halves are summed for
        // themselves, and what is left of the sum of all are the lower ones. That is two additions
        // and a shift a word, and the compiler makes vectors of it.
        let mut words = bytes.chunks_exact(8);
        let (mut all, mut upper) = (0u64, 0u64);
        for word in &mut words {
            let word = u64::from_ne_bytes(word.try_into().expect("chunks are 8 bytes"));
            all = all.wrapping_add(word);
            upper += word >> 32;
        }
        let mut sum = upper + all.wrapping_sub(upper << 32);
        // The rest by its bits, not by a copy of any length: most headers are 20 bytes.
        let mut rest = words.remainder();
        if let Some((word, after)) = rest.split_first_chunk::<4>() {
            sum += u64::from(u32::from_ne_bytes(*word));
            rest = after;
        }
        if let Some((word, after)) = rest.split_first_chunk::<2>() {
            sum += u64::from(u16::from_ne_bytes(*word));
            rest = after;
        }
        if let [last] = *rest {
            sum += u64::from(u16::from_ne_bytes([last, 0]));
        }
        // Half-words stay half-words when four bytes are turned, and their order does not matter.
        Sum(u64::from(u32::from_be(fold_to_32(sum))))
    }

    /// The sum over as many bytes as are known when the program is compiled, a multiple of four: a
    /// few additions without a loop, for headers.
    #[inline(always)]
    #[must_use]
    pub fn of_header<const BYTES: usize>(bytes: &[u8; BYTES]) -> Sum {
        const { assert!(BYTES % 4 == 0, "headers have whole words") };
        // The carry of an addition is one of ones' complement (RFC 1071, section 2(C)).
        let add = |sum: u64, word: u64| {
            let (sum, carry) = sum.overflowing_add(word);
            sum + u64::from(carry)
        };
        let mut words = bytes.chunks_exact(8);
        let mut sum = 0;
        for word in &mut words {
            let word = word.try_into().expect("chunks are 8 bytes");
            sum = add(sum, u64::from_ne_bytes(word));
        }
        if let Some(word) = words.remainder().first_chunk() {
            sum = add(sum, u64::from(u32::from_ne_bytes(*word)));
        }
        Sum(u64::from(u32::from_be(fold_to_32(sum))))
    }

    /// This sum and other bytes.
    #[must_use]
    #[inline]
    pub fn and(self, bytes: &[u8]) -> Sum {
        self.and_sum(Sum::of(bytes))
    }

    /// This sum and another one.
    #[must_use]
    pub const fn and_sum(self, other: Sum) -> Sum {
        Sum(self.0 + other.0)
    }

    /// This sum and one 16-bit number.
    #[must_use]
    pub fn and_u16(self, value: u16) -> Sum {
        Sum(self.0 + u64::from(value))
    }

    /// This sum and one 32-bit number.
    #[must_use]
    pub fn and_u32(self, value: u32) -> Sum {
        // Its upper half is counted 2^16 times, which is once in ones' complement.
        Sum(self.0 + u64::from(value))
    }

    /// The sum as 16 bits, carries folded in.
    #[must_use]
    pub const fn folded(self) -> u16 {
        fold(self.0)
    }

    /// The checksum: the complement of the folded sum.
    ///
    /// Over bytes that include a right checksum this is 0.
    #[must_use]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Folds the carries in until 32 bits are left: in the upper half of the sum of both orders of the
/// halves, the carry of the lower one is in its place.
#[inline]
const fn fold_to_32(sum: u64) -> u32 {
    (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32
}

/// Folds the carries in until 16 bits are left, in the same way.
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = fold_to_32(sum);
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// The checksum over bytes whose own checksum field is zero.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::of(bytes).checksum()
}

/// The sum over the pseudo header of TCP and UDP over IPv4 (RFC 9293 section 3.1).
#[inline]
#[must_use]
pub fn pseudo_header_v4(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: IpProtocol,
    length_bytes: u16,
) -> Sum {
    Sum::default()
        .and_u32(source.to_bits())
        .and_u32(destination.to_bits())
        .and_u16(u16::from(protocol.0))
        .and_u16(length_bytes)
}

/// The sum over the pseudo header of IPv6 (RFC 8200 section 8.1). `protocol` is the upper layer's,
/// not the next header of the IPv6 header when there are extension headers.
#[inline]
#[must_use]
pub fn pseudo_header_v6(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    protocol: IpProtocol,
    length_bytes: u32,
) -> Sum {
    Sum::of_header(&source.octets())
        .and_sum(Sum::of_header(&destination.octets()))
        .and_u32(length_bytes)
        .and_u16(u16::from(protocol.0))
}

/// What goes into the checksum field of UDP: zero there means "no checksum", so a computed zero
/// is sent as all ones, which is the same number in ones' complement (RFC 768).
#[must_use]
pub const fn for_udp(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The checksum after what it covers changed from `old` to `new` (RFC 1624, equation 3).
///
/// Equal to the whole computation, bit for bit, as long as the covered bytes do not become all
/// zeros (no header or pseudo header is).
#[must_use]
pub const fn update(checksum: u16, old: Sum, new: Sum) -> u16 {
    // HC' = ~(~HC + ~m + m')
    !fold(!checksum as u64 + !old.folded() as u64 + new.folded() as u64)
}

/// The checksum after a 16-bit number at an even offset changed.
#[must_use]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// The checksum after a 32-bit number at an even offset changed.
#[must_use]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let removed = (!old >> 16) as u64 + (!old & 0xffff) as u64;
    let added = (new >> 16) as u64 + (new & 0xffff) as u64;
    !fold(!checksum as u64 + removed + added)
}

/// The checksum after bytes that start at an even offset changed from `old` to `new`.
///
/// # Panics
/// When the two differ in length.
#[must_use]
pub fn update_bytes(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    assert_eq!(
        old.len(),
        new.len(),
        "an update replaces bytes by as many bytes"
    );
    update(checksum, Sum::of(old), Sum::of(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, two bytes at a time.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += (u64::from(pair[0]) << 8) | u64::from(*pair.get(1).unwrap_or(&0));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !u16::try_from(sum).unwrap()
    }

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: the words 0001 f203 f4f5 f6f7 sum up to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).folded(), 0xddf2);
        assert_eq!(checksum(&bytes), 0x220d);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: checksum dd2f, a field goes from 5555 to 3285; the result is 0000.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn pseudo_headers_are_sums_over_their_bytes() {
        let (a, b) = (Ipv4Addr::new(192, 168, 1, 2), Ipv4Addr::new(10, 255, 0, 9));
        let bytes = [192, 168, 1, 2, 10, 255, 0, 9, 0, 17, 0x12, 0x34];
        let sum = pseudo_header_v4(a, b, IpProtocol::UDP, 0x1234);
        assert_eq!(sum.checksum(), naive(&bytes));

        let (a, b) = (
            Ipv6Addr::LOCALHOST,
            "2001:db8::ff00:42:8329".parse().unwrap(),
        );
        let mut bytes = [a.octets(), Ipv6Addr::octets(&b)].concat();
        bytes.extend([0, 1, 0x12, 0x34, 0, 0, 0, 6]);
        let sum = pseudo_header_v6(a, b, IpProtocol::TCP, 0x0001_1234);
        assert_eq!(sum.checksum(), naive(&bytes));
    }

    #[test]
    fn headers_are_summed_as_any_bytes() {
        let header: [u8; 44] = std::array::from_fn(|n| (n * 151 % 256).try_into().unwrap());
        assert_eq!(Sum::of_header(&header).checksum(), naive(&header));
        assert_eq!(Sum::of_header(&[0xff; 40]).checksum(), 0);
        assert_eq!(Sum::of_header(&[0; 20]).checksum(), 0xffff);
    }

    #[test]
    fn udp_never_sends_zero() {
        assert_eq!(
            (for_udp(0), for_udp(7), for_udp(0xffff)),
            (0xffff, 7, 0xffff)
        );
    }

    #[test]
    fn many_ones_do_not_overflow() {
        let bytes = vec![0xff; 1 << 20];
        assert_eq!(checksum(&bytes), naive(&bytes));
    }

    proptest! {
        #[test]
        fn fast_equals_naive(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(checksum(&bytes), naive(&bytes));
        }

        #[test]
        fn pieces_add_up(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..150) {
            let cut = (2 * cut).min(bytes.len() & !1);
            let (a, b) = bytes.split_at(cut);
            prop_assert_eq!(Sum::of(a).and(b).checksum(), naive(&bytes));
        }

        /// The first word stays: bytes that are all zeros have two right checksums.
        #[test]
        fn update_equals_whole(
            mut bytes in prop::collection::vec(any::<u8>(), 42..100),
            at in 1usize..10,
            new in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            bytes[0] |= 1;
            let before = naive(&bytes);
            let range = 2 * at..2 * at + new.len();
            let old = bytes[range.clone()].to_vec();
            bytes[range].copy_from_slice(&new);
            prop_assert_eq!(update_bytes(before, &old, &new), naive(&bytes));
        }

        #[test]
        fn number_updates_equal_whole(
            mut bytes in prop::collection::vec(any::<u8>(), 40),
            at in 1usize..18,
            small: u16,
            large: u32,
        ) {
            bytes[0] |= 1;
            let at = 2 * at;
            let before = naive(&bytes);
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&small.to_be_bytes());
            let after = naive(&bytes);
            prop_assert_eq!(update_u16(before, old, small), after);

            let old = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
            bytes[at..at + 4].copy_from_slice(&large.to_be_bytes());
            prop_assert_eq!(update_u32(after, old, large), naive(&bytes));
        }
    }
}
