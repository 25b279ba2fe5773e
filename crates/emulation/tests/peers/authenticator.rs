//! A switch that asks for 802.1X, with EAP-MD5 or MS-CHAPv2 (RFC 3748, RFC 2759).

use std::collections::HashMap;

use allosaur_emulation::chap::{self, MsChapV2};

use super::{Peer, frame};

const EAPOL: u16 = 0x888e;
const MAC: [u8; 6] = [2, 0, 0, 0, 0xff, 1];
const CHALLENGE: [u8; 16] = *b"an unguessable 1";

/// The switch. It speaks version 2 of EAPOL.
pub(crate) struct Authenticator {
    /// What users have to know.
    passwords: HashMap<&'static str, &'static str>,
    /// The methods that it knows; it asks for the first, and for another that a supplicant wants.
    methods: &'static [u8],
    /// Who said which name, by MAC address.
    users: HashMap<[u8; 6], String>,
}

impl Authenticator {
    pub(crate) fn new(
        methods: &'static [u8],
        passwords: &[(&'static str, &'static str)],
    ) -> Authenticator {
        Authenticator {
            passwords: passwords.iter().copied().collect(),
            methods,
            users: HashMap::new(),
        }
    }

    /// A request or, without data, the end.
    fn say(&self, to: [u8; 6], code: u8, identifier: u8, data: &[u8]) -> Vec<Vec<u8>> {
        let [high, low] = (4 + data.len() as u16).to_be_bytes();
        let header = [2, 0, high, low, code, identifier, high, low];
        vec![frame(&to, &MAC, EAPOL, &[&header, data])]
    }

    fn challenge(&self, to: [u8; 6], method: u8) -> Vec<Vec<u8>> {
        match method {
            4 => self.say(to, 1, 7, &[&[4, 16][..], &CHALLENGE, b"switch"].concat()),
            26 => {
                let header = [26, 1, 9, 0, 5 + 16 + 6, 16];
                self.say(to, 1, 7, &[&header[..], &CHALLENGE, b"switch"].concat())
            }
            _ => self.say(to, 4, 7, &[]),
        }
    }

    fn judge_mschapv2(&self, to: [u8; 6], password: Option<&str>, data: &[u8]) -> Vec<Vec<u8>> {
        let user = &self.users[&to];
        match data[0] {
            2 => {
                assert_eq!(data[1..5], [9, 0, (4 + 1 + 49 + user.len()) as u8, 49]);
                assert_eq!(&data[5 + 49..], user.as_bytes());
                let theirs = data[5..21].try_into().unwrap();
                let expected =
                    password.map(|word| MsChapV2::answer(user, word, &CHALLENGE, theirs));
                match expected.filter(|expected| data[5..54] == expected.value) {
                    Some(expected) => {
                        let hex: String =
                            expected.authenticator.map(|b| format!("{b:02X}")).concat();
                        let text = format!("S={hex} M=welcome");
                        let header = [26, 3, 9, 0, 4 + text.len() as u8];
                        self.say(to, 1, 8, &[&header[..], text.as_bytes()].concat())
                    }
                    None => {
                        let text = "E=691 R=0 C=00000000000000000000000000000000 V=3 M=no";
                        let header = [26, 4, 9, 0, 4 + text.len() as u8];
                        self.say(to, 1, 8, &[&header[..], text.as_bytes()].concat())
                    }
                }
            }
            3 => self.say(to, 3, 8, &[]),
            _ => self.say(to, 4, 8, &[]),
        }
    }
}

impl Peer for Authenticator {
    fn answer(&mut self, received: &[u8]) -> Vec<Vec<u8>> {
        assert_eq!(received[..6], [1, 0x80, 0xc2, 0, 0, 3]);
        assert_eq!(received[12..14], EAPOL.to_be_bytes());
        let to: [u8; 6] = received[6..12].try_into().unwrap();
        if received[15] == 1 {
            return self.say(to, 1, 1, &[1]);
        }
        let [code, identifier, high, low, method] = received[18..23] else {
            panic!("a response has a type");
        };
        assert_eq!(code, 2);
        assert_eq!(
            received.len(),
            18 + usize::from(u16::from_be_bytes([high, low]))
        );
        let data = &received[23..];
        let user = self.users.get(&to).cloned().unwrap_or_default();
        let password = self.passwords.get(user.as_str()).copied();
        match method {
            1 => {
                let user = String::from_utf8(data.to_vec()).unwrap();
                self.users.insert(to, user);
                self.challenge(to, self.methods[0])
            }
            3 if self.methods[1..].contains(&data[0]) => self.challenge(to, data[0]),
            4 => {
                let expected = password
                    .map(|word| chap::md5_response(identifier, word.as_bytes(), &CHALLENGE));
                let is_right = expected.is_some_and(|expected| data[1..] == expected);
                self.say(to, if is_right { 3 } else { 4 }, identifier, &[])
            }
            26 => self.judge_mschapv2(to, password, data),
            _ => self.say(to, 4, identifier, &[]),
        }
    }
}
