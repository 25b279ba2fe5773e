//! Packets that a client pushes out of a port.

use allosaur_api::commands::layers::{PacketsPushed, PushPackets, PushedPacket};
use allosaur_api::{Error, Fields};
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_engine::stateless::StatelessCommand;
use allosaur_engine::stream::{
    CoreShare, DestinationMac, Mode, Profile, Rate, StreamId, StreamPortInfo, StreamSpec,
};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};

use super::checks::check_frames;
use super::state::Stateless;
use super::stream::decode_packet;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};

/// Who pushes packets that last no longer is answered when they have left: what watches them may be
/// stopped then.
const PUSH_WAIT_MAX: Nanos = 10 * MILLISECOND;

impl Stateless {
    pub(super) fn push_packets(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let params = PushPackets::parse(fields)?;
        let port = control.port(params.port)?;
        let streams = pushed_streams(&params)?;
        check_frames(&port.config, &streams)?;
        let facts = StreamPortInfo {
            line_rate_bps: port.config.line_rate_bps,
            source_mac: port.config.hw_mac,
            destination_mac: port.layers.destination_mac(),
            data_cores: control.config.data_cores,
            checksums: port.config.checksums,
            // What is pushed leaves as it is.
            marking: None,
            vxlan: VxlanPorts::STANDARD,
            tunnel: None,
        };
        let core = port.cores()?[0];
        let profile = Profile::compile(&streams, &facts);
        let profile = profile.map_err(|error| Error::execution(error.to_string()))?;
        let share = CoreShare {
            core,
            rank: 0,
            cores: 1,
        };
        let start_at = view.now_ns;
        let key = self.next_key();
        let gaps = streams.len().saturating_sub(1) as u64;
        if gaps * u64::from(params.gap_us) * MICROSECOND <= PUSH_WAIT_MAX {
            control.pendings.await_end(key);
        }
        let command = StatelessCommand::StartProfile {
            port: params.port,
            profile: key,
            program: Box::new(profile.core_program(1.0, share)),
            start_at,
            duration: None,
        };
        control.command(core, command);
        reply(&PacketsPushed {
            sent: streams.len(),
            ts: start_at as f64 / 1e9,
        })
    }
}

/// A chain of bursts of one packet.
fn pushed_streams(params: &PushPackets<'_>) -> Result<Vec<StreamSpec>, Error> {
    let count = params.packets.len() as StreamId;
    let numbered = (0..count).zip(&params.packets);
    let stream = |(id, packet): (StreamId, &PushedPacket<'_>)| {
        let bytes = decode_packet(packet.base64);
        let packet_bytes =
            bytes.map_err(|problem| Error::execution(format!("pkts[{id}]: {problem}")))?;
        Ok(StreamSpec {
            id,
            enabled: true,
            self_start: id == 0,
            start_paused: false,
            next: Some(id + 1).filter(|&next| next < count),
            action_count: 0,
            start_delay: if id == 0 {
                0
            } else {
                u64::from(params.gap_us) * MICROSECOND
            },
            scales_delay: false,
            mode: Mode::SingleBurst { packets: 1 },
            rate: Rate::PacketsPerSecond(1.0),
            packet: packet_bytes,
            keep_source_mac: !packet.port_source_mac,
            destination_mac: match packet.port_destination_mac {
                true => DestinationMac::Port,
                false => DestinationMac::Packet,
            },
            dummy: false,
            random_seed: 0,
            core: None,
            rule: None,
            program: Vec::new(),
        })
    };
    numbered.map(stream).collect()
}
