//! The addresses of a port, layer by layer.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_api::commands::layers::VxlanTunnel;
use allosaur_api::commands::ports::{EtherConfig, Ipv4Config, Ipv6Config, LayerConfig, VlanTags};
use allosaur_api::commands::stateful::topology::InterfaceTunnel;
use allosaur_engine::encapsulation::{Encapsulation, Tunnel, Vxlan};
use allosaur_engine::host::HostSettings;
use allosaur_packet::MacAddress;

use crate::control::config::mac_text;
use crate::rx_taps::ServiceMode;

/// The addresses of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::control) struct Layers {
    pub(in crate::control) destination_mac: [u8; 6],
    pub(in crate::control) ipv4: Option<Ipv4Layer>,
    pub(in crate::control) ipv6: Option<Ipv6Addr>,
    pub(in crate::control) vlan: Vec<u16>,
    /// The tunnel that its flows and streams are in.
    pub(in crate::control) vxlan: Option<VxlanEnd>,
}

/// One end of a network of VXLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) struct VxlanEnd {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    given: VxlanTunnel,
}

/// Its address for IPv4, and its gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) struct Ipv4Layer {
    pub(in crate::control) source: Ipv4Addr,
    pub(in crate::control) destination: Ipv4Addr,
    pub(in crate::control) resolved: bool,
    /// The port looks for its gateway by itself. Clients resolve the gateways that they set.
    pub(in crate::control) seeking: bool,
}

impl Layers {
    /// Layer 2 mode, towards `destination_mac`.
    pub(in crate::control) fn new(destination_mac: [u8; 6]) -> Layers {
        Layers {
            destination_mac,
            ipv4: None,
            ipv6: None,
            vlan: Vec::new(),
            vxlan: None,
        }
    }

    /// The tunnel that was asked for, with the addresses of the port where none were given. The error is
    /// the field that is missing, and what to do. Servers answer to whoever asked, so they need no other
    /// end.
    pub(in crate::control) fn vxlan_end(
        &self,
        given: &VxlanTunnel,
        is_client: bool,
    ) -> Result<VxlanEnd, (&'static str, &'static str)> {
        let ipv4 = self.ipv4.as_ref();
        let local = given.local.or(ipv4.map(|layer| layer.source));
        let remote = given.remote.or(ipv4.map(|layer| layer.destination));
        let local = local.ok_or((
            "local",
            "is missing, and the port has no IPv4 address: give the address of this end, or set_l3 \
             first",
        ))?;
        let remote = remote.or((!is_client).then_some(Ipv4Addr::UNSPECIFIED));
        let remote = remote.ok_or((
            "remote",
            "is missing, and the port has no gateway: give the address of the other end, or set_l3 \
             first",
        ))?;
        if local == remote {
            return Err((
                "remote",
                "is the address of this end, too: give that of the other",
            ));
        }
        Ok(VxlanEnd {
            local,
            remote,
            given: *given,
        })
    }

    /// What flows of the port send their packets in; `own` is its MAC address.
    pub(in crate::control) fn encapsulation(&self, own: [u8; 6]) -> Encapsulation {
        let vlan = self.outer_vlan().into();
        self.tunnel(own).map_or(vlan, Encapsulation::Tunnel)
    }

    /// The tunnel of the port; `own` is its MAC address.
    pub(in crate::control) fn tunnel(&self, own: [u8; 6]) -> Option<Tunnel> {
        let end = self.vxlan?;
        let peer = end.given.inner_mac.unwrap_or(self.destination_mac);
        Some(Tunnel::Vxlan(Vxlan {
            vlan: self.outer_vlan(),
            local: end.local,
            remote: end.remote,
            port: end.given.udp_port,
            vni: end.given.vni,
            takes_any_vni: end.given.any_vni,
            own: MacAddress(own),
            peer: MacAddress(peer),
        }))
    }

    /// The UDP port of both ends of its tunnel.
    pub(in crate::control) fn vxlan_port(&self) -> Option<u16> {
        self.vxlan.map(|end| end.given.udp_port)
    }

    /// The tunnel of clients that are in a network of their own, behind the end of the port's tunnel; `own` is
    /// their MAC address in it. The error is what is wrong, with the remedy.
    pub(in crate::control) fn tunnel_of_clients(
        &self,
        given: &InterfaceTunnel,
        own: [u8; 6],
        vlan: Option<u16>,
    ) -> Result<Vxlan, String> {
        let Some(Tunnel::Vxlan(port)) = self.tunnel(own) else {
            return Err(
                "is given, and the port has no tunnel: give it an end of one first (set_vxlan with any_vni)"
                    .to_owned(),
            );
        };
        if port.vni != given.vni && !port.takes_any_vni {
            return Err(format!(
                "vni is {}, and the port takes frames of network {} alone: set any_vni of the port \
                 (set_vxlan)",
                given.vni, port.vni
            ));
        }
        Ok(Vxlan {
            vlan: vlan.or(port.vlan),
            remote: given.remote.unwrap_or(port.remote),
            vni: given.vni,
            takes_any_vni: false,
            ..port
        })
    }

