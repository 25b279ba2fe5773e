//! How TCP and IP behave: what may be set, by which name, and in which range.

use crate::app::Transport;
use crate::tcp;

/// The bits of a type of service that are not those of ECN (RFC 2474, section 3).
const DSCP: u8 = !0b11;

/// What may be set, by its place in [`TUNABLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table says what each is")]
pub enum Tunable {
    RampupSec,
    Tos,
    Ttl,
    DontUseInboundMac,
    Ipv6Enable,
    Mss,
    InitialWindow,
    ReceiveBuffer,
    TransmitBuffer,
    NoDelay,
    NoDelayCounter,
    RetransmitThreshold,
    Rfc1323,
    Sack,
    CongestionControl,
    Ecn,
    ReassemblyQueue,
    KeepInit,
    KeepIdle,
    KeepInterval,
    KeepCount,
    Blackhole,
    DelayedAck,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct TunableRow {
    /// Which.
    pub tunable: Tunable,
    /// The object that it is in.
    pub section: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
    /// Whether templates may have their own.
    pub per_template: bool,
}

const fn row(
    tunable: Tunable,
    (section, name): (&'static str, &'static str),
    (min, max): (u64, u64),
    per_template: bool,
) -> TunableRow {
    TunableRow {
        tunable,
        section,
        name,
        min,
        max,
        per_template,
    }
}

/// All tunables that are numbers, in the order of [`Tunable`]. The ranges are TRex's, but that a
/// segment may be as short as a byte (TRex says 10 and then runs with 1).
#[rustfmt::skip]
pub const TUNABLES: [TunableRow; 23] = [
    row(Tunable::RampupSec, ("scheduler", "rampup_sec"), (3, 60_000), false),
    // The lowest bit is always 0: some cards keep it for themselves.
    row(Tunable::Tos, ("ip", "tos"), (0, 255), true),
    // Above 127 is 127.
    row(Tunable::Ttl, ("ip", "ttl"), (0, 255), true),
    row(Tunable::DontUseInboundMac, ("ip", "dont_use_inbound_mac"), (0, 1), true),
    row(Tunable::Ipv6Enable, ("ipv6", "enable"), (0, 1), true),
    row(Tunable::Mss, ("tcp", "mss"), (1, 9216), true),
    row(Tunable::InitialWindow, ("tcp", "initwnd"), (1, 20), true),
    row(Tunable::ReceiveBuffer, ("tcp", "rxbufsize"), (1 << 10, 1 << 30), true),
    row(Tunable::TransmitBuffer, ("tcp", "txbufsize"), (1 << 10, 1 << 30), true),
    row(Tunable::NoDelay, ("tcp", "no_delay"), (0, 3), true),
    row(Tunable::NoDelayCounter, ("tcp", "no_delay_counter"), (0, 65_533), true),
    row(Tunable::RetransmitThreshold, ("tcp", "rexmtthresh"), (1, 10), false),
    row(Tunable::Rfc1323, ("tcp", "do_rfc1323"), (0, 1), false),
    row(Tunable::Sack, ("tcp", "do_sack"), (0, 1), false),
    row(Tunable::CongestionControl, ("tcp", "cc_algo"), (0, 1), false),
    row(Tunable::Ecn, ("tcp", "do_ecn"), (0, 2), false),
    row(Tunable::ReassemblyQueue, ("tcp", "reass_maxqlen"), (0, 1000), false),
    row(Tunable::KeepInit, ("tcp", "keepinit"), (2, 65_533), false),
    row(Tunable::KeepIdle, ("tcp", "keepidle"), (2, 65_533), false),
    row(Tunable::KeepInterval, ("tcp", "keepintvl"), (2, 65_533), false),
    row(Tunable::KeepCount, ("tcp", "keepcnt"), (1, 255), false),
    row(Tunable::Blackhole, ("tcp", "blackhole"), (0, 2), false),
    row(Tunable::DelayedAck, ("tcp", "delay_ack_msec"), (20, 50_000), false),
];

/// What is set, of a side of a profile or of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunablesSpec {
    values: [Option<u64>; TUNABLES.len()],
    /// `ipv6.src_msb`: what client addresses begin with.
    pub source_prefix: Option<[u8; 16]>,
    /// `ipv6.dst_msb`: what server addresses begin with.
    pub destination_prefix: Option<[u8; 16]>,
}

impl TunablesSpec {
    /// Sets one.
    pub fn set(&mut self, tunable: Tunable, value: u64) {
        self.values[tunable as usize] = Some(value);
    }

    /// One, if it is set.
    pub fn value(&self, tunable: Tunable) -> Option<u64> {
        self.values[tunable as usize]
    }

