//! Devices that emulated clients talk to in tests, each written from the standards of its protocol.

#![allow(dead_code, reason = "each test file uses some of them")]

pub(crate) mod authenticator;
pub(crate) mod concentrator;
pub(crate) mod echo;
pub(crate) mod leases;
pub(crate) mod network;
pub(crate) mod router;

use allosaur_emulation::Emulation;
use allosaur_engine::time::Nanos;
use serde_json::{Value, json};

/// A device at the other end of a port.
pub(crate) trait Peer {
    /// What it sends when it receives a frame.
    fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>>;
}

/// Nobody.
pub(crate) struct Silence;

impl Peer for Silence {
    fn answer(&mut self, _frame: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }
}

/// The frames that wait to be sent.
pub(crate) fn sent(emulation: &mut Emulation) -> Vec<(u16, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(transmit) = emulation.poll_transmit() {
        frames.push((transmit.port, transmit.frame.to_vec()));
    }
    frames
}

/// Carries frames to and fro until both sides are silent. Returns those of the emulation.
pub(crate) fn settle(emulation: &mut Emulation, now: Nanos, peer: &mut dyn Peer) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let frames = sent(emulation);
        if frames.is_empty() {
            return all;
        }
        for (port, frame) in frames {
            for answer in peer.answer(&frame) {
                emulation.handle_frame(now, port, &answer);
            }
            all.push(frame);
        }
    }
}

/// Lets the time pass, every timer at its own, and carries frames to and fro. Returns those of the
/// emulation with their times.
pub(crate) fn pass(
    emulation: &mut Emulation,
    until: Nanos,
    peer: &mut dyn Peer,
) -> Vec<(Nanos, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(now) = emulation.poll_timeout().filter(|&timeout| timeout <= until) {
        emulation.handle_timeout(now);
        let frames = settle(emulation, now, peer);
        all.extend(frames.into_iter().map(|frame| (now, frame)));
    }
    emulation.handle_timeout(until);
    all
}

/// An emulation with a namespace of port 1, and clients in it by the last bytes of their MAC
/// addresses, with one plugin each.
pub(crate) fn emulation(plugin: &str, clients: &[(u8, Value)]) -> Emulation {
    let mut emulation = Emulation::new(Default::default(), 0);
    let namespace = json!({"tunnels": [{"vport": 1}]});
    emulation.handle_request(0, "ctx_add", &namespace).unwrap();
    let clients: Vec<Value> = clients
        .iter()
        .map(|(last, init)| json!({"mac": [2, 0, 0, 0, 0, last], "plugs": {plugin: init}}))
        .collect();
    let clients = json!({"tun": {"vport": 1}, "clients": clients});
    emulation
        .handle_request(0, "ctx_client_add", &clients)
        .unwrap();
    emulation
}

/// Asks a method about a client of [`emulation`].
pub(crate) fn ask(emulation: &mut Emulation, now: Nanos, method: &str, last: u8) -> Value {
    let params = json!({
        "tun": {"vport": 1}, "mac": [2, 0, 0, 0, 0, last], "macs": [[2, 0, 0, 0, 0, last]],
    });
    emulation.handle_request(now, method, &params).unwrap()
}

/// A frame: addresses, type, and pieces of what follows.
pub(crate) fn frame(to: &[u8], from: &[u8], ether_type: u16, pieces: &[&[u8]]) -> Vec<u8> {
    [to, from, &ether_type.to_be_bytes(), &pieces.concat()].concat()
}
