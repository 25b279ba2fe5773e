//! The thread that ZeroMQ asks about everyone who connects to a guarded socket (RFC 27/ZAP).

use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::access::{AccessList, Admission};

/// Where ZeroMQ asks, in each context.
const ENDPOINT: &str = "inproc://zeromq.zap.01";
const VERSION: &[u8] = b"1.0";
/// Bytes of a name that the log shows.
const NAME_SHOWN: usize = 64;

/// Judges by an access list, as long as this exists.
pub(super) struct ZapThread {
    context: ::zmq::Context,
    thread: Option<JoinHandle<()>>,
}

impl ZapThread {
    /// Starts it, before any guarded socket of the context is bound.
    pub(super) fn start(
        context: &::zmq::Context,
        mut access: AccessList,
    ) -> Result<ZapThread, ::zmq::Error> {
        let socket = context.socket(::zmq::REP)?;
        socket.set_linger(0)?;
        socket.bind(ENDPOINT)?;
        let judge = move || {
            let begun = Instant::now();
            loop {
                let request = match socket.recv_multipart(0) {
                    Ok(request) => request,
                    Err(::zmq::Error::EINTR) => continue,
                    Err(_) => break,
                };
                let now = begun.elapsed().as_nanos() as u64;
                let Some(reply) = answer(&request, |address, name, token| {
                    let admission = access.judge(now, address, name, token);
                    tell(admission, address, name);
                    admission
                }) else {
                    break;
                };
                if socket.send_multipart(reply, 0).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("rpc-access".to_owned());
        Ok(ZapThread {
            context: context.clone(),
            thread: Some(thread.spawn(judge).map_err(|_| ::zmq::Error::EAGAIN)?),
        })
    }
}

impl Drop for ZapThread {
    /// What is no request ends the thread.
    fn drop(&mut self) {
        let told = self.context.socket(::zmq::REQ).and_then(|socket| {
            socket.connect(ENDPOINT)?;
            socket.send("", 0)
        });
        if let (Ok(()), Some(thread)) = (told, self.thread.take()) {
            drop(thread.join());
        }
    }
}

/// The reply to a request of ZeroMQ; none to what is no request.
fn answer(
    request: &[Vec<u8>],
    judge: impl FnOnce(&str, &[u8], &[u8]) -> Admission,
) -> Option<[Vec<u8>; 6]> {
    let [
        version,
        id,
        _domain,
        address,
        _identity,
        mechanism,
        rest @ ..,
    ] = request
    else {
        return None;
    };
    let address = String::from_utf8_lossy(address);
    let (status, text, user): (&str, &str, &[u8]) = match rest {
        [name, token] if version == VERSION && mechanism == b"PLAIN" => {
            match judge(&address, name, token) {
                Admission::Granted => ("200", "OK", name),
                Admission::Refused { .. } => ("400", "wrong name or token", b""),
                Admission::Blocked => ("400", "too many wrong tokens", b""),
            }
        }
        _ => ("400", "no name and token", b""),
    };
    let words = [status.as_bytes(), text.as_bytes(), user, b""];
    let [status, text, user, metadata] = words.map(<[u8]>::to_vec);
    Some([VERSION.to_vec(), id.clone(), status, text, user, metadata])
}

/// Logs who was refused. A client tries again many times a second; once blocked it is not told of.
fn tell(admission: Admission, address: &str, name: &[u8]) {
    let name = String::from_utf8_lossy(&name[..name.len().min(NAME_SHOWN)]);
    let name = name.escape_debug();
    match admission {
        Admission::Granted => tracing::debug!("RPC: '{name}' connected from {address}"),
        Admission::Refused { tries_left: 0 } => tracing::warn!(
            "RPC: refused '{name}' from {address}: wrong name or token; \
             the address is not listened to for a minute"
        ),
        Admission::Refused { .. } => {
            tracing::warn!("RPC: refused '{name}' from {address}: wrong name or token");
        }
        Admission::Blocked => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(parts: &[&[u8]]) -> Vec<Vec<u8>> {
        parts.iter().map(|part| part.to_vec()).collect()
    }

    #[test]
    fn requests_are_answered_as_they_were_judged() {
        let plain: [&[u8]; 8] = [b"1.0", b"7", b"", b"10.0.0.1", b"", b"PLAIN", b"ann", b"t"];
        for (admission, status) in [
            (Admission::Granted, "200"),
            (Admission::Refused { tries_left: 1 }, "400"),
            (Admission::Blocked, "400"),
        ] {
            let reply = answer(&request(&plain), |address, name, token| {
                assert_eq!((address, name, token), ("10.0.0.1", &b"ann"[..], &b"t"[..]));
                admission
            });
            let reply = reply.expect("a request");
            assert_eq!((&*reply[1], &*reply[2]), (&b"7"[..], status.as_bytes()));
        }
    }

    #[test]
    fn other_mechanisms_are_refused_without_being_judged() {
        let never = |_: &str, _: &[u8], _: &[u8]| -> Admission { panic!("it was judged") };
        for parts in [
            &[&b"1.0"[..], b"7", b"", b"a", b"", b"NULL"][..],
            &[b"1.0", b"7", b"", b"a", b"", b"CURVE", b"key"],
            &[b"2.0", b"7", b"", b"a", b"", b"PLAIN", b"ann", b"t"],
        ] {
            let reply = answer(&request(parts), never).expect("a request");
            assert_eq!(reply[2], b"400");
        }
        assert!(answer(&request(&[b""]), never).is_none());
    }
}
