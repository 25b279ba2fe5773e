//! Counters of TCP, by BSD's names: those of the engine, in the reference's order.

use std::sync::LazyLock;

use crate::counters::{CounterMeta, Counters};
use allosaur_engine::tcp;

/// What is counted of the connections of a client.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(super) tcp: tcp::TcpCounters,
    /// Writes while another one waits for room.
    pub(super) write_while_drain: u32,
    /// Writes and ends after the end.
    pub(super) already_closed: u32,
    /// Connections that we asked for and that came to be.
    pub(super) opened: u32,
}

/// Those that are no counter of the engine as it is.
const OTHERS: [&str; 5] = [
    "write_while_drain",
    "already_closed",
    "rcvackpack",
    "rcvackbyte_of",
    "predack",
];

/// Where the engine has each counter; nowhere those that it does not have as they are.
static PLACES: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let own = TcpCounters::META.iter().map(|meta| meta.name);
    own.map(|name| engine_place(name).filter(|_| !OTHERS.contains(&name)))
        .collect()
});

fn engine_place(name: &str) -> Option<usize> {
    let name = name.trim_start_matches("tcps_");
    let mut names = tcp::TcpCounters::NAMES.iter();
    names.position(|other| *other == name)
}

impl Counted {
    fn of_engine(&self, name: &str) -> u64 {
        engine_place(name).map_or(0, |place| self.tcp.values()[place])
    }
}

impl Counters for Counted {
    fn name(&self) -> &'static str {
        TcpCounters::default().name()
    }

    fn meta(&self) -> &'static [CounterMeta] {
        TcpCounters::default().meta()
    }

    fn value(&self, index: usize) -> u64 {
        let (tcp, opened) = (&self.tcp, u64::from(self.opened));
        match self.meta()[index].name {
            "write_while_drain" => self.write_while_drain.into(),
            "already_closed" => self.already_closed.into(),
            // The reference does not count that its SYN was acknowledged.
            "rcvackpack" => tcp.rcvackpack.saturating_sub(opened),
            // Nor does it count data among what is acknowledged beside data.
            "rcvackbyte_of" => tcp
                .rcvackbyte_of
                .saturating_sub(tcp.rcvackbyte)
                .saturating_sub(opened),
            // An error there, and here nothing wrong.
            "predack" => 0,
            name => self.of_engine(name),
        }
    }

    fn add_to(&self, sums: &mut [u64]) {
        let values = self.tcp.values();
        for ((index, place), sum) in PLACES.iter().enumerate().zip(sums) {
            *sum += place.map_or_else(|| self.value(index), |place| values[place]);
        }
    }

    fn clear(&mut self) {
        *self = Counted::default();
    }
}

