//! Who watches frames: captures, receive queues, capture ports, ports as hosts, Linux nodes, and echo streams.
//!
//! [`RxTaps`] are of one shape ([`RxTap`]), a folder each. In its folder each tap has the requests that
//! it takes and what it answers; [`message`] makes one type of them, for the way between threads.

mod capture;
mod echo;
pub mod emu_channel;
mod endpoint;
pub mod filter;
mod host;
mod list;
mod mac_filter;
mod message;
mod nodes;
mod port;
mod rx_queue;
pub mod rx_tap;
mod service;
mod socket;
mod tap_request;

pub use capture::request::{
    CAPTURE_MEMORY_MAX, CAPTURES_MAX, CaptureAnswer, CaptureRequest, CaptureState,
};
pub use echo::request::{EchoAnswer, EchoRequest};
pub use endpoint::{Endpoint, Endpoints, Format, PacketSink, Wire};
pub use host::request::{HostAnswer, HostRequest};
pub use list::RxTaps;
pub use mac_filter::MacFilter;
pub use message::{Answer, Request};
pub use nodes::request::{
    NodeChange, NodeCounters, NodeEntry, NodeFilter, NodeSocket, NodesAnswer, NodesRequest,
};
pub use port::{PortAnswer, PortRequest, PortState, Reception};
pub use rx_queue::request::{RxQueueAnswer, RxQueueRequest};
pub use rx_tap::RxTap;
pub use service::{ServiceMask, ServiceMode};
pub use socket::request::{SocketAnswer, SocketRequest};
pub use tap_request::TapRequest;
