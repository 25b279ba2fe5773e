//! The times of one packet group as clients read them: percentiles, and an HdrHistogram.

use allosaur_api::commands::groups::LatencyTimes;
use allosaur_engine::latency::Histogram;
use allosaur_engine::time::{MICROSECOND, Nanos};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compress, Compression, FlushCompress, Status};
use hdrhistogram::serialization::{Serializer, V2Serializer};

/// Shares of packets of which we tell how long they took at most, in percent.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// The longest time of TRex's HdrHistogram, 10 s; those that are longer count as this.
const USEC_MAX: u64 = 10_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// What a compressed V2 encoding begins with, and then its length.
const PACKED_COOKIE: u32 = 0x1c84_9314;
const PACKED_HEADER_BYTES: usize = 8;

/// Makes HdrHistograms, with room that is used again for the next group.
#[derive(Default)]
pub(in crate::control) struct Percentiles {
    encoder: Option<Encoder>,
}

struct Encoder {
    histogram: hdrhistogram::Histogram<u64>,
    serializer: V2Serializer,
    compressor: Compress,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Percentiles {
    /// Adds what the times say to `lat`: percentiles in microseconds, and `hdrh`.
    pub(in crate::control) fn describe(&mut self, times: &Histogram, lat: &mut LatencyTimes) {
        let [p50, p90, p99, p99_9] = shares(times);
        (lat.p50, lat.p90) = (Some(p50), Some(p90));
        (lat.p99, lat.p99_9) = (Some(p99), Some(p99_9));
        let encoder = self.encoder.get_or_insert_with(Encoder::new);
        lat.hdrh = encoder.encode(times);
    }
}

impl Encoder {
    fn new() -> Encoder {
        let histogram = hdrhistogram::Histogram::new_with_bounds(1, USEC_MAX, SIGNIFICANT_DIGITS);
        Encoder {
            histogram: histogram.expect("1 to ten million with three digits is a valid range"),
            serializer: V2Serializer::new(),
            compressor: Compress::new(Compression::fast(), true),
            plain: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// In the compressed V2 format, as TRex sends it: whole microseconds.
    fn encode(&mut self, times: &Histogram) -> Option<String> {
        self.histogram.reset();
        for &(time_ns, packets) in times.times() {
            let usec = (time_ns / MICROSECOND).min(USEC_MAX);
            self.histogram.record_n(usec, packets).ok()?;
        }
        self.plain.clear();
        let encoded = self.serializer.serialize(&self.histogram, &mut self.plain);
        encoded.ok()?;
        self.pack()?;
        Some(STANDARD.encode(&self.packed))
    }

    /// Compresses the plain encoding, behind a cookie and its length.
    fn pack(&mut self) -> Option<()> {
        self.packed.clear();
        self.packed.resize(PACKED_HEADER_BYTES, 0);
        // Room for all of it: what does not get smaller grows by a few bytes.
        self.packed.reserve(self.plain.len() + 64);
        self.compressor.reset();
        let (plain, packed) = (&self.plain, &mut self.packed);
        let packing = self
            .compressor
            .compress_vec(plain, packed, FlushCompress::Finish);
        if packing.ok()? != Status::StreamEnd {
            return None;
        }
        let length = (self.packed.len() - PACKED_HEADER_BYTES) as u32;
        self.packed[..4].copy_from_slice(&PACKED_COOKIE.to_be_bytes());
        self.packed[4..8].copy_from_slice(&length.to_be_bytes());
        Some(())
    }
}

/// The times of 50, 90, 99 and 99.9 % of the packets, in microseconds.
pub(in crate::control) fn shares(times: &Histogram) -> [f64; 4] {
    PERCENTS.map(|percent| hundredths_of_usec(times.percentile_ns(percent)))
}

/// Microseconds with two decimals.
pub(in crate::control) fn hundredths_of_usec(ns: Nanos) -> f64 {
    (ns as f64 / 10.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use allosaur_engine::latency::histogram::slot;
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    fn described(times: &[Nanos]) -> LatencyTimes {
        let slots = times.iter().map(|time| (slot(*time), 1));
        let histogram = Histogram::new(slots, times[0], times[times.len() - 1]);
        let mut lat = LatencyTimes::default();
        // Twice: nothing stays of the first.
        let mut percentiles = Percentiles::default();
        percentiles.describe(&histogram, &mut lat);
        percentiles.describe(&histogram, &mut lat);
        lat
    }

    fn decoded(lat: &LatencyTimes) -> hdrhistogram::Histogram<u64> {
        let text = lat.hdrh.as_ref().expect("a text");
        let bytes = STANDARD.decode(text).expect("base64");
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice());
        histogram.expect("an HdrHistogram")
    }

    #[test]
    fn percentiles_are_microseconds_with_decimals() {
        let times: Vec<_> = (1..=1000).map(|n| n * 10).collect();
        let lat = described(&times);
        assert_eq!((lat.p50, lat.p90), (Some(5.0), Some(9.0)));
        assert_eq!((lat.p99, lat.p99_9), (Some(9.9), Some(9.99)));
    }

    #[test]
    fn the_histogram_is_one_of_whole_microseconds_up_to_ten_seconds() {
        let lat = described(&[900, 1_500, 7_300_000, 60_000_000_000]);
        let histogram = decoded(&lat);
        assert_eq!((histogram.low(), histogram.high()), (1, 10_000_000));
        assert_eq!((histogram.len(), histogram.sigfig()), (4, 3));
        let counts: Vec<_> = [0, 1, 2, 7300].map(|usec| histogram.count_at(usec)).into();
        assert_eq!(counts, [1, 1, 0, 1]);
        assert!(histogram.equivalent(histogram.max(), 10_000_000));
    }
}
