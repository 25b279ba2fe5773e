//! What a port refuses to send: frames that do not fit it, to nobody knows where, or more than its line
//! carries.

use allosaur_api::Error;
use allosaur_engine::encapsulation::{Encapsulation, LinkPrefix, Tunnel};
use allosaur_engine::stream::{DestinationMac, StreamSpec};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::{self, EtherType};

use super::port::Profile;
use crate::control::config::PortConfig;
use crate::control::core::port::Port;

/// Rounding is no excess: so much above the line rate is still accepted.
const LINE_RATE_SLACK: f64 = 1.0001;

/// The streams of a profile fit the port, in its tunnel if it has one.
pub(super) fn check_sendable(port: &Port, name: &str, specs: &[StreamSpec]) -> Result<(), Error> {
    let checked = port.layers.check_tunnel_of_streams();
    checked
        .map_err(|problem| Error::execution(format!("profile_id({name}): the port's {problem}")))?;
    match port.layers.tunnel(port.config.hw_mac) {
        None => check_frames(&port.config, specs),
        Some(tunnel) => check_frames_in(tunnel, port, specs),
    }
}

/// What a port sends fits its interface.
pub(super) fn check_frames(config: &PortConfig, specs: &[StreamSpec]) -> Result<(), Error> {
    for spec in specs.iter().filter(|spec| spec.enabled) {
        let checked = config.check_frame(&spec.packet);
        checked.map_err(|problem| Error::execution(format!("stream {}: {problem}", spec.id)))?;
    }
    Ok(())
}

/// The same for what it sends in a tunnel.
fn check_frames_in(tunnel: Tunnel, port: &Port, specs: &[StreamSpec]) -> Result<(), Error> {
    let (encapsulation, any) = (Encapsulation::Tunnel(tunnel), MacAddress::default());
    let prefix = LinkPrefix::new(any, any, &encapsulation, EtherType::IPV4);
    let headers = prefix.bytes() - ethernet::HEADER_BYTES;
    let is_tagged = !port.layers.tags().is_empty();
    for spec in specs.iter().filter(|spec| spec.enabled) {
        let bytes = spec.packet.len() + headers;
        let checked = port.config.check_frame_bytes(bytes, is_tagged);
        checked.map_err(|problem| {
            let name = tunnel.name();
            Error::execution(format!(
                "stream {}: with the {headers} bytes of its tunnel ({name}) the {problem}",
                spec.id
            ))
        })?;
    }
    Ok(())
}

/// Streams that go where the port goes need to know where that is.
pub(super) fn check_resolved(port: &Port, profile: &Profile) -> Result<(), Error> {
    let Some(gateway) = port.layers.unresolved_gateway() else {
        return Ok(());
    };
    let mut specs = profile.streams.values().map(|stream| &stream.spec);
    // A tunnel goes where the port goes.
    let goes_there = |spec: &StreamSpec| {
        spec.destination_mac != DestinationMac::Packet || port.layers.vxlan.is_some()
    };
    match specs.find(|spec| spec.enabled && goes_there(spec)) {
        None => Ok(()),
        Some(spec) => Err(Error::execution(format!(
            "stream {}: the MAC address of {gateway} is not known yet: resolve it (set_l3 with \
             resolved_mac), give the stream its own destination MAC, or use force",
            spec.id
        ))),
    }
}

/// Refuses more than the line carries, unless it is forced, and more than the port may send.
pub(super) fn check_line_rate(port: &Port, l1_bps: f64, force: bool) -> Result<(), Error> {
    if let Some(max_bps) = port
        .load_max_bps
        .filter(|max| l1_bps > max * LINE_RATE_SLACK)
    {
        return Err(Error::execution(format!(
            "Expected L1 B/W: '{}' exceeds what users may send on this port: '{}'. Lower 'mul'; \
             the server's configuration says so (load_max).",
            bits_text(l1_bps),
            bits_text(max_bps)
        )));
    }
    let line_bps = port.config.line_rate_bps;
    if l1_bps > line_bps * LINE_RATE_SLACK && !force {
        return Err(Error::execution(format!(
            "Expected L1 B/W: '{}' exceeds port line rate: '{}'. Lower 'mul', or use 'force'.",
            bits_text(l1_bps),
            bits_text(line_bps)
        )));
    }
    Ok(())
}

fn bits_text(bps: f64) -> String {
    let units = [(1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "Kbps")];
    let unit = units.into_iter().find(|(size, _)| bps >= *size);
    let (size, name) = unit.unwrap_or((1.0, "bps"));
    format!("{:.2} {name}", bps / size)
}
