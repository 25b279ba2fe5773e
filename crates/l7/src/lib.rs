//! Real applications on the bytes of a flow: TLS, by [rustls], and HTTP/1.1, with heads read by [httparse]. Below all that wants it: emulated
//! clients that log in, and flows of the engine.
//!
//! Nothing here reads a clock, a file or a socket. Keys are drawn by the cryptography of `ring`, from
//! the operating system: two runs of a handshake are never the same bytes.

pub mod http;
pub mod program;
pub mod protocol;
pub mod tls;
