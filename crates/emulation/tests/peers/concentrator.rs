//! An access concentrator of PPPoE (RFC 2516), with LCP, PAP or CHAP, and IPCP of one session.

use allosaur_emulation::chap::{self, MsChapV2};

use super::{Peer, frame};

pub(crate) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const SESSION: u16 = 0x1234;
const CHALLENGE: [u8; 16] = *b"an unguessable 1";
const LCP: u16 = 0xc021;
const PAP: u16 = 0xc023;
const CHAP: u16 = 0xc223;
const IPCP: u16 = 0x8021;

/// What it asks for, and what it has seen.
pub(crate) struct Concentrator {
    /// The value of its option of authentication; empty for none.
    pub(crate) authentication: &'static [u8],
    pub(crate) user: &'static str,
    pub(crate) password: &'static str,
    /// The address that it gives.
    pub(crate) address: [u8; 4],
    /// Options of LCP besides, which the host may want changed.
    pub(crate) options: Vec<u8>,
    /// What the host answered to them, by code.
    pub(crate) verdicts: Vec<u8>,
    /// Frames of PPP that it received: protocol, code, identifier, data.
    pub(crate) seen: Vec<(u16, u8, u8, Vec<u8>)>,
    /// Text of the PADT that it received.
    pub(crate) ended: Option<Vec<u8>>,
    /// Whether it says nothing any more.
    pub(crate) is_silent: bool,
    /// Whether its proof of MS-CHAPv2 is a wrong one.
    pub(crate) is_impostor: bool,
}

impl Concentrator {
    pub(crate) fn new(authentication: &'static [u8]) -> Concentrator {
        Concentrator {
            authentication,
            user: "u",
            password: "p",
            address: [10, 0, 0, 50],
            options: Vec::new(),
            verdicts: Vec::new(),
            seen: Vec::new(),
            ended: None,
            is_silent: false,
            is_impostor: false,
        }
    }

    /// A frame of the session.
    pub(crate) fn session(
        to: &[u8],
        protocol: u16,
        code: u8,
        identifier: u8,
        data: &[u8],
    ) -> Vec<u8> {
        let length = 4 + data.len() as u16;
        let header = [0x11, 0, (SESSION >> 8) as u8, SESSION as u8];
        frame(
            to,
            &MAC,
            0x8864,
            &[
                &header,
                &(length + 2).to_be_bytes(),
                &protocol.to_be_bytes(),
                &[code, identifier],
                &length.to_be_bytes(),
                data,
            ],
        )
    }

    /// A frame of discovery.
    pub(crate) fn discovery(to: &[u8], code: u8, session: u16, tags: &[u8]) -> Vec<u8> {
        let length = (tags.len() as u16).to_be_bytes();
        let header = [0x11, code];
        frame(
            to,
            &MAC,
            0x8863,
            &[&header, &session.to_be_bytes(), &length, tags],
        )
    }

    fn request(&self) -> Vec<u8> {
        let mut options = vec![1, 4, 0x05, 0xd4, 5, 6, 0xaa, 0xbb, 0xcc, 0xdd];
        if !self.authentication.is_empty() {
            options.extend_from_slice(&[3, 2 + self.authentication.len() as u8]);
            options.extend_from_slice(self.authentication);
        }
        options.extend_from_slice(&self.options);
        options
    }

    fn discover(&mut self, to: &[u8], code: u8, payload: &[u8]) -> Vec<Vec<u8>> {
        let tags = b"\x01\x01\0\0\x01\x02\0\x03ac1\x01\x04\0\x04ckie";
        match code {
            0x09 => {
                assert_eq!(payload, [1, 1, 0, 0]);
                vec![Self::discovery(to, 0x07, 0, tags)]
            }
            0x19 => {
                assert_eq!(payload, tags);
                vec![
                    Self::discovery(to, 0x65, SESSION, tags),
                    Self::session(to, LCP, 1, 1, &self.request()),
                ]
            }
            _ => {
                assert_eq!(code, 0xa7);
                self.ended = Some(payload[4..].to_vec());
                Vec::new()
            }
        }
    }

    /// What it says once LCP is open.
    fn open(&self, to: &[u8]) -> Vec<Vec<u8>> {
        match self.authentication {
            [0xc2, 0x23, _] => {
                let data = [&[16][..], &CHALLENGE, b"concentrator"].concat();
                vec![Self::session(to, CHAP, 1, 3, &data)]
            }
            _ => Vec::new(),
        }
    }

