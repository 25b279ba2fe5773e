//! Counters: what one thread counted of one port since the server started.

/// Makes a struct of counters that only grow, and the list of their names in the same order.
macro_rules! counters {
    (
        $(#[$about:meta])* $struct:ident;
        $($(#[$doc:meta])* $name:ident),* $(,)?
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $struct {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl $struct {
            /// The names as they are here, in the order of [`values`](Self::values).
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The values, in the order of [`NAMES`](Self::NAMES).
            pub fn values(&self) -> [u64; Self::NAMES.len()] {
                [$(self.$name),*]
            }

            /// Counters with these values, in the order of [`NAMES`](Self::NAMES).
            pub fn from_values(values: [u64; Self::NAMES.len()]) -> Self {
                let [$($name),*] = values;
                $struct { $($name),* }
            }

            /// Adds what another has counted.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}
pub(crate) use counters;

/// Upper bounds, inclusive, of the frame size classes, in bytes **with** FCS: the classes of the
/// Ethernet statistics of RFC 2819, and one for jumbo frames.
pub const SIZE_CLASS_MAX: [u64; SIZE_CLASSES] = [64, 127, 255, 511, 1023, 1518, u64::MAX];
/// The number of frame size classes.
pub const SIZE_CLASSES: usize = 7;

/// Frames and bytes in one direction of one port. Bytes are with FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Frames.
    pub packets: u64,
    /// Bytes, with 4 of FCS a frame.
    pub bytes: u64,
    /// Frames by size class, see [`SIZE_CLASS_MAX`].
    pub by_size: [u64; SIZE_CLASSES],
}

impl DirectionCounters {
    /// Counts `n` frames of `frame_bytes` each, given without FCS.
    #[inline(always)]
    pub fn count(&mut self, n: u64, frame_bytes: usize) {
        let bytes = frame_bytes as u64 + crate::time::FCS_BYTES;
        self.packets += n;
        self.bytes += n * bytes;
        self.by_size[size_class(bytes)] += n;
    }

    /// Counts a burst of frames, each of so many bytes without FCS.
    #[inline]
    pub fn count_burst(&mut self, frame_bytes: impl Iterator<Item = usize>) {
        let mut run = FrameRun::default();
        for bytes in frame_bytes {
            run.add(bytes, self);
        }
        run.end(self);
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &DirectionCounters) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        for (mine, theirs) in self.by_size.iter_mut().zip(other.by_size) {
            *mine += theirs;
        }
    }

    /// Takes off what was counted and did not happen; never more than there is.
    pub fn subtract(&mut self, other: &DirectionCounters) {
        self.packets = self.packets.saturating_sub(other.packets);
        self.bytes = self.bytes.saturating_sub(other.bytes);
        for (mine, theirs) in self.by_size.iter_mut().zip(other.by_size) {
            *mine = mine.saturating_sub(theirs);
        }
    }
}

/// Frames of a burst that follow each other and have the same length: they are counted at once. A sum
/// in memory would have each wait for the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameRun {
    frames: u64,
    /// Of each, without FCS.
    frame_bytes: usize,
}

impl FrameRun {
    /// The next frame of the burst, of so many bytes without FCS. Where its length is another one,
    /// those before it are counted.
    #[inline(always)]
    pub fn add(&mut self, frame_bytes: usize, counters: &mut DirectionCounters) {
        if frame_bytes != self.frame_bytes {
            counters.count(self.frames, self.frame_bytes);
            self.frames = 0;
            self.frame_bytes = frame_bytes;
        }
        self.frames += 1;
    }

    /// The burst is over: counts what was not counted.
    #[inline(always)]
    pub fn end(self, counters: &mut DirectionCounters) {
        counters.count(self.frames, self.frame_bytes);
    }
}

/// What a data thread counts of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitCounters {
    /// What was sent.
    pub sent: DirectionCounters,
    /// Frames that were due and that this core could not send in time.
    pub missed_packets: u64,
    /// Times that the port's queue was full and a burst had to wait.
    pub queue_full: u64,
    /// Frames that were handed to the port and could not leave it. They are not in `sent`.
    pub lost_packets: u64,
}

impl TransmitCounters {
    /// Adds what another thread counted.
    pub fn add(&mut self, other: &TransmitCounters) {
        self.sent.add(&other.sent);
        self.missed_packets += other.missed_packets;
        self.queue_full += other.queue_full;
        self.lost_packets += other.lost_packets;
    }
}

/// What one core counts of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Frames sent.
    pub packets: u64,
    /// Bytes sent, with FCS.
    pub bytes: u64,
    /// Frames that were due and that this core could not send in time.
    pub missed_packets: u64,
}

/// The size class of a frame of `bytes`, with FCS.
#[inline(always)]
pub fn size_class(bytes: u64) -> usize {
    SIZE_CLASS_MAX.partition_point(|&max| max < bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_rfc_2819() {
        let classes: Vec<usize> = [60, 64, 65, 127, 128, 511, 512, 1518, 1519, 9242]
            .map(size_class)
            .to_vec();
        assert_eq!(classes, [0, 0, 1, 1, 2, 3, 4, 5, 6, 6]);
    }

    #[test]
    fn bytes_are_counted_with_fcs() {
        let mut counters = DirectionCounters::default();
        counters.count(3, 60);
        assert_eq!(
            (counters.packets, counters.bytes, counters.by_size[0]),
            (3, 192, 3)
        );
    }

    #[test]
    fn a_burst_is_counted_as_its_frames_are() {
        let lengths = [60, 60, 1514, 60, 9000, 9000, 9000, 124];
        let mut one_by_one = DirectionCounters::default();
        lengths.iter().for_each(|&bytes| one_by_one.count(1, bytes));
        let mut counters = DirectionCounters::default();
        counters.count_burst([].into_iter());
        assert_eq!(counters, DirectionCounters::default());
        counters.count_burst(lengths.into_iter());
        assert_eq!(counters, one_by_one);
    }
}
