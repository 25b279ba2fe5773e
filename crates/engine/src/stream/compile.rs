//! A profile checked as a whole, compiled, and its share for one core.
//!
//! First what must hold for the streams together (`check`), then each stream by itself
//! (`compile_stream`): what passed runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::CompileError;
use super::graph::{Load, ProfileRates, RateGraph, graph, rates};
use super::replay::Replay;
use super::run::{Left, Plan, StreamRun};
use super::spec::{
    DestinationMac, GAP_MAX, Mode, PACKET_BYTES_MAX, PACKET_BYTES_MIN, PACKET_BYTES_PADDED,
    RATE_PPS_MAX, STREAMS_MAX, Shape, StreamId, StreamSpec,
};
use super::tunnel::TunnelHeaders;
use crate::encapsulation::Tunnel;
use crate::flow_stats::{Rule, TagError, Tagging, VxlanPorts, tag};
use crate::latency::ChecksumFixup;
use crate::time::Nanos;
use crate::vm;

/// What compiling must know about the port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamPortInfo {
    /// Bits per second at layer 1.
    pub line_rate_bps: f64,
    /// What the source MAC of every frame becomes, unless the stream keeps its own.
    pub source_mac: [u8; 6],
    /// What the destination MAC of every frame becomes, unless the stream keeps its own.
    pub destination_mac: [u8; 6],
    /// Who computes the checksums of `fix_checksum_hw`.
    pub checksums: vm::Checksums,
    /// How many data cores the server has, for streams that are pinned to one.
    pub data_cores: usize,
    /// The signs of packets that are counted by themselves.
    /// `None` leaves what looks like one where it is.
    pub marking: Option<Tagging>,
    /// The UDP ports that carry VXLAN.
    pub vxlan: VxlanPorts,
    /// The tunnel that frames are sent in, by the MAC addresses above.
    pub tunnel: Option<Tunnel>,
}

/// Which of the cores that share a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreShare {
    /// The core's own number.
    pub core: usize,
    /// Its place among the cores that share the profile.
    pub rank: usize,
    /// How many share it.
    pub cores: usize,
}

impl CoreShare {
    /// One core alone.
    pub const ONLY: CoreShare = CoreShare {
        core: 0,
        rank: 0,
        cores: 1,
    };
}

/// The streams of a profile, checked.
#[derive(Clone, Debug)]
pub struct Profile {
    streams: Vec<Compiled>,
    rates: ProfileRates,
    fixed_rates: ProfileRates,
}

/// One stream, checked, for all cores.
#[derive(Clone, Debug)]
struct Compiled {
    id: StreamId,
    packet: Arc<[u8]>,
    program: Option<Arc<vm::FieldProgram>>,
    left: Option<Left>,
    seed: u32,
    rate_pps: f64,
    /// Mean frame size without FCS.
    frame_bytes: f64,
    shape: Shape,
    start_delay: Nanos,
    scales_delay: bool,
    next: Option<usize>,
    action_count: u32,
    self_start: bool,
    dummy: bool,
    start_paused: bool,
    core: Option<u8>,
    sequenced: bool,
    rule: Option<Rule>,
    /// Each packet has a trailer of its own.
    stamped: bool,
    /// The checksum that covers it.
    fixup: Option<ChecksumFixup>,
}

impl Profile {
    /// Checks the streams of a profile, alone and together, and compiles their programs.
    /// Streams that are not enabled are left out.
    pub fn compile(specs: &[StreamSpec], port: &StreamPortInfo) -> Result<Profile, CompileError> {
        let chains = check(specs, port.data_cores)?;
        let mut streams = Vec::with_capacity(chains.streams.len());
        for (spec, next) in chains.streams.iter().zip(&chains.next) {
            streams.push(compile_stream(spec, *next, port)?);
        }
        let loads: Vec<Load> = streams.iter().map(|stream| stream.load(1.0)).collect();
        Ok(Profile {
            rates: rates(&loads, |stream| !streams[stream].sequenced),
            fixed_rates: rates(&loads, |stream| streams[stream].sequenced),
            streams,
        })
    }

