//! For unit tests: an emulation of one namespace under virtual time, its frames taken off the wire.

use std::net::{IpAddr, SocketAddr};

use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::{pseudo_header_v4, pseudo_header_v6};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::transport::udp::{UdpHeader, UdpView};
use serde_json::{Value, json};

use crate::{Emulation, Settings};

/// An emulation at port 1 without tags, and what it sent.
pub(crate) struct Net {
    pub(crate) emulation: Emulation,
    pub(crate) now: Nanos,
    sent: Vec<(Nanos, Vec<u8>)>,
}

impl Net {
    /// A namespace with plugins; some random numbers have a value.
    pub(crate) fn new(plugins: &[&str], pinned: &[(&'static str, u64)]) -> Net {
        let settings = Settings {
            pinned: pinned.to_vec(),
            ..Settings::default()
        };
        Net::with(plugins, settings)
    }

    /// The same, with these settings.
    pub(crate) fn with(plugins: &[&str], settings: Settings) -> Net {
        let mut net = Net {
            emulation: Emulation::new(settings, SECOND),
            now: SECOND,
            sent: Vec::new(),
        };
        let plugins: serde_json::Map<String, Value> = plugins
            .iter()
            .map(|name| ((*name).to_owned(), json!({})))
            .collect();
        let tunnels = json!({"tunnels": [{"vport": 1, "plugs": plugins}]});
        net.request("ctx_add", tunnels)
            .expect("the namespace is new");
        net
    }

    /// A request about the namespace; the text of the error when it was refused.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        params["tun"] = json!({"vport": 1});
        let reply = self.emulation.handle_request(self.now, method, &params);
        self.collect();
        reply.map_err(|error| error.to_string())
    }

    /// Adds a client with plugins, by their init JSON.
    pub(crate) fn add(
        &mut self,
        mac: MacAddress,
        mut fields: Value,
        plugins: Value,
    ) -> Result<(), String> {
        fields["mac"] = json!(mac.octets());
        fields["plugs"] = plugins;
        let added = self.request("ctx_client_add", json!({"clients": [fields]}));
        added.map(drop)
    }

    /// Removes a client.
    pub(crate) fn remove(&mut self, mac: MacAddress) {
        let params = json!({"macs": [mac.octets()]});
        self.request("ctx_client_remove", params)
            .expect("it is there");
    }

    /// What the emulation knows of a client.
    pub(crate) fn info(&mut self, mac: MacAddress) -> Value {
        let params = json!({"macs": [mac.octets()]});
        let reply = self.request("ctx_client_get_info", params);
        reply.expect("it is there")[0].take()
    }

    /// The counters of a plugin of a client that are not zero.
    pub(crate) fn counters(&mut self, method: &str, mac: MacAddress) -> Value {
        let reply = self.request(method, json!({"mac": mac.octets()}));
        let mut reply = reply.expect("it is there");
        let table = reply
            .as_object_mut()
            .and_then(|tables| tables.values_mut().next());
        table.map_or(json!({}), Value::take)
    }

    /// Gives the emulation a frame.
    pub(crate) fn receive(&mut self, frame: &[u8]) {
        self.emulation.handle_frame(self.now, 1, frame);
        self.collect();
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, span: Nanos) {
        let until = self.now + span;
        while let Some(due) = self.emulation.poll_timeout().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.emulation.handle_timeout(self.now);
            self.collect();
        }
        self.now = until;
    }

    /// Frames that were sent since the last call, with their times.
    pub(crate) fn sent(&mut self) -> Vec<(Nanos, Vec<u8>)> {
        std::mem::take(&mut self.sent)
    }

    /// The only frame that was sent since the last call.
    pub(crate) fn sent_one(&mut self) -> Vec<u8> {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "frames were sent: {sent:?}");
        sent.remove(0).1
    }

    fn collect(&mut self) {
        while let Some(transmit) = self.emulation.poll_transmit() {
            self.sent.push((self.now, transmit.frame.to_vec()));
        }
    }
}

/// A frame with a datagram over IPv4 or IPv6, its checksums right.
pub(crate) fn datagram(
    macs: [MacAddress; 2],
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut udp = vec![0; usize::from(length)];
    UdpHeader {
        source_port: source.port(),
        destination_port: destination.port(),
        length_bytes: length,
    }
    .emit(&mut udp);
    udp[8..].copy_from_slice(payload);
    let [from, to] = macs;
    let link = [to.octets(), from.octets()].concat();
    let (ether_type, header, sum) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = Ipv4Header {
                total_bytes: 20 + length,
                ..Ipv4Header::new(from, to, IpProtocol::UDP)
            };
            let mut bytes = vec![0; 20];
            header.emit(&mut bytes);
            let sum = pseudo_header_v4(from, to, IpProtocol::UDP, length);
            ([0x08, 0x00], bytes, sum)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let header = Ipv6Header {
                payload_bytes: length,
                ..Ipv6Header::new(from, to, IpProtocol::UDP)
            };
            let mut bytes = vec![0; 40];
            header.emit(&mut bytes);
            let sum = pseudo_header_v6(from, to, IpProtocol::UDP, u32::from(length));
            ([0x86, 0xdd], bytes, sum)
        }
        _ => panic!("both addresses are of one family"),
    };
    UdpView::new_unchecked(&mut udp).fill_checksum(sum);
    [link, ether_type.to_vec(), header, udp].concat()
}
