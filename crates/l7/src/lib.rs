//! Real applications on the bytes of a session: TLS, by [rustls]. What drives them defines a trait,
//! which is implemented here; bytes and the time come in, bytes go out.
//!
//! Nothing here reads a clock, a file or a socket. Keys are drawn by the cryptography of `ring`, from
//! the operating system: two runs of a handshake are never the same bytes.

pub mod tls;
