//! What the other files have in common: streams that are easy to write, and engines that run them.

use allosaur_engine::encapsulation::Tunnel;
use allosaur_engine::flow_stats::{Tagging, VxlanPorts};
use allosaur_engine::stateless::Change;
use allosaur_engine::stream::{
    CompileError, CoreShare, DestinationMac, Mode, Profile, ProfileKey, Rate, StreamId,
    StreamPortInfo, StreamSpec,
};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_engine::vm::Checksums;
use allosaur_engine::{ProfileEvent, StatelessCommand, StatelessEngine};
use allosaur_testkit::recording::{Recording, Sent};

pub(crate) const KEY: ProfileKey = ProfileKey(7);

pub(crate) fn facts(data_cores: usize) -> StreamPortInfo {
    StreamPortInfo {
        line_rate_bps: 10e9,
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        checksums: Checksums::Complete,
        data_cores,
        marking: Some(Tagging::Server),
        vxlan: VxlanPorts::STANDARD,
        tunnel: None,
    }
}

/// A continuous stream at 1000 packets a second; the last byte of its packet is its number.
pub(crate) fn stream(id: StreamId) -> StreamSpec {
    let mut packet = vec![0; 60];
    packet[59] = id as u8;
    StreamSpec {
        id,
        enabled: true,
        self_start: true,
        next: None,
        action_count: 0,
        start_delay: 0,
        scales_delay: false,
        mode: Mode::Continuous,
        rate: Rate::PacketsPerSecond(1000.0),
        packet,
        keep_source_mac: false,
        destination_mac: DestinationMac::Port,
        dummy: false,
        start_paused: false,
        random_seed: 1,
        core: None,
        rule: None,
        program: Vec::new(),
    }
}

pub(crate) fn burst(id: StreamId, packets: u64) -> StreamSpec {
    StreamSpec {
        mode: Mode::SingleBurst { packets },
        ..stream(id)
    }
}

/// One engine on one port that sends into a recording.
pub(crate) struct Bench {
    pub(crate) engine: StatelessEngine,
    pub(crate) tx_queues: Recording,
    /// Of the port.
    pub(crate) tunnel: Option<Tunnel>,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench {
            engine: StatelessEngine::new(1, 0),
            tx_queues: Recording::default(),
            tunnel: None,
        }
    }

    pub(crate) fn start(
        &mut self,
        streams: &[StreamSpec],
        share: CoreShare,
        duration: Option<Nanos>,
    ) -> Result<(), CompileError> {
        self.launch(streams, share, 0, duration)
    }

    /// Starts later than now, on one core, without end.
    pub(crate) fn start_at(&mut self, streams: &[StreamSpec], start_at: Nanos) {
        let started = self.launch(streams, CoreShare::ONLY, start_at, None);
        started.expect("the streams are right");
    }

    fn launch(
        &mut self,
        streams: &[StreamSpec],
        share: CoreShare,
        start_at: Nanos,
        duration: Option<Nanos>,
    ) -> Result<(), CompileError> {
        let port = StreamPortInfo {
            tunnel: self.tunnel,
            ..facts(share.cores)
        };
        let profile = Profile::compile(streams, &port)?;
        let program = Box::new(profile.core_program(1.0, share));
        let start = StatelessCommand::StartProfile {
            port: 0,
            profile: KEY,
            program,
            start_at,
            duration,
        };
        self.engine.handle_command(0, start, &mut self.tx_queues);
        Ok(())
    }

    /// Tells the engine at `now` of a change from `at` on.
    pub(crate) fn change(&mut self, now: Nanos, at: Nanos, change: Change) {
        let command = StatelessCommand::ChangeProfile {
            port: 0,
            profile: KEY,
            at,
            change,
        };
        self.engine
            .handle_command(now, command, &mut self.tx_queues);
    }

    /// Runs on time until `until`, or until nothing is left.
    pub(crate) fn run_until(&mut self, until: Nanos) {
        let mut turns = 0u64;
        while let Some(next) = self.engine.poll_timeout().filter(|&next| next <= until) {
            turns += 1;
            assert!(turns < 10_000_000, "no progress at {next} ns");
            self.engine.poll_transmit(next, &mut self.tx_queues);
        }
    }

    /// Everything that is due at `now`, as a thread that was away would find it.
    pub(crate) fn catch_up(&mut self, now: Nanos) {
        while self.engine.poll_timeout().is_some_and(|next| next <= now) {
            self.engine.poll_transmit(now, &mut self.tx_queues);
        }
    }

    pub(crate) fn events(&mut self) -> Vec<ProfileEvent> {
        std::iter::from_fn(|| self.engine.poll_event()).collect()
    }
}

/// What one core sends of `streams` in ten seconds: time in microseconds and stream number.
pub(crate) fn sent_by(streams: &[StreamSpec], duration: Option<Nanos>) -> Vec<(u64, u8)> {
    let mut bench = Bench::new();
    bench
        .start(streams, CoreShare::ONLY, duration)
        .expect("the streams are right");
    bench.run_until(10 * SECOND);
    let packets = bench.tx_queues.take();
    packets
        .iter()
        .map(|sent| (sent.at / 1000, sent.bytes[59]))
        .collect()
}

/// In the order of time, and of bytes where that is the same.
pub(crate) fn sorted(mut sent: Vec<Sent>) -> Vec<Sent> {
    sent.sort_by(|a, b| (a.at, &a.bytes).cmp(&(b.at, &b.bytes)));
    sent
}
