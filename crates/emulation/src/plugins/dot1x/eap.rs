//! EAPOL (IEEE 802.1X-2020 section 11) and the EAP in it (RFC 3748), as a supplicant reads and writes them.

use std::ops::RangeInclusive;

use crate::chap::{CHALLENGE_BYTES, MD5_BYTES, RESPONSE_BYTES};

/// Versions of EAPOL that are understood; ours is the last until an authenticator speaks another.
pub(super) const VERSIONS: RangeInclusive<u8> = 1..=3;

/// Bytes of the header of EAPOL, and of the one of EAP.
const HEADER_BYTES: usize = 4;
/// Bytes of the header of MS-CHAPv2 in EAP: operation, identifier, length.
const MSCHAPV2_HEADER_BYTES: usize = 4;

const EAPOL_EAP: u8 = 0;
const EAPOL_START: u8 = 1;
const CODE_RESPONSE: u8 = 2;

/// Methods of EAP, by their number in requests and responses.
pub(super) mod method {
    pub(in super::super) const IDENTITY: u8 = 1;
    pub(in super::super) const NOTIFICATION: u8 = 2;
    pub(in super::super) const NAK: u8 = 3;
    pub(in super::super) const MD5: u8 = 4;
    pub(in super::super) const TLS: u8 = 13;
    pub(in super::super) const TTLS: u8 = 21;
    pub(in super::super) const PEAP: u8 = 25;
    pub(in super::super) const MSCHAPV2: u8 = 26;
}

/// Operations of MS-CHAPv2 in EAP (draft-kamath-pppext-eap-mschapv2 section 2).
pub(super) mod operation {
    pub(in super::super) const CHALLENGE: u8 = 1;
    pub(in super::super) const RESPONSE: u8 = 2;
    pub(in super::super) const SUCCESS: u8 = 3;
    pub(in super::super) const FAILURE: u8 = 4;
}

/// What an authenticator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packet<'f> {
    /// It asks; `data` is what follows the type.
    Request {
        identifier: u8,
        method: u8,
        data: &'f [u8],
    },
    /// The supplicant is in.
    Success,
    /// It is not.
    Failure,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Lengths do not fit one another.
    Length,
    /// A version of EAPOL of which nothing is known.
    Version,
    /// EAPOL, but nothing of EAP, such as another supplicant's start.
    NotEap,
    /// No room for a header of EAP, or for the type of a request.
    Short,
    /// A code that no authenticator sends.
    Code,
}

/// Reads what follows the Ethernet header: the version of EAPOL, and the packet of EAP. What lies
/// behind the length of EAPOL is padding.
pub(super) fn parse(bytes: &[u8]) -> Result<(u8, Packet<'_>), Unreadable> {
    let (header, rest) = bytes
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or(Unreadable::Length)?;
    let [version, kind, high, low] = *header;
    if !VERSIONS.contains(&version) {
        return Err(Unreadable::Version);
    }
    if kind != EAPOL_EAP {
        return Err(Unreadable::NotEap);
    }
    let body = rest.get(..usize::from(u16::from_be_bytes([high, low])));
    let body = body.ok_or(Unreadable::Length)?;
    let header = body
        .first_chunk::<HEADER_BYTES>()
        .ok_or(Unreadable::Short)?;
    let [code, identifier, high, low] = *header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let data = body.get(HEADER_BYTES..length).ok_or(Unreadable::Length)?;
    let packet = match code {
        1 => {
            let (&method, data) = data.split_first().ok_or(Unreadable::Short)?;
            Packet::Request {
                identifier,
                method,
                data,
            }
        }
        3 => Packet::Success,
        4 => Packet::Failure,
        _ => return Err(Unreadable::Code),
    };
    Ok((version, packet))
}

/// The challenge in a request of EAP-MD5; its length is that of the value, and a name may follow.
pub(super) fn md5_challenge(data: &[u8]) -> Option<&[u8]> {
    let (&size, rest) = data.split_first()?;
    rest.get(..usize::from(size))
        .filter(|value| !value.is_empty())
}

/// A request of MS-CHAPv2: operation, identifier, and what follows its header.
pub(super) fn mschapv2(data: &[u8]) -> Option<(u8, u8, &[u8])> {
    let (header, _) = data.split_first_chunk::<MSCHAPV2_HEADER_BYTES>()?;
    let [operation, identifier, high, low] = *header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let rest = data.get(MSCHAPV2_HEADER_BYTES..length)?;
    Some((operation, identifier, rest))
}

/// The challenge in what follows the header of MS-CHAPv2; a name may follow it.
pub(super) fn mschapv2_challenge(rest: &[u8]) -> Option<&[u8; CHALLENGE_BYTES]> {
    let (&size, rest) = rest.split_first()?;
    let challenge = rest.first_chunk()?;
    (usize::from(size) == CHALLENGE_BYTES).then_some(challenge)
}

/// How many methods there are.
const METHODS_MAX: usize = 5;

/// Methods in order of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Methods {
    list: [u8; METHODS_MAX],
    count: u8,
}

