//! The socket with the frames of a port's Linux nodes.

use std::os::fd::{AsFd, BorrowedFd};

use allosaur_nodes::NodesError;
use allosaur_nodes::namespace::NetworkNamespace;
use allosaur_port::af_packet::NamespaceSocket;

use crate::rx_taps::NodeSocket;

/// The socket, under the name that taps know.
#[derive(Debug)]
struct OuterSocket(NamespaceSocket);

/// Opens the socket of a namespace in which nothing is but the outer ends of nodes.
///
/// # Errors
///
/// In words, what is wrong.
pub fn open_node_socket(outer: &NetworkNamespace) -> Result<Box<dyn NodeSocket>, String> {
    let opened = outer.within(|| {
        NamespaceSocket::open()
            .map_err(|error| NodesError::System("open a packet socket for nodes", error))
    });
    match opened {
        Ok(socket) => Ok(Box::new(OuterSocket(socket))),
        Err(error) => Err(error.to_string()),
    }
}

impl NodeSocket for OuterSocket {
    fn send(&mut self, interface: u32, frame: &[u8]) -> bool {
        self.0.send(interface, frame)
    }

    fn receive(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> bool {
        self.0.receive(each)
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
