//! A switch with an EAP server: EAP-TLS, PEAP and EAP-TTLS, with the TLS of rustls.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::Arc;

use allosaur_emulation::chap::MsChapV2;
use rustls::{ProtocolVersion, ServerConfig, ServerConnection};

pub(crate) const TLS: u8 = 13;
pub(crate) const TTLS: u8 = 21;
pub(crate) const PEAP: u8 = 25;

const USER: &str = "alice";
const PASSWORD: &str = "secret";
const CHALLENGE: [u8; 16] = *b"sixteen of bytes";
/// Bytes of a fragment that it sends.
const FRAGMENT: usize = 400;

/// What it does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Sends every request twice.
    Repeats,
    /// Does not prove that it knows the password.
    ProvesNothing,
    /// Lets in everybody as soon as the handshake begins.
    SucceedsEarly,
}

/// The authenticator, with a login for each MAC address.
pub(crate) struct Switch {
    config: Arc<ServerConfig>,
    method: u8,
    fault: Fault,
    logins: HashMap<[u8; 6], Login>,
    /// Whom it let in, and whom not.
    pub(crate) results: HashMap<[u8; 6], bool>,
    /// The names that were said outside of tunnels.
    pub(crate) names: HashMap<[u8; 6], Vec<u8>>,
    /// Requests that were refused, and what was wanted instead.
    pub(crate) wanted: Vec<Vec<u8>>,
}

struct Login {
    tls: ServerConnection,
    identifier: u8,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    sent: usize,
    /// What comes next inside the tunnel.
    step: u8,
    done: Option<bool>,
}

impl Switch {
    pub(crate) fn new(config: Arc<ServerConfig>, method: u8, fault: Fault) -> Switch {
        Switch {
            config,
            method,
            fault,
            logins: HashMap::new(),
            results: HashMap::new(),
            names: HashMap::new(),
            wanted: Vec::new(),
        }
    }

    /// What it sends when it receives a frame.
    pub(crate) fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let mac: [u8; 6] = frame[6..12].try_into().unwrap();
        let (kind, body) = (frame[15], &frame[18..]);
        let packets = match kind {
            1 => vec![packet(1, 1, &[1])],
            _ => self.hear(mac, body),
        };
        let frames = packets.iter().map(|packet| {
            let header = [&mac[..], &[2, 0, 0, 0, 0xff, 1, 0x88, 0x8e, 2, 0]].concat();
            let length = (packet.len() as u16).to_be_bytes();
            [&header[..], &length, packet].concat()
        });
        let mut frames: Vec<_> = frames.collect();
        if self.fault == Fault::Repeats {
            frames = frames
                .iter()
                .flat_map(|frame| vec![frame.clone(); 2])
                .collect();
        }
        frames
    }

    fn hear(&mut self, mac: [u8; 6], body: &[u8]) -> Vec<Vec<u8>> {
        let (identifier, data) = (body[1], &body[5..]);
        match body[4] {
            1 => {
                if self.logins.contains_key(&mac) {
                    return vec![];
                }
                self.names.insert(mac, data.to_vec());
                let tls = ServerConnection::new(Arc::clone(&self.config)).unwrap();
                let login = Login {
                    tls,
                    identifier: identifier + 1,
                    incoming: vec![],
                    outgoing: vec![],
                    sent: 0,
                    step: 0,
                    done: None,
                };
                self.logins.insert(mac, login);
                vec![packet(1, identifier + 1, &[self.method, 0x21])]
            }
            3 => {
                self.wanted.push(data.to_vec());
                self.method = data[0];
                vec![packet(1, identifier + 1, &[self.method, 0x20])]
            }
            method if method == self.method => self.go_on(mac, identifier, data),
            other => panic!("method {other}"),
        }
    }

    /// Takes a fragment, and sends one or the end.
    fn go_on(&mut self, mac: [u8; 6], identifier: u8, data: &[u8]) -> Vec<Vec<u8>> {
        let Some(login) = self.logins.get_mut(&mac) else {
            return vec![];
        };
        if identifier.wrapping_add(1) == login.identifier && login.step > 0 {
            return vec![];
        }
        if self.fault == Fault::SucceedsEarly {
            return vec![packet(3, identifier, &[])];
        }
        login.identifier = identifier.wrapping_add(1);
        login.step = login.step.max(1);
        let (flags, data) = data.split_first().unwrap();
        let data = &data[if flags & 0x80 == 0 { 0 } else { 4 }..];
        login.incoming.extend_from_slice(data);
        if flags & 0x40 == 0 && login.sent >= login.outgoing.len() {
            login.outgoing.clear();
            login.sent = 0;
            let message = std::mem::take(&mut login.incoming);
            login.handle_message(self.method, &message, self.fault);
            if let Some(is_in) = login.done.filter(|_| login.outgoing.is_empty()) {
                self.results.insert(mac, is_in);
                self.logins.remove(&mac);
                return vec![packet(if is_in { 3 } else { 4 }, identifier, &[])];
            }
        }
        let all = &login.outgoing[login.sent..];
        let piece = &all[..all.len().min(FRAGMENT)];
        let more = piece.len() < all.len();
        let mut data = vec![self.method, if more { 0x40 } else { 0 }];
        if more && login.sent == 0 {
            data[1] |= 0x80;
            data.extend_from_slice(&(all.len() as u32).to_be_bytes());
        }
        data.extend_from_slice(piece);
        login.sent += piece.len();
        vec![packet(1, login.identifier, &data)]
    }
}

