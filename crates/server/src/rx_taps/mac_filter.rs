//! Which frames a port takes by their destination, as a network card's filter does.
//!
//! Used with flows, on all kinds of ports: those in memory have no card, and veth and tap interfaces
//! hand over everything. Streams alone need no filter of ours: TRex has none either where the port's
//! driver has none.

/// All multicast hosts of IPv4 (224.0.0.1) and all nodes of IPv6 (ff02::1), by their MAC addresses
/// (RFC 1112, section 6.4; RFC 2464, section 7).
const ALL_HOSTS: [[u8; 6]; 2] = [[0x01, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];
/// What the MAC addresses of solicited-node multicast groups begin with (RFC 4291, section 2.7.1).
const SOLICITED_NODE: [u8; 3] = [0x33, 0x33, 0xff];
const BROADCAST: [u8; 6] = [0xff; 6];

/// The filter of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacFilter {
    /// It takes every frame: it is promiscuous.
    #[default]
    Any,
    /// It takes its own frames, broadcasts, and multicast of groups that every host is in.
    Own {
        /// Its MAC address.
        mac: [u8; 6],
        /// It takes all other multicast too.
        multicast: bool,
        /// Others are behind the port, with addresses of their own: what the port does not take is
        /// shown to taps, and to no flow.
        has_others: bool,
    },
}

impl MacFilter {
    /// The filter of a port with these attributes.
    pub fn new(mac: [u8; 6], promiscuous: bool, multicast: bool) -> MacFilter {
        if promiscuous {
            MacFilter::Any
        } else {
            MacFilter::Own {
                mac,
                multicast,
                has_others: false,
            }
        }
    }

    /// The same with others behind the port, or without.
    pub fn with_others(mut self, others: bool) -> MacFilter {
        if let MacFilter::Own { has_others, .. } = &mut self {
            *has_others = others;
        }
        self
    }

    /// Whether the port takes a frame. One without an address is none of its business.
    #[inline]
    pub fn takes(&self, frame: &[u8]) -> bool {
        let MacFilter::Own { mac, multicast, .. } = self else {
            return true;
        };
        let Some(to) = frame.first_chunk::<6>() else {
            return true;
        };
        to == mac || to[0] & 1 == 1 && (*multicast || is_for_every_host(to))
    }

    /// Whether frames that the port does not take are shown to taps.
    #[inline]
    pub fn shows_others(&self) -> bool {
        matches!(
            self,
            MacFilter::Any
                | MacFilter::Own {
                    has_others: true,
                    ..
                }
        )
    }
}

#[cold]
fn is_for_every_host(to: &[u8; 6]) -> bool {
    *to == BROADCAST || ALL_HOSTS.contains(to) || to.starts_with(&SOLICITED_NODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn frame(to: [u8; 6]) -> [u8; 60] {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&to);
        frame
    }

    #[test]
    fn only_what_is_meant_for_the_port_is_taken() {
        let filter = MacFilter::new(OWN, false, false);
        for to in [
            OWN,
            [0xff; 6],
            [1, 0, 0x5e, 0, 0, 1],
            [0x33, 0x33, 0, 0, 0, 1],
            [0x33, 0x33, 0xff, 7, 8, 9],
        ] {
            assert!(filter.takes(&frame(to)), "{to:x?}");
        }
        for to in [
            [2, 0, 0, 0, 0, 2],
            [0x12; 6],
            [1, 0, 0x5e, 0, 0, 0xfb],
            [0x33, 0x33, 0, 0, 0, 2],
        ] {
            assert!(!filter.takes(&frame(to)), "{to:x?}");
        }
    }

    #[test]
    fn attributes_open_it() {
        let group = frame([1, 0, 0x5e, 0, 0, 0xfb]);
        let other = frame([0x12; 6]);
        let multicast = MacFilter::new(OWN, false, true);
        assert!(multicast.takes(&group) && !multicast.takes(&other));
        let promiscuous = MacFilter::new(OWN, true, false);
        assert!(promiscuous.takes(&group) && promiscuous.takes(&other));
        assert_eq!(MacFilter::default(), promiscuous);
    }

    #[test]
    fn what_is_for_others_behind_the_port_is_shown_and_not_taken() {
        let other = frame([0x12; 6]);
        let alone = MacFilter::new(OWN, false, false);
        let with_others = alone.with_others(true);
        assert!(!with_others.takes(&other) && with_others.shows_others());
        assert!(!alone.shows_others());
        assert_eq!(with_others.with_others(false), alone);
        assert_eq!(MacFilter::Any.with_others(true), MacFilter::Any);
    }
}
