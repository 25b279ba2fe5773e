//! What only rtnetlink tells: addresses, kinds of interfaces, XDP programs. See `rtnetlink(7)`.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkInfo, LinkMessage, LinkXdp};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

/// Bytes of an answer that are read at once; the kernel sends at most half of it.
const ANSWER_BYTES: usize = 1 << 16;

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
    let answer = dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let found = answer.iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewAddress(message) => address(message),
        _ => None,
    });
    Ok(found.collect())
}

/// All interfaces.
///
/// # Errors
///
/// What the kernel says.
pub fn links() -> io::Result<Vec<Link>> {
    let answer = dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let found = answer.iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewLink(message) => Some(link(message)),
        _ => None,
    });
    Ok(found.collect())
}

fn address(message: &AddressMessage) -> Option<Address> {
    // On a link between two points the other address is that of the far end.
    let local = message.attributes.iter().find_map(|one| match one {
        AddressAttribute::Local(ip) => Some(*ip),
        _ => None,
    });
    let ip = local.or_else(|| {
        message.attributes.iter().find_map(|one| match one {
            AddressAttribute::Address(ip) => Some(*ip),
            _ => None,
        })
    })?;
    Some(Address {
        index: message.header.index as i32,
        ip,
        prefix_bits: message.header.prefix_len,
    })
}

fn link(message: &LinkMessage) -> Link {
    let mut link = Link {
        index: message.header.index as i32,
        ..Link::default()
    };
    let mut is_elsewhere = false;
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::LinkInfo(infos) => {
                link.kind = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                });
            }
            LinkAttribute::Xdp(facts) => {
                link.xdp = facts.iter().find_map(|fact| match fact {
                    LinkXdp::ProgId(number) => Some(*number).filter(|number| *number != 0),
                    _ => None,
                });
            }
            LinkAttribute::Link(index) => link.peer = Some(*index as i32),
            LinkAttribute::LinkNetNsId(_) => is_elsewhere = true,
            _ => {}
        }
    }
    link.peer = link.peer.filter(|_| !is_elsewhere);
    link
}

/// Asks for all that there are of something.
fn dump(question: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::from(question));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut messages = Vec::new();
    let mut answer = Vec::with_capacity(ANSWER_BYTES);
    loop {
        answer.clear();
        let got = socket.recv(&mut answer, 0)?;
        if got == 0 || take(&answer, &mut messages)? {
            return Ok(messages);
        }
    }
}

/// Takes apart what came at once; what the library cannot read, such as an attribute of a newer kernel, is
/// left out. Returns whether it was the end.
fn take(mut bytes: &[u8], messages: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    while !bytes.is_empty() {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let length = NetlinkBuffer::new_checked(bytes).map_err(invalid)?.length() as usize;
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes);
        match message.map(|message| message.payload) {
            Ok(NetlinkPayload::Done(_)) => return Ok(true),
            Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
            Ok(NetlinkPayload::InnerMessage(message)) => messages.push(message),
            Ok(_) | Err(_) => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::InfoKind;

    use super::*;

    #[test]
    fn this_machine_has_a_loopback() {
        let loopback = addresses().expect("the kernel answers");
        let found = loopback.iter().find(|address| address.ip.is_loopback());
        let found = found.expect("a loopback that is up");
        let links = links().expect("the kernel answers");
        assert!(links.iter().any(|link| link.index == found.index));
    }

    /// Bytes of a message as the kernel sends it.
    fn sent(message: RouteNetlinkMessage) -> Vec<u8> {
        let payload = NetlinkPayload::from(message);
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    fn veth() -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.attributes = vec![
            LinkAttribute::IfName("veth0".to_owned()),
            LinkAttribute::Xdp(vec![LinkXdp::ProgId(42)]),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth)]),
            LinkAttribute::Link(8),
        ];
        message
    }

    #[test]
    fn a_link_tells_its_kind_and_its_program() {
        let expected = Link {
            index: 7,
            kind: Some("veth".to_owned()),
            xdp: Some(42),
            peer: Some(8),
        };
        let mut elsewhere = veth();
        elsewhere.attributes.push(LinkAttribute::LinkNetNsId(0));
        let [here, there] = [veth(), elsewhere].map(RouteNetlinkMessage::NewLink);
        let bytes = [sent(here), sent(there)].concat();
        let mut messages = Vec::new();
        assert!(!take(&bytes, &mut messages).expect("two messages"));
        let found = messages.iter().map(|message| match message {
            RouteNetlinkMessage::NewLink(message) => link(message),
            other => panic!("{other:?}"),
        });
        let peer = None;
        let there = Link {
            peer,
            ..expected.clone()
        };
        assert_eq!(found.collect::<Vec<_>>(), [expected, there]);
    }

    #[test]
    fn the_own_address_of_a_point_to_point_link_is_taken() {
        let mut message = AddressMessage::default();
        (message.header.index, message.header.prefix_len) = (3, 30);
        message.attributes = vec![AddressAttribute::Address([10, 0, 0, 2].into())];
        assert_eq!(
            address(&message).expect("it has one").ip,
            IpAddr::from([10, 0, 0, 2])
        );
        message
            .attributes
            .push(AddressAttribute::Local([10, 0, 0, 1].into()));
        let expected = Address {
            index: 3,
            ip: IpAddr::from([10, 0, 0, 1]),
            prefix_bits: 30,
        };
        assert_eq!(address(&message), Some(expected));
        assert_eq!(address(&AddressMessage::default()), None);
    }

    #[test]
    fn what_is_cut_off_is_an_error_or_left_out() {
        let bytes = sent(RouteNetlinkMessage::NewLink(veth()));
        for cut in 1..bytes.len() {
            let mut messages = Vec::new();
            assert!(take(&bytes[..cut], &mut messages).is_err(), "{cut} bytes");
            assert_eq!(messages, []);
        }
        // The length of its first attribute reaches beyond the message.
        let mut wrong = bytes.clone();
        wrong[32..34].copy_from_slice(&u16::MAX.to_ne_bytes());
        let mut messages = Vec::new();
        let both = [wrong, bytes].concat();
        assert!(!take(&both, &mut messages).expect("the second is right"));
        assert_eq!(messages.len(), 1);
    }
}