    /// The highest rates that no factor changes: those of streams whose latency is measured.
    pub fn fixed_rates(&self) -> &ProfileRates {
        &self.fixed_rates
    }

    /// The highest rates that all other streams reach together at a factor of 1.
    pub fn rates(&self) -> &ProfileRates {
        &self.rates
    }

    /// The highest rates that the profile reaches when each stream has a factor of its own.
    pub fn rates_at(&self, factor: impl Fn(StreamId) -> f64) -> ProfileRates {
        let loads = self.streams.iter();
        let loads: Vec<Load> = loads.map(|s| s.load(factor(s.id))).collect();
        rates(&loads, |_| true)
    }

    /// The rates of each stream at a factor of 1.
    pub fn stream_rates(&self) -> impl Iterator<Item = (StreamId, ProfileRates)> + '_ {
        let streams = self.streams.iter();
        streams.map(|stream| (stream.id, stream.load(1.0).rates()))
    }

    /// Streams whose rate no factor changes.
    pub fn fixed_streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        let fixed = self.streams.iter().filter(|stream| stream.sequenced);
        fixed.map(|stream| stream.id)
    }

    /// Streams that end by themselves.
    pub fn bursts(&self) -> impl Iterator<Item = StreamId> + '_ {
        let ends = |stream: &&Compiled| stream.shape.packets_per_burst != u64::MAX;
        self.streams.iter().filter(ends).map(|stream| stream.id)
    }

    /// How the rate goes over time, at a factor of 1.
    pub fn graph(&self) -> RateGraph {
        let loads: Vec<Load> = self.streams.iter().map(|s| s.load(1.0)).collect();
        graph(&loads)
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The cores that streams are pinned to, each with the stream.
    pub fn pinned(&self) -> impl Iterator<Item = (StreamId, u8)> + '_ {
        self.streams
            .iter()
            .filter_map(|stream| stream.core.map(|core| (stream.id, core)))
    }

    /// What one core of those that share the profile has to send, at `factor` times the rates. The
    /// first of them sends the streams whose latency is measured, which cannot be shared.
    pub fn core_program(&self, factor: f64, share: CoreShare) -> CoreProgram {
        let sends =
            |stream: &Compiled| stream.is_shared_with(share) || stream.sequenced && share.rank == 0;
        self.program_of(factor, share, sends)
    }

    /// The same without the streams whose latency is measured: another core sends those.
    pub fn shared_program(&self, factor: f64, share: CoreShare) -> CoreProgram {
        self.program_of(factor, share, |stream| stream.is_shared_with(share))
    }

    /// Only the streams whose latency is measured.
    pub fn measured_program(&self) -> CoreProgram {
        self.program_of(1.0, CoreShare::ONLY, |stream| stream.sequenced)
    }

    fn program_of(
        &self,
        factor: f64,
        share: CoreShare,
        runs_here: impl Fn(&Compiled) -> bool,
    ) -> CoreProgram {
        // Streams of a chain are pinned or measured together, so a successor is here if its stream is.
        let mut position = vec![usize::MAX; self.streams.len()];
        let here = self
            .streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| runs_here(stream));
        for (new, (old, _)) in here.enumerate() {
            position[old] = new;
        }
        let streams = self.streams.iter().filter(|stream| runs_here(stream));
        let streams = streams.map(|stream| {
            let next = stream.next.map(|next| position[next] as u32);
            stream.for_core(factor, share, next)
        });
        CoreProgram {
            streams: streams.collect(),
            replay: None,
        }
    }
}

impl Compiled {
    /// Whether a core sends the stream or a share of it, unless one core must send it alone.
    fn is_shared_with(&self, share: CoreShare) -> bool {
        let is_there = |core| usize::from(core) == share.core;
        !self.sequenced && self.core.is_none_or(is_there)
    }

    fn load(&self, factor: f64) -> Load {
        let factor = if self.sequenced { 1.0 } else { factor };
        let pace_pps = self.rate_pps * factor;
        Load {
            id: self.id,
            self_start: self.self_start,
            start_delay: match self.scales_delay {
                true => (self.start_delay as f64 / factor).round() as Nanos,
                false => self.start_delay,
            },
            scales_delay: self.scales_delay,
            shape: self.shape,
            next: self.next,
            rate_pps: if self.dummy { 0.0 } else { pace_pps },
            pace_pps,
            frame_bytes: self.frame_bytes,
        }
    }