fn packet(code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    let length = (4 + data.len() as u16).to_be_bytes();
    [&[code, identifier, length[0], length[1]], data].concat()
}

impl Login {
    fn handle_message(&mut self, method: u8, mut message: &[u8], fault: Fault) {
        let was_handshaking = self.tls.is_handshaking();
        let mut said = vec![];
        while !message.is_empty() {
            self.tls.read_tls(&mut message).unwrap();
            if self.tls.process_new_packets().is_err() {
                self.done = Some(false);
                break;
            }
        }
        let _ = self.tls.reader().read_to_end(&mut said);
        if self.done.is_none() && !self.tls.is_handshaking() {
            let is_13 = self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
            match method {
                TLS if was_handshaking && is_13 => self.say(&[0]),
                TLS => self.done = Some(true),
                PEAP => self.peap(&said, fault),
                // The client may begin with its end of the handshake, or after it.
                _ if !said.is_empty() || self.step > 1 => self.ttls(&said, fault),
                _ => {}
            }
        }
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.outgoing).unwrap();
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.tls.writer().write_all(bytes).unwrap();
    }

    fn peap(&mut self, said: &[u8], fault: Fault) {
        self.step += 1;
        match (self.step, said) {
            // The handshake's end is acknowledged first where the server ends it.
            (2, []) | (3, []) if self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_2) => {
                if self.step == 3 {
                    self.say(&[1]);
                    self.step = 3;
                }
            }
            (_, []) => {
                self.say(&[1]);
                self.step = 3;
            }
            (_, [1, name @ ..]) => {
                assert_eq!(name, USER.as_bytes());
                self.say(&[&[26, 1, 9, 0, 21 + 2, 16], &CHALLENGE[..], b"me"].concat());
            }
            (_, [26, 2, _, _, _, 49, value @ ..]) => {
                let right = right(&CHALLENGE, value[..16].try_into().unwrap());
                if value[..49] != right.value {
                    self.say(b"\x1a\x04\x09\x00\x09E=691");
                    return;
                }
                let proof = proof(&right, fault);
                let length = [0, 4 + proof.len() as u8];
                self.say(&[&[26, 3, 9], &length[..], proof.as_bytes()].concat());
            }
            (_, [26, 3]) => self.say(&[1, 77, 0, 11, 33, 0x80, 3, 0, 2, 0, 1]),
            (_, [26, 4]) => self.say(&[1, 77, 0, 11, 33, 0x80, 3, 0, 2, 0, 2]),
            (_, [2, 77, 0, 11, 33, 0x80, 3, 0, 2, 0, result]) => self.done = Some(*result == 1),
            other => panic!("inside PEAP: {other:?}"),
        }
    }

    fn ttls(&mut self, said: &[u8], fault: Fault) {
        self.step += 1;
        if said.is_empty() {
            self.done = Some(true);
            return;
        }
        let avps = avps(said);
        assert_eq!(avps[0], (1, USER.as_bytes().to_vec()));
        if avps[1].0 == 2 {
            let password = avps[1].1.clone();
            assert_eq!(password.len() % 16, 0);
            let length = password.iter().position(|&byte| byte == 0).unwrap();
            self.done = Some(&password[..length] == PASSWORD.as_bytes());
            return;
        }
        let mut challenge = [0; 17];
        self.tls
            .export_keying_material(&mut challenge[..], b"ttls challenge", None)
            .unwrap();
        assert_eq!(avps[1], (11, challenge[..16].to_vec()));
        let response = &avps[2].1;
        assert_eq!((avps[2].0, response[0]), (25, challenge[16]));
        let theirs = challenge[..16].try_into().unwrap();
        let right = right(theirs, response[2..18].try_into().unwrap());
        if response[2..] != right.value[..48] {
            self.done = Some(false);
            return;
        }
        let text = [&[challenge[16]], proof(&right, fault).as_bytes()].concat();
        let length = 12 + text.len() as u8;
        let header = [0, 0, 0, 26, 0xc0, 0, 0, length, 0, 0, 1, 55];
        self.say(&[&header[..], &text, &[0]].concat());
    }
}

fn right(theirs: &[u8; 16], ours: &[u8; 16]) -> MsChapV2 {
    MsChapV2::answer(USER, PASSWORD, theirs, ours)
}

fn proof(right: &MsChapV2, fault: Fault) -> String {
    let mut proof = right.authenticator;
    proof[0] ^= u8::from(fault == Fault::ProvesNothing);
    format!("S={}", proof.map(|byte| format!("{byte:02X}")).concat())
}

/// Code and data of AVPs.
fn avps(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let mut all = vec![];
    while !bytes.is_empty() {
        let code = u32::from_be_bytes(bytes[..4].try_into().unwrap());
        let length = usize::from(bytes[6]) << 8 | usize::from(bytes[7]);
        let header = if bytes[4] & 0x80 == 0 { 8 } else { 12 };
        all.push((code, bytes[header..length].to_vec()));
        bytes = &bytes[length.next_multiple_of(4)..];
    }
    all
}
