//! What only rtnetlink tells: addresses, kinds of interfaces, XDP programs. See `rtnetlink(7)`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;

use libc::c_int;

use crate::socket;

/// Bytes of an answer that are read at once; the kernel sends at most half of it.
const ANSWER_BYTES: usize = 1 << 16;
/// Bytes of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Bytes of `struct ifinfomsg`.
const LINK_BYTES: usize = 16;
/// Bytes of `struct ifaddrmsg`.
const ADDRESS_BYTES: usize = 8;
/// `IFLA_XDP_PROG_ID` of `if_link.h`.
const IFLA_XDP_PROG_ID: u16 = 4;
/// `IFLA_LINK_NETNSID` of `if_link.h`.
const IFLA_LINK_NETNSID: u16 = 37;
/// `IFLA_INFO_KIND` of `if_link.h`.
const IFLA_INFO_KIND: u16 = 1;
/// The bits of an attribute's type that are its type (`NLA_TYPE_MASK`).
const TYPE_MASK: u16 = 0x3fff;

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The interface.
    pub index: i32,
    /// The address.
    pub ip: IpAddr,
    /// How many of its bits its network has.
    pub prefix_bits: u8,
}

/// What files do not tell of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The interface.
    pub index: i32,
    /// What made it: `veth`, `bridge`; none for hardware.
    pub kind: Option<String>,
    /// The number of its XDP program.
    pub xdp: Option<u32>,
    /// The interface that it belongs to, of veth the other end; none in another network namespace.
    pub peer: Option<i32>,
}

/// The addresses of all interfaces.
///
/// # Errors
///
/// What the kernel says.
pub fn addresses() -> io::Result<Vec<Address>> {
    let answer = ask(libc::RTM_GETADDR, ADDRESS_BYTES)?;
    Ok(answer
        .iter()
        .filter_map(|message| address(message))
        .collect())
}

/// All interfaces.
///
/// # Errors
///
/// What the kernel says.
pub fn links() -> io::Result<Vec<Link>> {
    let answer = ask(libc::RTM_GETLINK, LINK_BYTES)?;
    Ok(answer.iter().filter_map(|message| link(message)).collect())
}

/// `struct ifaddrmsg`, and attributes.
fn address(message: &[u8]) -> Option<Address> {
    let (head, rest) = message.split_at_checked(ADDRESS_BYTES)?;
    let find = |wanted: u16| attributes(rest).find(|(kind, _)| *kind == wanted);
    // On a link between two points the other address is that of the far end.
    let (_, bytes) = find(libc::IFA_LOCAL).or_else(|| find(libc::IFA_ADDRESS))?;
    let ip = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    let index = i32::from_ne_bytes(head[4..8].try_into().ok()?);
    Some(Address {
        index,
        ip,
        prefix_bits: head[1],
    })
}

/// `struct ifinfomsg`, and attributes.
fn link(message: &[u8]) -> Option<Link> {
    let (head, rest) = message.split_at_checked(LINK_BYTES)?;
    let mut link = Link {
        index: i32::from_ne_bytes(head[4..8].try_into().ok()?),
        ..Link::default()
    };
    let is_elsewhere = attributes(rest).any(|(kind, _)| kind == IFLA_LINK_NETNSID);
    for (kind, bytes) in attributes(rest) {
        let within = |wanted: u16| attributes(bytes).find(|(kind, _)| *kind == wanted);
        if kind == libc::IFLA_LINKINFO {
            let text = within(IFLA_INFO_KIND).map(|(_, text)| text);
            let text = text.and_then(|text| std::str::from_utf8(text).ok());
            link.kind = text.map(|text| text.trim_end_matches('\0').to_owned());
        } else if kind == libc::IFLA_XDP {
            let number = within(IFLA_XDP_PROG_ID).and_then(|(_, n)| n.try_into().ok());
            link.xdp = number.map(u32::from_ne_bytes).filter(|&number| number != 0);
        } else if kind == libc::IFLA_LINK && !is_elsewhere {
            link.peer = bytes.try_into().ok().map(i32::from_ne_bytes);
        }
    }
    Some(link)
}

