//! The ZeroMQ sockets of a server: one pair for all, or one for this machine and one for others.

use std::io;
use std::net::IpAddr;
use std::slice;

use allosaur_netdev::netlink;

use crate::config::Settings;
use crate::transport::{self, AccessList, SocketError, ZmqTransport};

/// Where this machine is never asked for a token.
const LOOPBACK: &str = "127.0.0.1";

/// Opens them; the first is where clients on this machine find the server.
pub(super) fn open(settings: &Settings) -> Result<Vec<ZmqTransport>, SocketError> {
    let (rpc_port, pub_port) = (settings.rpc_port, settings.events_port());
    let Some(file) = &settings.rpc_auth else {
        check_open(settings)?;
        let all = ZmqTransport::bind(&settings.listen, rpc_port, pub_port)?;
        return Ok(vec![all]);
    };
    let access = AccessList::read(file)?;
    let others = beyond_loopback(&settings.listen)?;
    let own = ZmqTransport::bind(LOOPBACK, rpc_port, pub_port)?;
    // Port 0 was a free one: the same for others.
    let [rpc_port, pub_port] = [own.rpc_endpoint(), own.pub_endpoint()].map(|at| port_of(&at));
    let guarded = ZmqTransport::bind_guarded(&others, rpc_port, pub_port, access)?;
    Ok(vec![own, guarded])
}

/// How the sockets of requests other than control's are opened: on which addresses, on which port, for
/// whom.
type Bind = fn(&[String], u16, Option<AccessList>) -> Result<ZmqTransport, SocketError>;

/// Opens those of requests to emulated clients or to BIRD, if they are wanted: on the same addresses,
/// guarded alike.
pub(super) fn open_others(
    settings: &Settings,
    port: Option<u16>,
    bind: Bind,
) -> Result<Vec<ZmqTransport>, SocketError> {
    let Some(port) = port else {
        return Ok(Vec::new());
    };
    let Some(file) = &settings.rpc_auth else {
        return Ok(vec![bind(slice::from_ref(&settings.listen), port, None)?]);
    };
    let access = AccessList::read(file)?;
    let others = beyond_loopback(&settings.listen)?;
    let own = bind(&[LOOPBACK.to_owned()], port, None)?;
    let port = port_of(&own.rpc_endpoint());
    let guarded = bind(&others, port, Some(access))?;
    Ok(vec![own, guarded])
}

/// Whoever reaches a server may send traffic, read captures and end it: so that everyone beyond this
/// machine may must have been said.
fn check_open(settings: &Settings) -> Result<(), SocketError> {
    let listen = &settings.listen;
    if settings.open || is_loopback(listen) {
        return Ok(());
    }
    Err(SocketError::Unguarded(format!(
        "whoever reaches {listen} (--listen, or listen in the configuration) could use the server: give \
         --rpc-auth FILE with names and tokens, or --open (open: true) when all of that network may"
    )))
}

/// The addresses that are guarded: the one that was named, or all that this machine has now.
fn beyond_loopback(listen: &str) -> Result<Vec<String>, SocketError> {
    if listen != "*" {
        return match is_loopback(listen) {
            false => Ok(vec![listen.to_owned()]),
            true => Err(SocketError::Unguarded(format!(
                "rpc_auth is for clients on other machines, and the server listens on {listen} \
                 only: give --listen ADDRESS too"
            ))),
        };
    }
    let unknown = |error: io::Error| {
        SocketError::Unguarded(format!(
            "the addresses of this machine are not known ({error}): give --listen ADDRESS"
        ))
    };
    let all = netlink::addresses().map_err(unknown)?;
    let others: Vec<String> = all
        .iter()
        .map(|address| address.ip)
        .filter(|ip| !ip.is_loopback() && !is_link_local(ip))
        .map(|ip| ip.to_string())
        .collect();
    match others.is_empty() {
        false => Ok(others),
        true => Err(SocketError::Unguarded(
            "this machine has no address beyond loopback that --listen '*' and --rpc-auth could be \
             for: leave both out, or give it an address"
                .to_owned(),
        )),
    }
}

fn is_loopback(listen: &str) -> bool {
    let bare = listen.trim_start_matches('[').trim_end_matches(']');
    // A name may mean loopback, too: that it does is looked up, as it is to listen there.
    transport::listen_address(bare).is_ok_and(|ip| ip.is_loopback())
}

/// Whether an address means something with the name of an interface only.
fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// The port of an endpoint such as `tcp://127.0.0.1:4501`.
fn port_of(endpoint: &str) -> u16 {
    let port = endpoint.rsplit(':').next();
    port.and_then(|port| port.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_not_guarded() {
        for listen in ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "lo"] {
            let error = beyond_loopback(listen).expect_err("loopback");
            assert!(error.to_string().contains("--listen ADDRESS"), "{error}");
        }
        for listen in ["192.0.2.1", "2001:db8::1", "no-such-interface", "10.0.0.1"] {
            assert_eq!(beyond_loopback(listen), Ok(vec![listen.to_owned()]));
        }
    }

    #[test]
    fn who_listens_beyond_loopback_asks_for_tokens_or_says_that_all_may() {
        let settings = |listen: &str, open: bool| Settings {
            listen: listen.to_owned(),
            open,
            ..Settings::default()
        };
        for listen in ["127.0.0.1", "localhost", "[::1]"] {
            assert_eq!(check_open(&settings(listen, false)), Ok(()), "{listen}");
        }
        for listen in ["*", "0.0.0.0", "192.0.2.1", "::", "no-such-interface"] {
            let error = check_open(&settings(listen, false)).expect_err(listen);
            assert!(error.to_string().contains("--open"), "{error}");
            assert_eq!(check_open(&settings(listen, true)), Ok(()), "{listen}");
        }
    }

    #[test]
    fn the_port_of_an_endpoint_is_its_last_number() {
        assert_eq!(port_of("tcp://127.0.0.1:4501"), 4501);
        assert_eq!(port_of("tcp://[::1]:80"), 80);
        assert_eq!(port_of(""), 0);
    }
}