    fn for_core(&self, factor: f64, share: CoreShare, next: Option<u32>) -> StreamRun {
        let (rank, cores) = if self.core.is_some() || self.sequenced {
            (0, 1)
        } else {
            (share.rank, share.cores)
        };
        let state = self
            .program
            .as_ref()
            .map(|program| vm::State::new(program, self.seed, rank as u64, cores as u64));
        StreamRun::new(
            Plan {
                id: self.id,
                packet: Arc::clone(&self.packet),
                program: self.program.clone(),
                left: self.left.clone(),
                shape: self.shape,
                rate_pps: self.rate_pps,
                fixed_rate: self.sequenced,
                start_delay: self.start_delay,
                scales_delay: self.scales_delay,
                next,
                action_count: self.action_count,
                self_start: self.self_start,
                dummy: self.dummy,
                start_paused: self.start_paused,
                rule: self.rule,
                stamped: self.stamped,
                fixup: self.fixup,
                rank: rank as u64,
                cores: cores as u64,
            },
            state,
            factor,
        )
    }
}

/// What one core sends of a profile, with the state of sending it.
#[derive(Debug)]
pub struct CoreProgram {
    pub(crate) streams: Vec<StreamRun>,
    pub(crate) replay: Option<Replay>,
}

impl CoreProgram {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.replay.is_none()
    }
}

impl From<Replay> for CoreProgram {
    /// A capture, and no streams: one core sends all of it.
    fn from(replay: Replay) -> CoreProgram {
        CoreProgram {
            streams: Vec::new(),
            replay: Some(replay),
        }
    }
}

/// The enabled streams of a profile, with `next` resolved to positions.
#[derive(Debug)]
struct Chains<'a> {
    streams: Vec<&'a StreamSpec>,
    next: Vec<Option<usize>>,
}

/// Checks all streams, and how they follow each other.
fn check(specs: &[StreamSpec], cores: usize) -> Result<Chains<'_>, CompileError> {
    if specs.len() > STREAMS_MAX {
        return Err(CompileError::TooManyStreams(specs.len()));
    }
    let streams: Vec<&StreamSpec> = specs.iter().filter(|spec| spec.enabled).collect();
    let mut position = HashMap::with_capacity(streams.len());
    for (i, spec) in streams.iter().enumerate() {
        check_stream(spec, cores)?;
        if position.insert(spec.id, i).is_some() {
            return Err(CompileError::Duplicate(spec.id));
        }
    }
    let mut next = Vec::with_capacity(streams.len());
    for spec in &streams {
        next.push(check_next(spec, &streams, &position)?);
    }
    let chains = Chains { streams, next };
    check_loops(&chains)?;
    check_reachable(&chains)?;
    Ok(chains)
}

fn check_stream(spec: &StreamSpec, cores: usize) -> Result<(), CompileError> {
    let stream = spec.id;
    let bytes = spec.packet.len();
    if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&bytes) {
        return Err(CompileError::PacketSize { stream, bytes });
    }
    let value = spec.rate.value();
    if !(value > 0.0 && value <= RATE_PPS_MAX * 1e6) {
        return Err(CompileError::Rate { stream, value });
    }
    let empty = |field| Err(CompileError::Empty { stream, field });
    match spec.mode {
        Mode::SingleBurst { packets: 0 } => return empty("total_pkts"),
        Mode::MultiBurst {
            packets_per_burst: 0,
            ..
        } => return empty("pkts_per_burst"),
        Mode::MultiBurst { bursts: 0, .. } => return empty("count"),
        Mode::MultiBurst { gap, .. } if gap > GAP_MAX => {
            return Err(CompileError::Delay {
                stream,
                field: "ibg",
            });
        }
        _ => {}
    }
    if spec.start_delay > GAP_MAX {
        return Err(CompileError::Delay {
            stream,
            field: "isg",
        });
    }
    match spec.core {
        Some(_) if spec.is_sequenced() => Err(CompileError::SequencedCore(stream)),
        Some(core) if usize::from(core) >= cores => Err(CompileError::PinnedCore {
            stream,
            core,
            cores,
        }),
        _ => Ok(()),
    }
}