/// Type and value of each `struct nlattr`.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..usize::from(length))?;
        bytes = bytes
            .get(usize::from(length).next_multiple_of(4)..)
            .unwrap_or(&[]);
        Some((kind & TYPE_MASK, value))
    })
}

/// Asks for all that there are of something. Gives what stands behind the header of each answer.
fn ask(question: u16, request_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
    let socket = socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let mut request = vec![0; HEADER_BYTES + request_bytes];
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&question.to_ne_bytes());
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: the kernel reads as many bytes as there are.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            request.as_ptr().cast(),
            request.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut messages = Vec::new();
    let mut answer = vec![0; ANSWER_BYTES];
    loop {
        // SAFETY: the kernel writes at most as many bytes as there are.
        let got = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                answer.as_mut_ptr().cast(),
                answer.len(),
                0,
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        if got == 0 || take(&answer[..got], &mut messages)? {
            return Ok(messages);
        }
    }
}

/// Takes apart what came at once. Returns whether it was the end.
fn take(mut bytes: &[u8], messages: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    while let Some(header) = bytes.get(..HEADER_BYTES) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = c_int::from(u16::from_ne_bytes([header[4], header[5]]));
        let Some(body) = bytes.get(HEADER_BYTES..length) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match kind {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => return Err(io::ErrorKind::Other.into()),
            _ => messages.push(body.to_vec()),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute with its length, padded.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn this_machine_has_a_loopback() {
        let loopback = addresses().expect("the kernel answers");
        let found = loopback.iter().find(|address| address.ip.is_loopback());
        let found = found.expect("a loopback that is up");
        let links = links().expect("the kernel answers");
        assert!(links.iter().any(|link| link.index == found.index));
    }

    #[test]
    fn a_link_tells_its_kind_and_its_program() {
        let mut message = vec![0; LINK_BYTES];
        message[4..8].copy_from_slice(&7i32.to_ne_bytes());
        message.extend(attribute(libc::IFLA_IFNAME, b"veth0\0"));
        let xdp = [
            attribute(2, &[1]),
            attribute(IFLA_XDP_PROG_ID, &42u32.to_ne_bytes()),
        ]
        .concat();
        message.extend(attribute(libc::IFLA_XDP | 0x8000, &xdp));
        message.extend(attribute(
            libc::IFLA_LINKINFO,
            &attribute(IFLA_INFO_KIND, b"veth\0"),
        ));
        message.extend(attribute(libc::IFLA_LINK, &8i32.to_ne_bytes()));
        let expected = Link {
            index: 7,
            kind: Some("veth".to_owned()),
            xdp: Some(42),
            peer: Some(8),
        };
        assert_eq!(link(&message), Some(expected.clone()));
        let mut elsewhere = message.clone();
        elsewhere.extend(attribute(IFLA_LINK_NETNSID, &0i32.to_ne_bytes()));
        let peer = None;
        assert_eq!(link(&elsewhere), Some(Link { peer, ..expected }));
        for cut in 0..message.len() {
            // What is cut off is left out, and nothing breaks.
            let _ = link(&message[..cut]);
        }
    }

    #[test]
    fn the_own_address_of_a_point_to_point_link_is_taken() {
        let mut message = vec![0; ADDRESS_BYTES];
        message[1] = 30;
        message[4..8].copy_from_slice(&3i32.to_ne_bytes());
        message.extend(attribute(libc::IFA_ADDRESS, &[10, 0, 0, 2]));
        message.extend(attribute(libc::IFA_LOCAL, &[10, 0, 0, 1]));
        let expected = Address {
            index: 3,
            ip: IpAddr::from([10, 0, 0, 1]),
            prefix_bits: 30,
        };
        assert_eq!(address(&message), Some(expected));
        assert_eq!(address(&message[..6]), None);
    }
}
