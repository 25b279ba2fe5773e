//! What is decided about an interface while a port is on it: what it lets through beside what is
//! addressed to it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use libc::{c_int, c_ushort};

use super::{Interface, InterfaceQuery, LinkState, counters};
use crate::claim::Claim;
use crate::socket;

/// An interface, for who decides about it: what it lets through beside what is addressed to it,
/// and whether it has a link.
///
/// The kernel counts who wants what; when this is dropped, the interface is as it was.
#[derive(Debug)]
pub struct InterfaceControl {
    name: String,
    socket: OwnedFd,
    link: Arc<LinkQuery>,
    index: c_int,
    promiscuous: bool,
    multicast: bool,
    /// Kept from others for as long as this lives.
    _claim: Option<Claim>,
}

/// Tells how the link of an interface is, to any thread.
#[derive(Debug)]
pub struct LinkQuery {
    query: InterfaceQuery,
    index: c_int,
}

impl LinkQuery {
    /// How it is now: a few system calls.
    pub fn link(&self) -> LinkState {
        self.query.link(self.index)
    }
}

impl InterfaceControl {
    /// Begins to decide about an interface, and keeps the claim on it.
    ///
    /// # Errors
    ///
    /// What the kernel says when it gives no packet socket: the capability CAP_NET_RAW may be
    /// missing.
    pub fn open(interface: &Interface, claim: Option<Claim>) -> io::Result<InterfaceControl> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        Ok(InterfaceControl {
            name: interface.name.clone(),
            socket: socket::open(libc::AF_PACKET, kind, 0)?,
            link: Arc::new(LinkQuery {
                query: InterfaceQuery::new(&interface.name)?,
                index: interface.index,
            }),
            index: interface.index,
            promiscuous: false,
            multicast: false,
            _claim: claim,
        })
    }

    /// How its link is.
    pub fn link(&self) -> LinkState {
        self.link.link()
    }

    /// What tells others how its link is.
    pub fn link_query(&self) -> Arc<LinkQuery> {
        Arc::clone(&self.link)
    }

    /// Its MTU now; `None` when it is gone.
    pub fn mtu_bytes(&self) -> Option<usize> {
        let is_final = self.link().is_final();
        (!is_final).then(|| self.link.query.mtu_bytes().ok())?
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
        socket::set(&self.socket, libc::SOL_PACKET, option, &request)
    }
}