fn check_next(
    spec: &StreamSpec,
    streams: &[&StreamSpec],
    position: &HashMap<StreamId, usize>,
) -> Result<Option<usize>, CompileError> {
    let Some(next) = spec.next else {
        return Ok(None);
    };
    let stream = spec.id;
    let Some(&successor) = position.get(&next) else {
        return Err(CompileError::NextUnknown { stream, next });
    };
    if spec.mode == Mode::Continuous {
        return Err(CompileError::ContinuousNext(stream));
    }
    if next == stream && spec.action_count == 0 {
        return Err(CompileError::EndlessSelfLoop(stream));
    }
    if streams[successor].is_sequenced() != spec.is_sequenced() {
        return Err(CompileError::SequencedChain { stream, next });
    }
    if streams[successor].core != spec.core {
        return Err(CompileError::PinnedChain { stream, next });
    }
    Ok(Some(successor))
}

/// Every loop must take time or have an end; else one instant would hold endless packets.
fn check_loops(chains: &Chains<'_>) -> Result<(), CompileError> {
    // The walk that a stream was first seen in; a walk that meets itself has closed a loop.
    let mut seen_in = vec![usize::MAX; chains.streams.len()];
    for start in 0..chains.streams.len() {
        let mut at = Some(start);
        while let Some(i) = at {
            if seen_in[i] == start {
                check_loop(chains, i)?;
                break;
            }
            if seen_in[i] != usize::MAX {
                break;
            }
            seen_in[i] = start;
            at = chains.next[i];
        }
    }
    Ok(())
}

fn check_loop(chains: &Chains<'_>, first: usize) -> Result<(), CompileError> {
    let mut i = first;
    loop {
        let spec = chains.streams[i];
        if takes_time(spec) || spec.action_count > 0 {
            return Ok(());
        }
        i = chains.next[i].expect("every stream of a loop has a successor");
        if i == first {
            return Err(CompileError::TimelessLoop(chains.streams[first].id));
        }
    }
}

fn takes_time(spec: &StreamSpec) -> bool {
    spec.start_delay > 0
        || match spec.mode {
            Mode::Continuous => true,
            Mode::SingleBurst { packets } => packets > 1,
            Mode::MultiBurst {
                packets_per_burst,
                gap,
                bursts,
            } => packets_per_burst > 1 || (gap > 0 && bursts > 1),
        }
}

fn check_reachable(chains: &Chains<'_>) -> Result<(), CompileError> {
    let mut reached = vec![false; chains.streams.len()];
    for start in 0..chains.streams.len() {
        let mut at = Some(start).filter(|&i| chains.streams[i].self_start);
        while let Some(i) = at.filter(|&i| !reached[i]) {
            reached[i] = true;
            at = chains.next[i];
        }
    }
    match reached.iter().position(|&reached| !reached) {
        Some(i) => Err(CompileError::Unreachable(chains.streams[i].id)),
        None => Ok(()),
    }
}