impl Methods {
    /// Adds one, behind those that are there. Whether it was not among them.
    pub(super) fn add(&mut self, method: u8) -> bool {
        let is_new = !self.as_slice().contains(&method) && self.as_slice().len() < METHODS_MAX;
        if is_new {
            self.list[usize::from(self.count)] = method;
            self.count += 1;
        }
        is_new
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.list[..usize::from(self.count)]
    }

    /// What a refusal says that is wanted: a zero for none (RFC 3748 section 5.3.1).
    fn wanted(&self) -> &[u8] {
        match self.count {
            0 => &[0],
            _ => self.as_slice(),
        }
    }
}

impl FromIterator<u8> for Methods {
    fn from_iter<I: IntoIterator<Item = u8>>(methods: I) -> Methods {
        let mut all = Methods::default();
        for method in methods {
            all.add(method);
        }
        all
    }
}

/// What a supplicant says. The name is not in it; it is given when it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Asks the authenticator to begin.
    Start,
    /// Answers the request of this identifier.
    Response { identifier: u8, answer: Answer },
}

/// What is in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The name of the user.
    Identity,
    /// A text for people was received.
    Notification,
    /// The method is not wanted, these would be.
    Nak(Methods),
    /// Answers the challenge of EAP-MD5.
    Md5([u8; MD5_BYTES]),
    /// Answers the challenge of MS-CHAPv2 that has this identifier.
    MsChapV2(u8, [u8; RESPONSE_BYTES]),
    /// Confirms how MS-CHAPv2 ended, by its operation.
    MsChapV2End(u8),
    /// A fragment of a method over TLS: its flags, the length of the message where that is said,
    /// and bytes of it.
    Tls {
        method: u8,
        flags: u8,
        total: Option<u32>,
        data: Box<[u8]>,
    },
}

impl Message {
    /// Bytes that [`Message::emit`] writes.
    pub(super) fn buffer_len(&self, user: &str) -> usize {
        let Message::Response { answer, .. } = self else {
            return HEADER_BYTES;
        };
        let data = match answer {
            Answer::Identity => user.len(),
            Answer::Notification => 0,
            Answer::Nak(methods) => methods.wanted().len(),
            Answer::MsChapV2End(_) => 1,
            Answer::Tls { total, data, .. } => 1 + total.map_or(0, |_| 4) + data.len(),
            Answer::Md5(_) => 1 + MD5_BYTES,
            Answer::MsChapV2(..) => MSCHAPV2_HEADER_BYTES + 1 + RESPONSE_BYTES + user.len(),
        };
        2 * HEADER_BYTES + 1 + data
    }

    /// Writes what follows the Ethernet header.
    ///
    /// # Panics
    /// When there are fewer than [`Message::buffer_len`] bytes.
    pub(super) fn emit(&self, version: u8, user: &str, bytes: &mut [u8]) {
        let length = self.buffer_len(user);
        let length_after = |header: usize| ((length - header) as u16).to_be_bytes();
        let (header, body) = bytes[..length].split_at_mut(HEADER_BYTES);
        let [high, low] = length_after(HEADER_BYTES);
        let Message::Response { identifier, answer } = self else {
            header.copy_from_slice(&[version, EAPOL_START, high, low]);
            return;
        };
        header.copy_from_slice(&[version, EAPOL_EAP, high, low]);
        body[..HEADER_BYTES].copy_from_slice(&[CODE_RESPONSE, *identifier, high, low]);
        let (method, data) = body[HEADER_BYTES..].split_at_mut(1);
        method[0] = answer.method();
        match answer {
            Answer::Identity => data.copy_from_slice(user.as_bytes()),
            Answer::Notification => {}
            Answer::Nak(methods) => data.copy_from_slice(methods.wanted()),
            Answer::MsChapV2End(operation) => data[0] = *operation,
            Answer::Tls {
                flags,
                total,
                data: fragment,
                ..
            } => {
                data[0] = *flags;
                let (length, rest) = data[1..].split_at_mut(total.map_or(0, |_| 4));
                if let Some(total) = total {
                    length.copy_from_slice(&total.to_be_bytes());
                }
                rest.copy_from_slice(fragment);
            }
            Answer::Md5(value) => {
                data[0] = MD5_BYTES as u8;
                data[1..].copy_from_slice(value);
            }
            Answer::MsChapV2(identifier, value) => {
                let [high, low] = length_after(2 * HEADER_BYTES + 1);
                data[..4].copy_from_slice(&[operation::RESPONSE, *identifier, high, low]);
                data[4] = RESPONSE_BYTES as u8;
                data[5..][..RESPONSE_BYTES].copy_from_slice(value);
                data[5 + RESPONSE_BYTES..].copy_from_slice(user.as_bytes());
            }
        }
    }
}

impl Answer {
    /// The type of the response.
    pub(super) fn method(&self) -> u8 {
        match self {
            Answer::Identity => method::IDENTITY,
            Answer::Notification => method::NOTIFICATION,
            Answer::Nak(_) => method::NAK,
            Answer::Md5(_) => method::MD5,
            Answer::MsChapV2(..) | Answer::MsChapV2End(_) => method::MSCHAPV2,
            Answer::Tls { method, .. } => *method,
        }
    }
}