    /// All that are set and out of their range.
    pub(super) fn out_of_range(&self) -> impl Iterator<Item = (&'static TunableRow, u64)> + '_ {
        let rows = TUNABLES.iter().zip(self.values);
        rows.filter_map(|(row, value)| {
            let value = value.filter(|value| !(row.min..=row.max).contains(value))?;
            Some((row, value))
        })
    }

    /// All that are set and belong to no template alone.
    pub(super) fn global_only(&self) -> impl Iterator<Item = &'static TunableRow> + '_ {
        let rows = TUNABLES.iter().zip(self.values);
        rows.filter(|(row, value)| value.is_some() && !row.per_template)
            .map(|(row, _)| row)
    }
}

/// Who gets a reset for a segment that belongs to no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blackhole {
    /// Everybody.
    #[default]
    Never,
    /// Only who sends a SYN.
    SynOnly,
    /// Nobody.
    Always,
}

/// What IPv6 addresses begin with; the last 32 bits come from pools.
///
/// The default is `::`, as TRex's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv6Prefixes {
    /// A client's.
    pub client: [u8; 12],
    /// A server's.
    pub server: [u8; 12],
}

/// How one side of one template behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct SideTunables {
    /// Its TCP.
    pub tcp: tcp::Tunables,
    /// The type of service of its packets. The two low bits are the user's, too (TRex drops the
    /// lowest), but where TCP itself sets them, for ECN (RFC 3168, section 5): there they are 0.
    pub tos: u8,
    /// The time to live of its packets, if it is set.
    pub ttl: Option<u8>,
    /// Whether a server answers to its gateway instead of to the MAC that asked.
    pub dont_use_inbound_mac: bool,
    /// Whether it uses IPv6.
    pub ipv6: bool,
    /// What its IPv6 addresses begin with.
    pub prefixes: Ipv6Prefixes,
    /// Who gets resets.
    pub blackhole: Blackhole,
}

impl SideTunables {
    /// What a template over `transport` has: its own, else its side's, else the default.
    pub(super) fn resolve(
        side: &TunablesSpec,
        template: &TunablesSpec,
        transport: Transport,
    ) -> SideTunables {
        let value = |tunable| template.value(tunable).or(side.value(tunable));
        let ttl = value(Tunable::Ttl).filter(|ttl| *ttl > 0);
        // A side that says it says it for all.
        let ipv6 = side
            .value(Tunable::Ipv6Enable)
            .or(template.value(Tunable::Ipv6Enable));
        let default = Ipv6Prefixes::default();
        let prefix = |one: Option<[u8; 16]>, all: Option<[u8; 16]>, none: [u8; 12]| {
            let prefix = one.or(all);
            prefix.map_or(none, |bytes| {
                *bytes.first_chunk().expect("16 bytes begin with 12")
            })
        };
        let tcp = tcp_tunables(value);
        let tos = value(Tunable::Tos).unwrap_or(0) as u8;
        let does_ecn = transport == Transport::Stream && tcp.ecn != tcp::Ecn::Off;
        SideTunables {
            tcp,
            tos: if does_ecn { tos & DSCP } else { tos },
            ttl: ttl.map(|ttl| ttl.min(0x7f) as u8),
            dont_use_inbound_mac: value(Tunable::DontUseInboundMac) == Some(1),
            ipv6: ipv6 == Some(1),
            prefixes: Ipv6Prefixes {
                client: prefix(template.source_prefix, side.source_prefix, default.client),
                server: prefix(
                    template.destination_prefix,
                    side.destination_prefix,
                    default.server,
                ),
            },
            blackhole: match value(Tunable::Blackhole) {
                Some(1) => Blackhole::SynOnly,
                Some(2) => Blackhole::Always,
                _ => Blackhole::Never,
            },
        }
    }
}