fn compile_stream(
    spec: &StreamSpec,
    next: Option<usize>,
    port: &StreamPortInfo,
) -> Result<Compiled, CompileError> {
    let stream = spec.id;
    let headers = port
        .tunnel
        .map(|tunnel| TunnelHeaders::new(tunnel, port.destination_mac, port.source_mac));
    let headers = headers.as_ref();
    let packet = template(spec, port, headers);
    let packet = packet.map_err(|error| CompileError::Mark { stream, error })?;
    let (packet, program) = match headers {
        None => {
            let program = vm::FieldProgram::compile_for(port.checksums, &spec.program, &packet);
            (
                packet,
                program.map_err(|error| CompileError::Program { stream, error })?,
            )
        }
        Some(headers) => headers.compile(spec, &packet, &port.vxlan)?,
    };
    // A program that changes nothing costs nothing.
    let program = Some(program).filter(vm::FieldProgram::changes_packets);
    let frame_bytes = program
        .as_ref()
        .map_or(packet.len() as f64, |p| p.mean_length());
    let stamped = spec.is_sequenced() && port.marking.unwrap_or_default().stamps();
    let rule = spec.rule.filter(|_| stamped);
    let fixup = rule.and_then(|rule| fixup(rule, port, headers, program.is_some(), &packet));
    let left = program.as_ref().and_then(|p| left(spec, port, p, &packet));
    Ok(Compiled {
        id: spec.id,
        rate_pps: spec
            .rate
            .packets_per_second(frame_bytes, port.line_rate_bps),
        frame_bytes,
        packet: packet.into(),
        program: program.map(Arc::new),
        left,
        seed: spec.random_seed,
        shape: shape(spec.mode),
        start_delay: spec.start_delay,
        scales_delay: spec.scales_delay,
        next,
        action_count: spec.action_count,
        self_start: spec.self_start,
        dummy: spec.dummy,
        start_paused: spec.start_paused,
        core: spec.core,
        sequenced: spec.is_sequenced(),
        rule: spec.rule,
        stamped,
        fixup,
    })
}

/// The checksum that covers the trailer of measured packets.
fn fixup(
    rule: Rule,
    port: &StreamPortInfo,
    headers: Option<&TunnelHeaders>,
    has_program: bool,
    packet: &[u8],
) -> Option<ChecksumFixup> {
    if let Some(headers) = headers {
        return headers.fixup(packet);
    }
    // A port that computes checksums does so over the trailer.
    let is_ours = !has_program || port.checksums == vm::Checksums::Complete;
    tag::checksum_fixup(packet, rule, &port.vxlan).filter(|_| is_ours)
}

/// The program for queues that compute checksums, where that saves work: ours cost nearly nothing in
/// packets of one length, and a sum over the whole packet in those of changing length.
fn left(
    spec: &StreamSpec,
    port: &StreamPortInfo,
    program: &vm::FieldProgram,
    packet: &[u8],
) -> Option<Left> {
    let is_whole = port.checksums == vm::Checksums::Complete && port.tunnel.is_none();
    if program.fixed_length().is_some() || !is_whole {
        return None;
    }
    let checksums = vm::left_checksums(&spec.program, packet)?;
    let left = vm::Checksums::LeftToPort;
    let program = vm::FieldProgram::compile_for(left, &spec.program, packet).ok()?;
    Some(Left {
        program: Arc::new(program),
        checksums,
    })
}

/// The packet as the port sends it, or what of it is in a tunnel: padded, and with the MACs and the sign that it must have.
fn template(
    spec: &StreamSpec,
    port: &StreamPortInfo,
    headers: Option<&TunnelHeaders>,
) -> Result<Vec<u8>, TagError> {
    let mut packet = spec.packet.clone();
    if packet.len() < PACKET_BYTES_PADDED {
        packet.resize(PACKET_BYTES_PADDED, 0);
    }
    let of_port = (port.destination_mac, port.source_mac);
    let (destination_mac, source_mac) = headers.map_or(of_port, TunnelHeaders::inner_macs);
    if spec.destination_mac != DestinationMac::Packet {
        packet[..6].copy_from_slice(&destination_mac);
    }
    if !spec.keep_source_mac {
        packet[6..12].copy_from_slice(&source_mac);
    }
    match (spec.rule, port.marking) {
        (Some(rule), marking) => {
            tag::tag(&mut packet, rule, marking.unwrap_or_default(), &port.vxlan)?
        }
        (None, Some(marking)) => tag::clear(&mut packet, marking),
        (None, None) => {}
    }
    Ok(packet)
}

fn shape(mode: Mode) -> Shape {
    match mode {
        Mode::Continuous => Shape {
            packets_per_burst: u64::MAX,
            bursts: 1,
            burst_gap: 0,
        },
        Mode::SingleBurst { packets } => Shape {
            packets_per_burst: packets,
            bursts: 1,
            burst_gap: 0,
        },
        Mode::MultiBurst {
            packets_per_burst,
            gap,
            bursts,
        } => Shape {
            packets_per_burst,
            bursts,
            burst_gap: gap,
        },
    }
}