    fn network(to: &[u8]) -> Vec<u8> {
        Self::session(to, IPCP, 1, 1, &[3, 6, 10, 0, 0, 254])
    }

    fn judge_chap(&self, to: &[u8], identifier: u8, data: &[u8]) -> Vec<Vec<u8>> {
        let (is_right, text) = if self.authentication[2] == 5 {
            let expected = chap::md5_response(3, self.password.as_bytes(), &CHALLENGE);
            let expected = [&[16][..], &expected, self.user.as_bytes()].concat();
            (data == expected, String::new())
        } else {
            let theirs = data[1..17].try_into().unwrap();
            let answer = MsChapV2::answer(self.user, self.password, &CHALLENGE, theirs);
            let expected = [&[49][..], &answer.value, self.user.as_bytes()].concat();
            let mut proof = answer.authenticator;
            proof[0] ^= u8::from(self.is_impostor);
            let text = format!("S={}", proof.map(|b| format!("{b:02X}")).concat());
            (data == expected, text)
        };
        match is_right {
            true => vec![
                Self::session(to, CHAP, 3, identifier, text.as_bytes()),
                Self::network(to),
            ],
            false => vec![Self::session(to, CHAP, 4, identifier, b"no")],
        }
    }

    fn control(&mut self, to: &[u8], protocol: u16, packet: &[u8]) -> Vec<Vec<u8>> {
        let (code, identifier) = (packet[0], packet[1]);
        let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        let data = &packet[4..length];
        self.seen.push((protocol, code, identifier, data.to_vec()));
        let reply = |code, data: &[u8]| Self::session(to, protocol, code, identifier, data);
        match (protocol, code) {
            (LCP, 1) => vec![reply(2, data)],
            (LCP, 2) => {
                self.verdicts.push(2);
                assert_eq!(data, self.request());
                self.open(to)
            }
            (LCP, 3 | 4) => {
                self.verdicts.push(code);
                self.options.clear();
                if let Some(at) = data.windows(2).position(|option| option == [3, 5]) {
                    assert_eq!(data[at + 2..at + 5], [0xc2, 0x23, 5]);
                    self.authentication = &[0xc2, 0x23, 5];
                }
                vec![Self::session(to, LCP, 1, identifier + 1, &self.request())]
            }
            (PAP, 1) => {
                let expected = [
                    &[self.user.len() as u8][..],
                    self.user.as_bytes(),
                    &[self.password.len() as u8],
                    self.password.as_bytes(),
                ];
                match data == expected.concat() {
                    true => vec![reply(2, &[0]), Self::network(to)],
                    false => vec![reply(3, b"\x02no")],
                }
            }
            (CHAP, 2) => self.judge_chap(to, identifier, data),
            (IPCP, 1) => {
                let option = [&[3, 6][..], &self.address].concat();
                match data == option {
                    true => vec![reply(2, data)],
                    false => vec![reply(3, &option)],
                }
            }
            (IPCP, 2) => vec![Self::session(to, LCP, 9, 10, b"\xaa\xbb\xcc\xddhi")],
            _ => Vec::new(),
        }
    }
}

impl Peer for Concentrator {
    fn answer(&mut self, received: &[u8]) -> Vec<Vec<u8>> {
        let ether_type = u16::from_be_bytes([received[12], received[13]]);
        if ether_type >> 1 != 0x8863 >> 1 && ether_type != 0x8864 {
            return Vec::new();
        }
        assert!(received.len() >= 60, "frames are padded");
        let to = received[6..12].to_vec();
        let code = received[15];
        let length = usize::from(u16::from_be_bytes([received[18], received[19]]));
        let payload = &received[20..20 + length];
        if self.is_silent {
            return Vec::new();
        }
        if ether_type == 0x8863 {
            return self.discover(&to, code, payload);
        }
        assert_eq!(received[14..18], [0x11, 0, 0x12, 0x34]);
        let protocol = u16::from_be_bytes([payload[0], payload[1]]);
        let answers = self.control(&to, protocol, &payload[2..]);
        // Without authentication, IPCP begins when LCP is open on both sides.
        let opened = protocol == LCP && payload[2] == 2 && self.authentication.is_empty();
        match opened {
            true => [answers, vec![Self::network(&to)]].concat(),
            false => answers,
        }
    }
}