crate::counters! {
    /// Counters of TCP of a client.
    pub(crate) struct TcpCounters: u32, "tcp" {
        write_while_drain: "write_while_drain", "write_while_drain", "event", Error;
        already_opened: "already_opened", "already_opened", "event", Error;
        already_closed: "already_closed", "already_closed", "event", Error;
        rx_parse_err: "rx_parse_err", "rx parsing error", "event", Error;
        connattempt: "connattempt", "connect attempt", "event", Info;
        accepts: "accepts", "accepts", "event", Info;
        connects: "connects", "connections established", "event", Info;
        segstimed: "segstimed", "segs where we tried to get rtt", "event", Info;
        rttupdated: "rttupdated", "rtt times we succeeded", "event", Info;
        delack: "delack", "delayed acks sent", "event", Info;
        sndtotal: "sndtotal", "total packets sent", "pkts", Info;
        sndpack: "sndpack", "data packets sent", "pkts", Info;
        rcvoopack: "rcvoopack", "out-of-order packets received", "pkts", Error;
        rcvoobyte: "rcvoobyte", "out-of-order bytes received", "bytes", Error;
        rcvpackafterwin: "rcvpackafterwin", "packets with data after window", "pkts", Error;
        rcvbyteafterwin: "rcvbyteafterwin", "bytes rcvd after window ", "event", Error;
        rcvafterclose: "rcvafterclose", "packets rcvd after close", "event", Error;
        rcvwinprobe: "rcvwinprobe", "rcvd window probe packets", "event", Error;
        rcvdupack: "rcvdupack", "rcvd duplicate acks", "event", Error;
        rcvacktoomuch: "rcvacktoomuch", "rcvd acks for unsent data", "event", Error;
        rcvwinupd: "rcvwinupd", "rcvd window update packets", "event", Error;
        pawsdrop: "pawsdrop", "segments dropped due to PAWS", "event", Error;
        predack: "predack", "times hdr predict ok for acks", "event", Error;
        persistdrop: "persistdrop", "timeout in persist state", "event", Error;
        badsyn: "badsyn", "bogus SYN, e.g. premature ACK", "event", Error;
        tcps_reasalloc: "tcps_reasalloc", "allocate tcp reassembly object  ", "event", Error;
        reasfree: "reasfree", "free tcp reasembly object  ", "event", Error;
        nombuf: "nombuf", "no mbuf for tcp - drop the packets ", "event", Error;
        rcvackbyte_of: "rcvackbyte_of", "bytes acked by rcvd acks ", "pkts", Info;
        sndrexmitpack: "sndrexmitpack", "data packets retransmitted ", "pkts", Error;
        sndrexmitbyte: "sndrexmitbyte", "data bytes retransmitted", "bytes", Error;
        sndprobe: "sndprobe", "window probes sent", "pkts", Info;
        sndurg: "sndurg", "packets sent with URG only", "pkts", Info;
        sndwinup: "sndwinup", "window update-only packets sent", "pkts", Info;
        rcvbadsum: "rcvbadsum", "packets received with ccksum errs", "pkts", Error;
        rcvbadoff: "rcvbadoff", "packets received with bad offset ", "pkts", Error;
        rcvshort: "rcvshort", "packets received too short", "pkts", Error;
        tcps_rcvduppack: "tcps_rcvduppack", "duplicate-only packets received  ", "pkts", Error;
        rcvdupbyte: "rcvdupbyte", "duplicate-only bytes received ", "bytes", Info;
        rcvpartduppack: "rcvpartduppack", "packets with some duplicate data ", "event", Error;
        rcvpartdupbyte: "rcvpartdupbyte", "dup. bytes in part-dup. packets ", "event", Error;
        rcvoopackdrop: "rcvoopackdrop", "OOO bytes drop due to queue len ", "event", Error;
        rcvoobytesdrop: "rcvoobytesdrop", "OOO bytes drop due to queue len ", "event", Error;
        drops: "drops", "connections dropped ", "event", Error;
        conndrops: "conndrops", "embryonic connections dropped ", "event", Error;
        timeoutdrop: "timeoutdrop", "conn. dropped in rxmt timeout", "event", Error;
        rexmttimeo: "rexmttimeo", "retransmit timeouts", "event", Error;
        rexmttimeo_syn: "rexmttimeo_syn", "retransmit SYN timeouts", "event", Error;
        persisttimeo: "persisttimeo", "persist timeouts", "event", Info;
        keeptimeo: "keeptimeo", "keepalive timeouts", "event", Info;
        keepprobe: "keepprobe", "keepalive probes sent", "event", Info;
        keepdrops: "keepdrops", "connections dropped in keepalive", "event", Error;
        preddat: "preddat", "times hdr predict ok for data pkts", "event", Info;
        rcvackbyte: "rcvackbyte", "bytes acked by rcvd acks", "pkts", Info;
        rcvackpack: "rcvackpack", "rcvd ack packets", "pkts", Info;
        rcvbyte: "rcvbyte", "bytes received in sequence", "bytes", Info;
        rcvpack: "rcvpack", "packets received in sequence", "pkts", Info;
        rcvtotal: "rcvtotal", "total packets received ", "pkts", Info;
        sndacks: "sndacks", "ack-only packets sent", "pkts", Info;
        sndctrl: "sndctrl", "control (SYN|FIN|RST) packets sent ", "pkts", Info;
        sndbyte_ok: "sndbyte_ok", "data bytes sent by tcp ", "bytes", Info;
        sndbyte: "sndbyte", "data bytes sent by application layer", "bytes", Info;
    }
}
