//! Which names this server answers to. A page of the web can make its own name mean an address of this
//! machine, and have a browser here ask for it (DNS rebinding); then the name tells.

use hyper::header::HOST;
use hyper::{HeaderMap, Uri};

/// The names.
#[derive(Clone, Debug, Default)]
pub(super) struct Hosts {
    /// In lower case.
    names: Vec<String>,
}

impl Hosts {
    /// That of this machine, and others.
    pub(super) fn new(others: &[String]) -> Hosts {
        let own = nix::unistd::gethostname().ok();
        let own = own.and_then(|name| name.into_string().ok());
        let names = own.iter().chain(others);
        Hosts {
            names: names.map(|name| plain(name).to_ascii_lowercase()).collect(),
        }
    }

    /// The name that somebody asked for, when it is none of ours.
    pub(super) fn foreign<'r>(&self, uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
        let headers = headers.get_all(HOST).iter();
        let asked = headers.map(|value| value.to_str().unwrap_or("?"));
        let mut asked = asked.chain(uri.authority().map(|authority| authority.as_str()));
        asked.find(|host| !self.has(host))
    }

    /// Addresses are nobody's name, and a name without a dot is not of the public DNS: those of
    /// containers and services are such.
    fn has(&self, host: &str) -> bool {
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if host.starts_with('[') {
            return is_address(host);
        }
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let name = plain(name);
        let is_ours = |own: &String| name.eq_ignore_ascii_case(own);
        is_address(name) || !name.contains('.') || self.names.iter().any(is_ours)
    }
}

fn is_address(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.split_once(']'));
    match bare {
        Some((v6, port)) => {
            let is_port = port.is_empty() || port.starts_with(':');
            is_port && v6.parse::<std::net::Ipv6Addr>().is_ok()
        }
        None => host.parse::<std::net::Ipv4Addr>().is_ok(),
    }
}

/// Without the dot that may end a name.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_others_could_own_are_foreign() {
        let hosts = Hosts {
            names: vec!["lab.example".to_owned()],
        };
        for host in [
            "127.0.0.1:4502",
            "192.0.2.1",
            "[::1]:4502",
            "[2001:db8::1]",
            "localhost:4502",
            "localhost",
            "allosaur:4502",
            "LAB.example.:80",
            "lab.example",
            "",
        ] {
            assert!(hosts.has(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:4502",
            "lab.example.evil.example",
            "127.0.0.1.evil.example:4502",
            "user@evil.example",
            "[::1].evil.example",
            "127.0.0.1@evil.example:80",
            "?.?",
        ] {
            assert!(!hosts.has(host), "{host}");
        }
    }
}
