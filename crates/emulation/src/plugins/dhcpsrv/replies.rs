//! What a server answers: the options of each kind of answer, made once, and the message around them.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::application::dhcpv4::{DhcpHeader, HEADER_BYTES, MessageType, REPLY, code};

use super::init::GivenOption;

/// The options of an answer in the order of their codes, and where what differs goes.
#[derive(Debug)]
pub(super) struct Template {
    options: Box<[u8]>,
    server: u16,
    /// Where mask, lease, T1 and T2 go, if the answer is about a lease.
    lease: Option<[u16; 4]>,
}

/// Codes of [`Template::lease`].
const OF_LEASE: [u8; 4] = [
    code::SUBNET_MASK,
    code::LEASE_TIME,
    code::RENEWAL_TIME,
    code::REBINDING_TIME,
];

/// The numbers of one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'r> {
    /// The request.
    pub(super) request: &'r DhcpHeader,
    pub(super) chaddr: MacAddress,
    pub(super) ciaddr: Ipv4Addr,
    pub(super) yiaddr: Ipv4Addr,
    pub(super) siaddr: Ipv4Addr,
    pub(super) server: Ipv4Addr,
    pub(super) mask: Ipv4Addr,
    pub(super) lease_s: u32,
    /// The router that clients behind a relay have.
    pub(super) router: Option<Ipv4Addr>,
    /// What the relay told, which it gets back (RFC 3046 section 2.2).
    pub(super) relay_information: Option<&'r [u8]>,
}

/// When to renew, and when to rebind (RFC 2131 section 4.4.5), in seconds.
pub(super) fn renewal_s(lease_s: u32) -> u32 {
    lease_s / 2
}

fn rebinding_s(lease_s: u32) -> u32 {
    (u64::from(lease_s) * 7 / 8) as u32
}

impl Template {
    /// The template of a kind of answer with given options. Those that the server knows better are
    /// its own.
    pub(super) fn new(
        message_type: MessageType,
        given: &[GivenOption],
        of_lease: bool,
    ) -> Template {
        let mut own = vec![(code::MESSAGE_TYPE, vec![message_type.0])];
        own.push((code::SERVER_ID, vec![0; 4]));
        if of_lease {
            own.extend(OF_LEASE.map(|code| (code, vec![0; 4])));
        }
        let is_own = |code: u8| own.iter().any(|(known, _)| *known == code);
        let given = given.iter().filter(|(code, _)| !is_own(*code)).cloned();
        let mut all: Vec<GivenOption> = given.collect();
        all.extend(own);
        all.sort_by_key(|(code, _)| *code);
        let mut options = Vec::new();
        let mut places = [0; 256];
        for (code, data) in all {
            options.extend([code, data.len() as u8]);
            places[usize::from(code)] = options.len() as u16;
            options.extend(data);
        }
        Template {
            options: options.into(),
            server: places[usize::from(code::SERVER_ID)],
            lease: of_lease.then(|| OF_LEASE.map(|code| places[usize::from(code)])),
        }
    }

    /// Bytes of a whole answer.
    pub(super) fn bytes(&self, answer: &Answer<'_>) -> usize {
        let router = answer.router.map_or(0, |_| 2 + 4);
        let relay = answer.relay_information.map_or(0, |data| 2 + data.len());
        HEADER_BYTES + self.options.len() + router + relay + 1
    }

    /// Writes an answer over zeros.
    pub(super) fn write(&self, message: &mut [u8], answer: &Answer<'_>) {
        let header = DhcpHeader {
            flags: answer.request.flags,
            ciaddr: answer.ciaddr,
            yiaddr: answer.yiaddr,
            siaddr: answer.siaddr,
            giaddr: answer.request.giaddr,
            ..DhcpHeader::new(REPLY, answer.chaddr, answer.request.xid)
        };
        header.emit(message);
        let (options, mut rest) = message[HEADER_BYTES..].split_at_mut(self.options.len());
        options.copy_from_slice(&self.options);
        let mut put = |at: u16, field: [u8; 4]| {
            let at = usize::from(at);
            options[at..at + 4].copy_from_slice(&field);
        };
        put(self.server, answer.server.octets());
        if let Some([mask, lease, renewal, rebinding]) = self.lease {
            put(mask, answer.mask.octets());
            put(lease, answer.lease_s.to_be_bytes());
            put(renewal, renewal_s(answer.lease_s).to_be_bytes());
            put(rebinding, rebinding_s(answer.lease_s).to_be_bytes());
        }
        let router = answer.router.map(|router| router.octets());
        let router = router.as_ref().map(|octets| (code::ROUTER, &octets[..]));
        let relay = answer.relay_information;
        let relay = relay.map(|data| (code::RELAY_INFORMATION, data));
        for (code, data) in router.into_iter().chain(relay) {
            let (option, after) = rest.split_at_mut(2 + data.len());
            // It came in one option, so it fits into one.
            option[..2].copy_from_slice(&[code, data.len() as u8]);
            option[2..].copy_from_slice(data);
            rest = after;
        }
        rest[0] = code::END;
    }
}