fn tcp_tunables(value: impl Fn(Tunable) -> Option<u64>) -> tcp::Tunables {
    let default = tcp::Tunables::default();
    let number = |tunable, default: u32| value(tunable).map_or(default, |value| value as u32);
    let is_on = |tunable, default: bool| value(tunable).map_or(default, |value| value == 1);
    let seconds = |tunable, default_ms: u32| {
        value(tunable).map_or(default_ms, |seconds| seconds as u32 * 1000)
    };
    let no_delay = value(Tunable::NoDelay).unwrap_or(0);
    tcp::Tunables {
        mss_bytes: number(Tunable::Mss, default.mss_bytes.into()) as u16,
        initial_window_segments: number(
            Tunable::InitialWindow,
            default.initial_window_segments.into(),
        ) as u8,
        receive_buffer_bytes: number(Tunable::ReceiveBuffer, default.receive_buffer_bytes),
        transmit_buffer_bytes: number(Tunable::TransmitBuffer, default.transmit_buffer_bytes),
        no_delay: no_delay & 1 != 0,
        always_push: no_delay & 2 != 0,
        acknowledge_bytes: number(Tunable::NoDelayCounter, default.acknowledge_bytes.into()) as u16,
        duplicates_max: number(Tunable::RetransmitThreshold, default.duplicates_max.into()) as u8,
        rfc1323: is_on(Tunable::Rfc1323, default.rfc1323),
        sack: is_on(Tunable::Sack, default.sack),
        congestion: match value(Tunable::CongestionControl) {
            Some(1) => tcp::CongestionAlgorithm::Cubic,
            _ => default.congestion,
        },
        ecn: match value(Tunable::Ecn) {
            Some(1) => tcp::Ecn::Active,
            Some(2) => tcp::Ecn::Passive,
            _ => default.ecn,
        },
        reassembly_pieces_max: number(
            Tunable::ReassemblyQueue,
            default.reassembly_pieces_max.into(),
        ) as u16,
        connect_timeout_ms: seconds(Tunable::KeepInit, default.connect_timeout_ms),
        keepalive_idle_ms: seconds(Tunable::KeepIdle, default.keepalive_idle_ms),
        keepalive_interval_ms: seconds(Tunable::KeepInterval, default.keepalive_interval_ms),
        keepalive_probes_max: number(Tunable::KeepCount, default.keepalive_probes_max.into()) as u8,
        delayed_ack_ms: number(Tunable::DelayedAck, default.delayed_ack_ms),
        time_wait_ms: default.time_wait_ms,
        patient: default.patient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Transport = Transport::Stream;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in TUNABLES.iter().enumerate() {
            assert_eq!(row.tunable as usize, i, "{}", row.name);
        }
    }

    #[test]
    fn a_template_wins_over_its_side_over_the_default() {
        let (mut side, mut template) = (TunablesSpec::default(), TunablesSpec::default());
        let resolve = |side: &_, template: &_| SideTunables::resolve(side, template, STREAM);
        assert_eq!(resolve(&side, &template).tcp, tcp::Tunables::default());
        side.set(Tunable::Mss, 1000);
        side.set(Tunable::KeepIdle, 65_533);
        template.set(Tunable::Mss, 500);
        let tcp = resolve(&side, &template).tcp;
        assert_eq!((tcp.mss_bytes, tcp.keepalive_idle_ms), (500, 65_533_000));
    }

    #[test]
    fn ip_and_ipv6_follow_their_own_rules() {
        let (mut side, mut template) = (TunablesSpec::default(), TunablesSpec::default());
        template.set(Tunable::Tos, 131);
        template.set(Tunable::Ttl, 255);
        template.set(Tunable::Ipv6Enable, 1);
        let mut prefix = [7; 16];
        prefix[12..].fill(9);
        template.source_prefix = Some(prefix);
        let found = SideTunables::resolve(&side, &template, STREAM);
        assert_eq!((found.tos, found.ttl, found.ipv6), (131, Some(127), true));
        assert_eq!(found.prefixes.client, [7; 12]);
        assert_eq!(found.prefixes.server, Ipv6Prefixes::default().server);
        side.set(Tunable::Ipv6Enable, 0);
        assert!(!SideTunables::resolve(&side, &template, STREAM).ipv6);
        template.set(Tunable::Ttl, 0);
        assert_eq!(SideTunables::resolve(&side, &template, STREAM).ttl, None);
    }

    #[test]
    fn the_low_bits_of_tos_are_the_users_unless_tcp_does_ecn() {
        let tos = |tos, ecn, transport| {
            let mut side = TunablesSpec::default();
            side.set(Tunable::Tos, tos);
            side.set(Tunable::Ecn, ecn);
            SideTunables::resolve(&side, &TunablesSpec::default(), transport).tos
        };
        for wanted in [2, 3, 131, 186] {
            assert_eq!(tos(wanted, 0, STREAM), wanted as u8);
            assert_eq!(tos(wanted, 1, STREAM), wanted as u8 & !3);
            assert_eq!(tos(wanted, 2, STREAM), wanted as u8 & !3);
            assert_eq!(tos(wanted, 1, Transport::Datagram), wanted as u8);
        }
    }

    #[test]
    fn ranges_are_kept() {
        let mut spec = TunablesSpec::default();
        for row in &TUNABLES {
            spec.set(row.tunable, row.max);
        }
        assert_eq!(spec.out_of_range().count(), 0);
        for row in &TUNABLES {
            spec.set(row.tunable, row.max + 1);
        }
        assert_eq!(spec.out_of_range().count(), TUNABLES.len());
    }
}
