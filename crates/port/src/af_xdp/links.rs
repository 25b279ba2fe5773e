//! What the kernel tells of an interface by rtnetlink: the XDP program that is on it.
//!
//! What lives here: the question, and reading the answer. What does not: what else there is to know
//! about interfaces ([`interface`](crate::interface)).
//!
//! The layouts are those of `rtnetlink(7)`; all numbers are in the order of the machine.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::c_int;

const MESSAGE_HEADER_BYTES: usize = 16;
const LINK_HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
/// Programs of each mode, where there are several: in the driver, in the kernel, in the card.
const IFLA_XDP_OF_MODES: [u16; 3] = [5, 6, 7];
/// The kind of an attribute, without the kernel's marks.
const KIND_MASK: u16 = 0x3fff;
const ANSWER_BYTES_MAX: usize = 32 << 10;

/// The number of the XDP program on an interface, if there is one and the kernel tells.
pub(super) fn program_on(interface: c_int) -> Option<u32> {
    let answer = ask(interface).ok()?;
    program_in(&answer)
}

fn ask(interface: c_int) -> io::Result<Vec<u8>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes three numbers, and no memory.
    let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let question = question(interface);
    // SAFETY: the kernel reads as many bytes as there are.
    let sent = unsafe {
        let bytes = question.as_ptr().cast();
        libc::send(socket.as_raw_fd(), bytes, question.len(), 0)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = vec![0; ANSWER_BYTES_MAX];
    // SAFETY: the kernel writes at most as many bytes as there are.
    let got = unsafe {
        let bytes = answer.as_mut_ptr().cast();
        libc::recv(socket.as_raw_fd(), bytes, answer.len(), 0)
    };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    answer.truncate(got);
    Ok(answer)
}

/// RTM_GETLINK for one interface.
fn question(interface: c_int) -> [u8; MESSAGE_HEADER_BYTES + LINK_HEADER_BYTES] {
    let mut message = [0; MESSAGE_HEADER_BYTES + LINK_HEADER_BYTES];
    let bytes = message.len() as u32;
    message[..4].copy_from_slice(&bytes.to_ne_bytes());
    message[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message[20..24].copy_from_slice(&interface.to_ne_bytes());
    message
}

/// The program in an answer (RTM_NEWLINK).
fn program_in(answer: &[u8]) -> Option<u32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if kind != libc::RTM_NEWLINK {
        return None;
    }
    let facts = answer.get(MESSAGE_HEADER_BYTES + LINK_HEADER_BYTES..)?;
    let (_, xdp) = attributes(facts).find(|(kind, _)| *kind == IFLA_XDP)?;
    let program = |wanted: u16| {
        let (_, value) = attributes(xdp).find(|(kind, _)| *kind == wanted)?;
        let id = u32::from_ne_bytes(value.get(..4)?.try_into().ok()?);
        (id > 0).then_some(id)
    };
    program(IFLA_XDP_PROG_ID).or_else(|| IFLA_XDP_OF_MODES.into_iter().find_map(program))
}

/// The attributes in a row of them, as (kind, value).
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let word = |at: usize| Some(u16::from_ne_bytes(rest.get(at..at + 2)?.try_into().ok()?));
        let (len, kind) = (usize::from(word(0)?), word(2)? & KIND_MASK);
        let value = rest.get(ATTRIBUTE_HEADER_BYTES..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = (ATTRIBUTE_HEADER_BYTES + value.len()) as u16;
        let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn answer(attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE_HEADER_BYTES + LINK_HEADER_BYTES];
        bytes[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        bytes.extend(attributes.concat());
        bytes
    }

    #[test]
    fn a_program_is_found_in_every_mode() {
        let name = attribute(3, b"eth0\0");
        let mode = attribute(2, &[1]);
        for kind in [4, 5, 6, 7] {
            let inside = [mode.clone(), attribute(kind, &77u32.to_ne_bytes())].concat();
            // The kernel marks attributes that hold others.
            let xdp = attribute(IFLA_XDP | 0x8000, &inside);
            assert_eq!(program_in(&answer(&[name.clone(), xdp])), Some(77));
        }
        let none = attribute(IFLA_XDP, &attribute(2, &[0]));
        assert_eq!(program_in(&answer(&[name.clone(), none])), None);
        assert_eq!(program_in(&answer(&[name])), None);
    }

    #[test]
    fn an_answer_that_was_cut_off_is_no_harm() {
        let xdp = attribute(IFLA_XDP, &attribute(4, &77u32.to_ne_bytes()));
        let whole = answer(&[attribute(3, b"eth0\0"), xdp]);
        for len in 0..whole.len() {
            assert_eq!(program_in(&whole[..len]), None, "{len}");
        }
    }

    #[test]
    fn the_loopback_can_be_asked_about() {
        let answer = ask(1).expect("an answer");
        assert_eq!(answer[4..6], libc::RTM_NEWLINK.to_ne_bytes());
    }
}
