//! The messages between control and the receive thread: those of each tap, in one type that a ring
//! carries. What they say is in the folder of their tap.

use super::capture::request::CaptureRequest;
use super::echo::request::EchoRequest;
use super::host::request::HostRequest;
use super::nodes::request::NodesRequest;
use super::port::PortRequest;
use super::rx_queue::request::RxQueueRequest;
use super::socket::request::SocketRequest;
use super::tap_request::TapRequest;
use crate::emulation::{EmulationAnswer, EmulationRequest};

/// Makes [`Request`] and [`Answer`] of a list of taps, a variant each.
macro_rules! messages {
    ($($(#[$doc:meta])+ $tap:ident: $request:ty,)+) => {
        /// What the receive thread is asked.
        #[derive(Debug)]
        pub enum Request {
            $($(#[$doc])+ $tap($request),)+
        }

        /// What the receive thread answers.
        #[derive(Debug, PartialEq)]
        pub enum Answer {
            $($(#[$doc])+ $tap(<$request as TapRequest>::Answer),)+
            /// There is no tap that takes such requests.
            NoTap,
        }

        impl Request {
            /// See [`TapRequest::looks_back`].
            pub fn looks_back(&self) -> bool {
                match self {
                    $(Request::$tap(request) => request.looks_back(),)+
                }
            }
        }

        $(
            impl From<$request> for Request {
                fn from(request: $request) -> Request {
                    Request::$tap(request)
                }
            }

            impl From<<$request as TapRequest>::Answer> for Answer {
                fn from(answer: <$request as TapRequest>::Answer) -> Answer {
                    Answer::$tap(answer)
                }
            }

            impl TryFrom<Answer> for <$request as TapRequest>::Answer {
                type Error = Answer;

                fn try_from(answer: Answer) -> Result<Self, Answer> {
                    match answer {
                        Answer::$tap(answer) => Ok(answer),
                        other => Err(other),
                    }
                }
            }
        )+
    };
}

messages! {
    /// How a port receives, and what watches it.
    Port: PortRequest,
    /// Captures.
    Capture: CaptureRequest,
    /// Receive queues.
    RxQueue: RxQueueRequest,
    /// Sockets that ports are joined to.
    Socket: SocketRequest,
    /// Ports as hosts.
    Host: HostRequest,
    /// Linux nodes.
    Nodes: NodesRequest,
    /// Echo streams beside flows.
    Echo: EchoRequest,
    /// Emulated clients, which are no tap: data threads answer for them.
    Emulation: EmulationRequest,
}

impl TapRequest for EmulationRequest {
    type Answer = EmulationAnswer;
}
