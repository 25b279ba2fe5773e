//! What ICMP for IPv4 (RFC 792) and for IPv6 (RFC 4443) have in common: the eight bytes that every
//! message begins with.

use crate::bytes::Field;

pub(super) const KIND: usize = 0;
pub(super) const CODE: usize = 1;
pub(super) const CHECKSUM: Field = 2..4;
/// What these four bytes mean depends on the kind.
pub(super) const REST: Field = 4..8;

/// The four bytes of an echo message: which of the askers, and which of its questions.
pub(super) fn two_numbers(rest: [u8; 4]) -> [u16; 2] {
    [[rest[0], rest[1]], [rest[2], rest[3]]].map(u16::from_be_bytes)
}

/// The four bytes of two numbers.
pub(super) fn four_bytes(first: u16, second: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
    [a, b, c, d]
}

/// Defines the view over a message, but for its checksum, which covers a pseudo header in IPv6.
macro_rules! icmp_view {
    ($(#[$doc:meta])* $view:ident of $header:ident, $name:literal) => {
        /// Bytes that every message begins with.
        pub const HEADER_BYTES: usize = $crate::network::icmp::REST.end;
        /// Where the checksum lies in the header.
        pub const CHECKSUM_OFFSET: usize = $crate::network::icmp::CHECKSUM.start;

        $crate::view::view! {
            $(#[$doc])*
            $view of $header, $name, HEADER_BYTES
        }

        impl<B: AsRef<[u8]>> $view<B> {
            /// What kind of message it is (the type field); in IPv6 it is an error below 128.
            pub fn kind(&self) -> u8 {
                self.bytes.as_ref()[$crate::network::icmp::KIND]
            }

            /// Which of its kind.
            pub fn code(&self) -> u8 {
                self.bytes.as_ref()[$crate::network::icmp::CODE]
            }

            /// The checksum over the message, in IPv6 over its pseudo header too.
            pub fn checksum(&self) -> u16 {
                $crate::bytes::u16_at(self.bytes.as_ref(), $crate::network::icmp::CHECKSUM)
            }

            /// The four bytes that mean something else in each kind.
            pub fn rest(&self) -> [u8; 4] {
                $crate::bytes::array(self.bytes.as_ref(), $crate::network::icmp::REST)
            }

            /// What follows the first eight bytes.
            pub fn payload(&self) -> &[u8] {
                &self.bytes.as_ref()[HEADER_BYTES..]
            }
        }

        impl<B: AsRef<[u8]> + AsMut<[u8]>> $view<B> {
            /// Sets what kind of message it is, and which of its kind.
            pub fn set_kind(&mut self, kind: u8, code: u8) {
                self.bytes.as_mut()[$crate::network::icmp::KIND] = kind;
                self.bytes.as_mut()[$crate::network::icmp::CODE] = code;
            }

            /// Sets the checksum.
            pub fn set_checksum(&mut self, checksum: u16) {
                let bytes = self.bytes.as_mut();
                $crate::bytes::set_u16(bytes, $crate::network::icmp::CHECKSUM, checksum);
            }

            /// Sets the four bytes that mean something else in each kind.
            pub fn set_rest(&mut self, rest: [u8; 4]) {
                self.bytes.as_mut()[$crate::network::icmp::REST].copy_from_slice(&rest);
            }

            /// What follows the first eight bytes, to write.
            pub fn payload_mut(&mut self) -> &mut [u8] {
                &mut self.bytes.as_mut()[HEADER_BYTES..]
            }
        }
    };
}

pub(super) use icmp_view;
