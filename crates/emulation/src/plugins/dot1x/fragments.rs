//! Messages of TLS cut into packets of EAP and put together again (RFC 5216 section 2.1.5), as
//! EAP-TLS, PEAP and EAP-TTLS do it alike.

/// Bytes of a message at most, whatever its length field says: a chain of certificates is far shorter.
pub(super) const MESSAGE_BYTES_MAX: usize = 65_536;

const LENGTH_INCLUDED: u8 = 0x80;
const MORE: u8 = 0x40;
const START: u8 = 0x20;

/// What follows the type of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment<'f> {
    /// The server begins; there is no data.
    pub(super) is_start: bool,
    /// More of this message follows.
    pub(super) more: bool,
    /// Bytes of the whole message, where that is said.
    pub(super) total: Option<u32>,
    pub(super) data: &'f [u8],
}

/// Reads what follows the type. The version of PEAP and TTLS, in the last bits of the flags, is
/// passed over: we answer with 0, to which a server comes down.
pub(super) fn parse(bytes: &[u8]) -> Option<Fragment<'_>> {
    let (&flags, rest) = bytes.split_first()?;
    let (total, data) = if flags & LENGTH_INCLUDED == 0 {
        (None, rest)
    } else {
        let (total, data) = rest.split_first_chunk()?;
        (Some(u32::from_be_bytes(*total)), data)
    };
    Some(Fragment {
        is_start: flags & START != 0,
        more: flags & MORE != 0,
        total,
        data,
    })
}

/// A message that arrives in fragments.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    message: Vec<u8>,
    total: Option<u32>,
}

/// A fragment that fits no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misfit;

impl Incoming {
    /// Takes the next fragment. The message, when it was the last of one.
    pub(super) fn push(&mut self, fragment: &Fragment<'_>) -> Result<Option<Vec<u8>>, Misfit> {
        let is_first = self.message.is_empty();
        if is_first {
            self.total = fragment.total;
        }
        let changes = fragment.total.is_some_and(|it| self.total != Some(it));
        let bytes = self.message.len() + fragment.data.len();
        let limit = self.total.map_or(MESSAGE_BYTES_MAX, |total| total as usize);
        // The first of several says how long the message is; one without data would go on for ever.
        let endless = fragment.more && (self.total.is_none() || fragment.data.is_empty());
        if changes || endless || limit > MESSAGE_BYTES_MAX || bytes > limit {
            return Err(Misfit);
        }
        self.message.extend_from_slice(fragment.data);
        if fragment.more {
            return Ok(None);
        }
        if self.total.is_some_and(|total| total as usize != bytes) {
            return Err(Misfit);
        }
        self.total = None;
        Ok(Some(std::mem::take(&mut self.message)))
    }
}

/// A message on its way out, a fragment at a time. Without a message its only fragment is empty:
/// the acknowledgment of a fragment that was received.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) message: Vec<u8>,
    /// Where the fragment begins that was sent last, or will be next.
    begin: usize,
}

impl Outgoing {
    /// Whether there is a message, sent or not.
    pub(super) fn is_open(&self) -> bool {
        !self.message.is_empty()
    }

    /// The fragment that is to be sent, or sent again: flags, the length of the message where it is
    /// said, and data.
    pub(super) fn fragment(&self, bytes_max: usize) -> (u8, Option<u32>, &[u8]) {
        let rest = &self.message[self.begin..];
        let data = &rest[..rest.len().min(bytes_max)];
        let more = if data.len() < rest.len() { MORE } else { 0 };
        if self.begin == 0 && more != 0 {
            return (
                more | LENGTH_INCLUDED,
                Some(self.message.len() as u32),
                data,
            );
        }
        (more, None, data)
    }

    /// Goes on to the next fragment. Whether there is one; else the message is gone.
    pub(super) fn advance(&mut self, bytes_max: usize) -> bool {
        self.begin += bytes_max;
        let more = self.begin < self.message.len();
        if !more {
            self.begin = 0;
            self.message.clear();
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fragment(total: Option<u32>, more: bool, data: &[u8]) -> Fragment<'_> {
        Fragment {
            is_start: false,
            more,
            total,
            data,
        }
    }

    #[test]
    fn flags_and_lengths_are_read() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0x80, 0, 0, 1]), None);
        let start = parse(&[0x20]).unwrap();
        assert_eq!((start.is_start, start.data), (true, &[][..]));
        let first = parse(&[0xc1, 0, 0, 1, 2, 7]).unwrap();
        assert_eq!(first, fragment(Some(258), true, &[7]));
        assert_eq!(parse(&[0, 7]).unwrap(), fragment(None, false, &[7]));
    }

    #[test]
    fn what_fits_no_message_is_refused() {
        for fragments in [
            &[fragment(Some(3), false, &[1, 2])][..],
            &[fragment(Some(1), false, &[1, 2])],
            &[fragment(None, true, &[1])],
            &[fragment(Some(9), true, &[])],
            &[fragment(Some(65_537), true, &[1])],
            &[fragment(Some(u32::MAX), true, &[1])],
            &[fragment(Some(9), true, &[1]), fragment(None, true, &[])],
            &[
                fragment(Some(3), true, &[1]),
                fragment(Some(4), false, &[2, 3]),
            ],
            &[fragment(Some(3), true, &[1]), fragment(None, false, &[2])],
            &[
                fragment(Some(3), true, &[1]),
                fragment(None, true, &[2, 3, 4]),
            ],
        ] {
            let mut incoming = Incoming::default();
            let (last, before) = fragments.split_last().unwrap();
            for fragment in before {
                assert_eq!(incoming.push(fragment), Ok(None));
            }
            assert_eq!(incoming.push(last), Err(Misfit), "{last:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_cut_is_put_together(
            message in prop::collection::vec(any::<u8>(), 0..5_000),
            bytes_max in 1..1_500usize,
        ) {
            let mut outgoing = Outgoing { message: message.clone(), begin: 0 };
            let mut incoming = Incoming::default();
            loop {
                let (flags, total, data) = outgoing.fragment(bytes_max);
                prop_assert!(data.len() <= bytes_max);
                let total = total.map(u32::to_be_bytes);
                let total = total.as_ref().map_or(&[][..], |it| &it[..]);
                let bytes = [&[flags][..], total, data].concat();
                let arrived = incoming.push(&parse(&bytes).unwrap());
                let more = outgoing.advance(bytes_max);
                match arrived {
                    Ok(Some(arrived)) => {
                        prop_assert!(!more);
                        prop_assert_eq!(arrived, message);
                        break;
                    }
                    other => prop_assert_eq!((other, more), (Ok(None), true)),
                }
            }
        }

        #[test]
        fn whatever_comes_the_memory_is_bounded(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..99),
        ) {
            let mut incoming = Incoming::default();
            for piece in &pieces {
                if let Some(fragment) = parse(piece) {
                    let _ = incoming.push(&fragment);
                }
                prop_assert!(incoming.message.len() <= MESSAGE_BYTES_MAX);
            }
        }
    }
}