    /// Why no stream can be sent in the port's tunnel, with the remedy.
    pub(in crate::control) fn check_tunnel_of_streams(&self) -> Result<(), String> {
        let Some(end) = self.vxlan else {
            return Ok(());
        };
        if end.remote.is_unspecified() {
            return Err(
                "vxlan.remote is missing, which streams are sent to: give the address of the other end \
                 (set_vxlan), or a gateway (set_l3)"
                    .to_owned(),
            );
        }
        match self.vlan.len() {
            0 | 1 => Ok(()),
            tags => Err(format!(
                "vlan has {tags} tags, and frames of a tunnel have one at most: set one (set_vlan), or \
                 take the tunnel away (set_vxlan)"
            )),
        }
    }

    /// Where frames go, as far as it is known.
    pub(in crate::control) fn destination_mac(&self) -> [u8; 6] {
        self.destination_mac
    }

    /// The VLAN that its frames are in, the outer one of several.
    pub(in crate::control) fn outer_vlan(&self) -> Option<u16> {
        self.vlan.first().copied()
    }

    /// The VLAN tags of its frames, the outer first.
    pub(in crate::control) fn tags(&self) -> &[u16] {
        &self.vlan
    }

    /// The gateway whose MAC address is not known yet.
    pub(in crate::control) fn unresolved_gateway(&self) -> Option<Ipv4Addr> {
        self.ipv4
            .filter(|layer| !layer.resolved)
            .map(|layer| layer.destination)
    }

    /// The gateway whose MAC address the port looks for by itself.
    pub(in crate::control) fn sought_gateway(&self) -> Option<Ipv4Addr> {
        let seeking = self.ipv4.filter(|layer| layer.seeking && !layer.resolved);
        seeking.map(|layer| layer.destination)
    }

    /// The port as a host on its network, which answers ping or not.
    pub(in crate::control) fn host(&self, mac: [u8; 6], answers_echo: bool) -> HostSettings {
        let link_local = link_local(mac);
        let mut ipv6: Vec<Ipv6Addr> = self.ipv6.into_iter().collect();
        if self.ipv6.is_some_and(|address| address != link_local) {
            ipv6.push(link_local);
        }
        HostSettings {
            mac,
            vlan: self.vlan.clone(),
            ipv4: self.ipv4.map(|layer| layer.source),
            gateway: self.sought_gateway(),
            ipv6,
            answers_echo,
            is_passive: false,
        }
    }

    /// Whether it has an address for IPv4, which it announces.
    pub(in crate::control) fn has_ipv4(&self) -> bool {
        self.ipv4.is_some()
    }

    /// As `get_port_status` shows it.
    pub(in crate::control) fn layer_cfg(&self, source_mac: [u8; 6]) -> LayerConfig {
        let resolved = self.unresolved_gateway().is_none();
        let is_resolved = if resolved { "resolved" } else { "unresolved" };
        LayerConfig {
            ether: EtherConfig {
                src: mac_text(source_mac),
                dst: mac_text(self.destination_mac),
                state: if resolved {
                    "configured"
                } else {
                    "unconfigured"
                },
            },
            ipv4: Ipv4Config {
                state: self.ipv4.map_or("none", |_| is_resolved),
                src: self.ipv4.map(|layer| layer.source.to_string()),
                dst: self.ipv4.map(|layer| layer.destination.to_string()),
            },
            ipv6: Ipv6Config {
                enabled: self.ipv6.is_some(),
                src: self.ipv6.map(|source| source.to_string()),
            },
        }
    }

    /// As `get_port_status` shows it.
    pub(in crate::control) fn vlan(&self) -> VlanTags {
        VlanTags {
            tags: self.vlan.clone(),
        }
    }
}

/// Whether a port answers ping: with streams in service mode only, with flows always. So does TRex.
pub(in crate::control) fn answers_echo(is_stateful: bool, service: ServiceMode) -> bool {
    is_stateful || service.is_on()
}

/// The link-local address of a MAC address (RFC 4291, appendix A).
pub(in crate::control) fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let tail = [a ^ 2, b, c, 0xff, 0xfe, d, e, f];
    let word = |i: usize| u16::from_be_bytes([tail[i], tail[i + 1]]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, word(0), word(2), word(4), word(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_local_address_is_that_of_rfc_4291() {
        let address = link_local([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(address.to_string(), "fe80::3656:78ff:fe9a:bcde");
    }
}
