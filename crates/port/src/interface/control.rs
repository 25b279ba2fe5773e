//! What is decided about an interface while a port is on it.

use std::io;

use libc::{c_int, c_ushort};

use super::{Asker, Interface, LinkState, counters};
use crate::af_packet::socket::PacketSocket;
use crate::claim::Claim;

/// An interface, for who decides about it: what it lets through beside what is addressed to it,
/// and whether it has a link.
///
/// The kernel counts who wants what; when this is dropped, the interface is as it was.
#[derive(Debug)]
pub struct InterfaceControl {
    name: String,
    socket: PacketSocket,
    asker: Asker,
    index: c_int,
    promiscuous: bool,
    multicast: bool,
    /// Kept from others for as long as this lives.
    _claim: Option<Claim>,
}

impl InterfaceControl {
    pub(crate) fn open(interface: &Interface) -> io::Result<InterfaceControl> {
        Ok(InterfaceControl {
            name: interface.name.clone(),
            socket: PacketSocket::open()?,
            asker: Asker::new(&interface.name)?,
            index: interface.index,
            promiscuous: false,
            multicast: false,
            _claim: None,
        })
    }

    /// Keeps the claim on the interface.
    pub(crate) fn claimed_by(self, claim: Claim) -> InterfaceControl {
        InterfaceControl {
            _claim: Some(claim),
            ..self
        }
    }

    /// How its link is.
    pub fn link(&self) -> LinkState {
        self.asker.link(self.index)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel counts of the interface: names and values.
    pub fn counters(&self) -> Vec<(String, u64)> {
        counters::read(&self.name)
    }

    /// Lets frames to other stations through, and those to all multicast addresses.
    pub fn set_receive(&mut self, promiscuous: bool, multicast: bool) -> io::Result<()> {
        if self.promiscuous != promiscuous {
            self.change(libc::PACKET_MR_PROMISC, promiscuous)?;
            self.promiscuous = promiscuous;
        }
        if self.multicast != multicast {
            self.change(libc::PACKET_MR_ALLMULTI, multicast)?;
            self.multicast = multicast;
        }
        Ok(())
    }

    fn change(&self, kind: c_int, on: bool) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: self.index,
            mr_type: kind as c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let option = match on {
            true => libc::PACKET_ADD_MEMBERSHIP,
            false => libc::PACKET_DROP_MEMBERSHIP,
        };
        self.socket.set(option, &request)
    }
}
