//! Constant bytes that programs send: kept once, however many flows send them, and described
//! where they repeat.
//!
//! Sums: each piece of memory keeps the sum of all before every 16th byte, so a slice costs two
//! of these and at most 2 × 15 bytes at its edges.

use std::collections::HashMap;
use std::sync::Arc;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SharedPayload;
use thiserror::Error;

use super::substitution::{DrawError, DrawList, DrawProblem, Drawn, DrawsSpec};

/// Most buffers of a profile.
pub const BUFFERS_MAX: usize = 1_000_000;
/// Most bytes of one buffer: 1 GiB, the largest window of TCP.
pub const BUFFER_BYTES_MAX: u64 = 1 << 30;
/// Most bytes that all buffers of a profile may keep; what only repeats counts once.
pub const BUFFERS_BYTES_MAX: u64 = 256 << 20;

/// Bytes between two sums that are kept.
const STEP: usize = 16;
/// What repeats is kept so often that it has at least so many bytes.
const FILL_BYTES: usize = 512;
/// And so much longer that each slice that a frame has room for is in one piece, wherever in what
/// repeats it begins; copying goes by pieces as long.
const FILL_OVERLAP_BYTES: usize = 9216;
/// Short buffers are kept whole though they repeat, as that is quicker, up to so many bytes each.
const WHOLE_BYTES_MAX: u64 = 64 << 10;
/// And up to so many bytes of all.
const WHOLE_ALL_BYTES_MAX: u64 = 16 << 20;

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferIndex(pub u32);

/// A buffer as the user described it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferSpec {
    /// The bytes that it begins with.
    pub base: Vec<u8>,
    /// Its size; `None`, or less than `base` has, is the size of `base`.
    pub bytes: Option<u64>,
    /// What fills it after `base`, over and over; empty: 0, 1, 2, ... 255, 0, ...
    pub fill: Vec<u8>,
}

impl BufferSpec {
    /// The bytes of the whole.
    pub fn len(&self) -> u64 {
        let base = self.base.len() as u64;
        self.bytes.map_or(base, |bytes| bytes.max(base))
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why buffers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BufferError {
    /// Too many.
    #[error("buf_list has {0} buffers; the most is {BUFFERS_MAX}: send one buffer several times")]
    TooMany(usize),
    /// One that is too long.
    #[error(
        "buf_list[{buffer}] has {bytes} bytes; the most is {BUFFER_BYTES_MAX}: send a shorter one several times"
    )]
    TooLong {
        /// Which.
        buffer: usize,
        /// Its size.
        bytes: u64,
    },
    /// More memory than there may be.
    #[error(
        "buf_list needs {0} bytes of memory; the most is {BUFFERS_BYTES_MAX}: describe what repeats by base, size and fill"
    )]
    TooLarge(u64),
    /// What connections draw.
    #[error(transparent)]
    Draws(#[from] DrawError),
}

/// All buffers of a profile.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    buffers: Vec<Buffer>,
    /// Those in which something is drawn; their variants are numbered behind all buffers.
    drawn: Vec<Drawn>,
    lists: Vec<DrawList>,
}

#[derive(Clone, Debug)]
struct Buffer {
    bytes: u32,
    base: Piece,
    /// What follows `base`, over and over; an even number of bytes.
    fill: Option<Arc<Piece>>,
}

/// Bytes in memory, with sums.
#[derive(Clone, Debug)]
struct Piece {
    /// Frames may share them.
    bytes: Arc<[u8]>,
    /// After so many bytes they repeat; what does not repeat has no more.
    period: usize,
    /// `sums[i]` is the sum of the first `i * STEP` bytes.
    sums: Box<[u16]>,
    /// The sum of all.
    sum: u16,
}

impl Buffers {
    /// Keeps buffers.
    pub fn new(specs: &[BufferSpec]) -> Result<Buffers, BufferError> {
        check(specs)?;
        Ok(Buffers::keep(specs, WHOLE_ALL_BYTES_MAX))
    }

    /// Keeps buffers, some of them whole though they repeat: up to `whole` bytes.
    fn keep(specs: &[BufferSpec], mut whole: u64) -> Buffers {
        let mut fills = HashMap::new();
        let mut buffers = Vec::with_capacity(specs.len());
        for spec in specs {
            let len = spec.len();
            let made = fills.entry(spec.fill.as_slice());
            let fill = (len > spec.base.len() as u64).then(|| {
                let fill = made.or_insert_with(|| Arc::new(Piece::repeated(&spec.fill)));
                Arc::clone(fill)
            });
            let mut buffer = Buffer {
                bytes: len as u32,
                base: Piece::new(spec.base.clone()),
                fill,
            };
            if buffer.fill.is_some() && len <= WHOLE_BYTES_MAX.min(whole) {
                whole -= len;
                let mut bytes = vec![0; len as usize];
                buffer.copy_to(0, &mut bytes);
                (buffer.base, buffer.fill) = (Piece::new(bytes), None);
            }
            buffers.push(buffer);
        }
        Buffers {
            buffers,
            ..Buffers::default()
        }
    }

    /// Keeps buffers, and what connections draw in some of them.
    pub fn with_draws(specs: &[BufferSpec], draws: &DrawsSpec) -> Result<Buffers, BufferError> {
        let mut buffers = Buffers::new(specs)?;
        let lists = draws.lists.iter().enumerate();
        let lists = lists.map(|(i, list)| DrawList::new(i, list));
        buffers.lists = lists.collect::<Result<_, _>>()?;
        let mut first = specs.len() as u64;
        for spec in &draws.buffers {
            let (buffer, count) = (spec.buffer, specs.len());
            let Some(plain) = specs.get(buffer as usize) else {
                return Err(BufferError::Draws(DrawError::Draw {
                    place: spec.place.clone(),
                    draw: 0,
                    problem: DrawProblem::Buffer { buffer, count },
                }));
            };
            let lists = (draws.lists.as_slice(), buffers.lists.as_slice());
            let drawn = Drawn::new(spec, plain.len(), first, lists)?;
            first += u64::from(drawn.variants());
            buffers.drawn.push(drawn);
        }
        Ok(buffers)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }

    /// The bytes of one.
    ///
    /// # Panics
    /// When there is no such buffer, as all methods do: a [`Program`](super::Program) names none
    /// of these.
    #[inline]
    pub fn len(&self, buffer: BufferIndex) -> u32 {
        match self.buffers.get(buffer.0 as usize) {
            Some(buffer) => buffer.bytes,
            None => self.buffers[self.drawn_of(buffer).buffer as usize].bytes,
        }
    }

    /// A buffer with draws, by its place in [`DrawsSpec::buffers`].
    pub(super) fn drawn(&self, place: usize) -> Option<&Drawn> {
        self.drawn.get(place)
    }

    /// Whose variant this is.
    #[cold]
    fn drawn_of(&self, variant: BufferIndex) -> &Drawn {
        let after = self.drawn.partition_point(|drawn| drawn.first <= variant.0);
        let place = after.checked_sub(1);
        &self.drawn[place.expect("programs name buffers that are there")]
    }

    /// Whether there is no buffer at all.
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Copies the bytes from `offset` on, as many as `to` has.
    ///
    /// # Panics
    /// When the buffer ends before.
    pub fn copy_to(&self, buffer: BufferIndex, offset: u32, to: &mut [u8]) {
        match self.buffers.get(buffer.0 as usize) {
            Some(buffer) => buffer.copy_to(offset, to),
            None => {
                let drawn = self.drawn_of(buffer);
                self.buffers[drawn.buffer as usize].copy_to(offset, to);
                drawn.write(&self.lists, buffer.0, offset, to);
            }
        }
    }

    /// All bytes with their sum, where there are so many of them, kept in one piece.
    #[inline]
    pub fn whole(&self, buffer: BufferIndex, bytes: usize) -> Option<(&[u8], Sum)> {
        let base = &self.buffers.get(buffer.0 as usize)?.base;
        let is_whole = bytes == base.bytes.len();
        is_whole.then(|| (&base.bytes[..], Sum::default().and_u16(base.sum)))
    }

    /// The sum of `bytes` bytes from `offset` on, as if the first stood at an even place.
    ///
    /// # Panics
    /// When the buffer ends before.
    pub fn sum(&self, buffer: BufferIndex, offset: u32, bytes: u32) -> Sum {
        match self.buffers.get(buffer.0 as usize) {
            Some(buffer) => buffer.sum(offset, bytes),
            None => self.sum_drawn(buffer, offset, bytes),
        }
    }

    /// The slice that [`copy_to`](Buffers::copy_to) copies, with its sum, where it is kept in one piece.
    ///
    /// # Panics
    /// When the buffer ends before.
    #[inline]
    pub fn shared(
        &self,
        buffer: BufferIndex,
        offset: u32,
        bytes: u32,
    ) -> Option<SharedPayload<'_>> {
        self.shared_run(buffer, offset, bytes, 1)?.next()
    }

    /// Up to `count` slices of `bytes` each as [`shared`](Buffers::shared) gives them, one behind the
    /// other: fewer where one is not kept in one piece.
    ///
    /// # Panics
    /// When the buffer ends before.
    #[inline]
    pub fn shared_run(
        &self,
        buffer: BufferIndex,
        offset: u32,
        bytes: u32,
        count: u32,
    ) -> Option<SharedRun<'_>> {
        let buffer = self.buffers.get(buffer.0 as usize)?;
        let bytes = bytes as usize;
        buffer.assert_holds(offset, bytes * count as usize);
        let offset = offset as usize;
        let (piece, at) = buffer.place_of(offset, bytes)?;
        Some(SharedRun {
            piece,
            repeats: buffer.base.bytes.len() <= offset,
            at,
            sum_before: piece.prefix(at),
            bytes,
            left: count,
        })
    }

    /// The same for a variant, whose bytes are read.
    fn sum_drawn(&self, variant: BufferIndex, offset: u32, bytes: u32) -> Sum {
        let mut sum = Sum::default();
        let mut piece = [0; 2048];
        let mut done = 0;
        while done < bytes {
            let count = (bytes - done).min(piece.len() as u32);
            let piece = &mut piece[..count as usize];
            self.copy_to(variant, offset + done, piece);
            sum = sum.and(piece);
            done += count;
        }
        sum
    }
}

impl Buffer {
    fn copy_to(&self, offset: u32, to: &mut [u8]) {
        self.assert_holds(offset, to.len());
        let base = &self.base.bytes;
        let mut at = offset as usize;
        let from_base = base.len().saturating_sub(at).min(to.len());
        let (first, mut rest) = to.split_at_mut(from_base);
        first.copy_from_slice(&base[at.min(base.len())..][..from_base]);
        if rest.is_empty() {
            return;
        }
        let fill = self.fill();
        let period = fill.period;
        let fill = &fill.bytes;
        at = (at + from_base - base.len()) % period;
        while !rest.is_empty() {
            let count = rest.len().min(fill.len() - at);
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&fill[at..][..count]);
            (at, rest) = ((at + count) % period, later);
        }
    }

    /// Where a slice is in one piece, if it is.
    #[inline]
    fn place_of(&self, offset: usize, bytes: usize) -> Option<(&Piece, usize)> {
        let base = self.base.bytes.len();
        if offset + bytes <= base {
            return Some((&self.base, offset));
        }
        let fill = self.fill.as_deref()?;
        let at = offset.checked_sub(base)? % fill.period;
        (at + bytes <= fill.bytes.len()).then_some((fill, at))
    }

    fn sum(&self, offset: u32, bytes: u32) -> Sum {
        self.assert_holds(offset, bytes as usize);
        let (offset, bytes) = (offset as usize, bytes as usize);
        let base = self.base.bytes.len();
        let from_base = base.saturating_sub(offset).min(bytes);
        let mut sum = 0;
        if from_base > 0 {
            sum = slice_sum(|n| self.base.prefix(n), offset, from_base);
        }
        if from_base < bytes {
            let fill = self.fill();
            let at = offset + from_base - base;
            let second = slice_sum(|n| fill.prefix_repeated(n), at, bytes - from_base);
            sum = add(sum, turned(second, from_base));
        }
        Sum::default().and_u16(sum)
    }

    fn fill(&self) -> &Piece {
        let fill = self.fill.as_deref();
        fill.expect("a buffer that is longer than its base has a fill")
    }

    fn assert_holds(&self, offset: u32, bytes: usize) {
        let end = offset as usize + bytes;
        assert!(end <= self.bytes as usize, "the buffer ends before");
    }
}

/// Slices of a buffer, see [`Buffers::shared_run`].
#[derive(Clone, Debug)]
pub struct SharedRun<'a> {
    piece: &'a Piece,
    /// It is a fill, and goes round.
    repeats: bool,
    /// Where the next slice begins.
    at: usize,
    /// The sum of all before.
    sum_before: u16,
    bytes: usize,
    left: u32,
}

impl<'a> Iterator for SharedRun<'a> {
    type Item = SharedPayload<'a>;

    #[inline]
    fn next(&mut self) -> Option<SharedPayload<'a>> {
        let piece = self.piece;
        self.left = self.left.checked_sub(1)?;
        if self.at + self.bytes > piece.bytes.len() {
            let at = self.at % piece.period;
            if !self.repeats || at + self.bytes > piece.bytes.len() {
                self.left = 0;
                return None;
            }
            (self.at, self.sum_before) = (at, piece.prefix(at));
        }
        let (at, before) = (self.at, self.sum_before);
        self.at += self.bytes;
        self.sum_before = piece.prefix(self.at);
        Some(SharedPayload {
            bytes: &piece.bytes,
            offset: at,
            len: self.bytes,
            // To subtract is to add the complement.
            sum: turned(add(self.sum_before, !before), at),
        })
    }
}

impl Piece {
    fn new(bytes: Vec<u8>) -> Piece {
        let mut sum = 0;
        let mut sums = Vec::with_capacity(bytes.len() / STEP + 1);
        sums.push(0);
        for step in bytes.chunks_exact(STEP) {
            sum = add(sum, Sum::of(step).folded());
            sums.push(sum);
        }
        Piece {
            sum: Sum::of(&bytes).folded(),
            period: bytes.len(),
            bytes: bytes.into(),
            sums: sums.into_boxed_slice(),
        }
    }

    /// A fill, so often that it is long and has an even number of bytes.
    fn repeated(fill: &[u8]) -> Piece {
        let counting: Vec<u8> = (0..=u8::MAX).collect();
        let fill = if fill.is_empty() { &counting } else { fill };
        let times = FILL_BYTES.div_ceil(fill.len()).next_multiple_of(2);
        let period = fill.len() * times;
        let more = FILL_OVERLAP_BYTES.div_ceil(fill.len());
        Piece {
            period,
            ..Piece::new(fill.repeat(times + more))
        }
    }

    /// The sum of the first `n` bytes.
    #[inline]
    fn prefix(&self, n: usize) -> u16 {
        let (step, rest) = (n / STEP, n % STEP);
        let begun = &self.bytes[step * STEP..];
        let sum = match begun.first_chunk() {
            Some(whole) => {
                let mask = !(u128::MAX << (8 * rest));
                let first = u128::from_le_bytes(*whole) & mask;
                Sum::of_header(&first.to_le_bytes())
            }
            None => Sum::of(&begun[..rest]),
        };
        add(self.sums[step], sum.folded())
    }

    /// The sum of the first `n` bytes of this over and over.
    fn prefix_repeated(&self, n: usize) -> u16 {
        let (whole, rest) = (n / self.period, n % self.period);
        let all = u64::from(self.prefix(self.period));
        // Sums of ones' complement are numbers modulo 2^16 - 1.
        let sum = all * (whole as u64 % 0xffff) % 0xffff;
        add(sum as u16, self.prefix(rest))
    }
}

/// What must hold before memory is taken.
fn check(specs: &[BufferSpec]) -> Result<(), BufferError> {
    if specs.len() > BUFFERS_MAX {
        return Err(BufferError::TooMany(specs.len()));
    }
    let too_long = |spec: &BufferSpec| spec.len() > BUFFER_BYTES_MAX;
    if let Some(buffer) = specs.iter().position(too_long) {
        let bytes = specs[buffer].len();
        return Err(BufferError::TooLong { buffer, bytes });
    }
    let kept = |spec: &BufferSpec| spec.base.len() as u64 + 2 * spec.fill.len() as u64;
    let kept = specs.iter().map(kept).sum();
    if kept > BUFFERS_BYTES_MAX {
        return Err(BufferError::TooLarge(kept));
    }
    Ok(())
}

/// The sum of a slice from the sums of what is before its two ends.
fn slice_sum(prefix: impl Fn(usize) -> u16, offset: usize, bytes: usize) -> u16 {
    // To subtract is to add the complement.
    let sum = add(prefix(offset + bytes), !prefix(offset));
    turned(sum, offset)
}

/// A sum whose bytes stand at odd places instead of even ones, if `places` is odd (RFC 1071,
/// section 2(B)).
fn turned(sum: u16, places: usize) -> u16 {
    if places % 2 == 1 {
        sum.swap_bytes()
    } else {
        sum
    }
}

fn add(left: u16, right: u16) -> u16 {
    let (sum, carry) = left.overflowing_add(right);
    sum + u16::from(carry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The whole of a buffer, the plain way.
    fn expanded(spec: &BufferSpec) -> Vec<u8> {
        let counting: Vec<u8> = (0..=u8::MAX).collect();
        let fill = if spec.fill.is_empty() {
            &counting
        } else {
            &spec.fill
        };
        let mut bytes = spec.base.clone();
        let mut fill = fill.iter().cycle();
        while (bytes.len() as u64) < spec.len() {
            bytes.push(*fill.next().expect("a cycle never ends"));
        }
        bytes
    }

    fn one(base: &[u8], bytes: u64, fill: &[u8]) -> BufferSpec {
        BufferSpec {
            base: base.to_vec(),
            bytes: Some(bytes),
            fill: fill.to_vec(),
        }
    }

    fn copied(buffers: &Buffers, index: u32, offset: u32, bytes: usize) -> Vec<u8> {
        let mut to = vec![0xee; bytes];
        buffers.copy_to(BufferIndex(index), offset, &mut to);
        to
    }

    #[test]
    fn a_buffer_is_filled_after_its_base() {
        let specs = [
            one(b"GET ", 9, b"xy"),
            one(b"", 300, b""),
            one(b"longer", 3, b"x"),
        ];
        let buffers = Buffers::new(&specs).expect("small buffers");
        assert_eq!(copied(&buffers, 0, 0, 9), b"GET xyxyx");
        assert_eq!(copied(&buffers, 1, 250, 10)[4..], [254, 255, 0, 1, 2, 3]);
        assert_eq!(buffers.len(BufferIndex(2)), 6);
    }

    #[test]
    fn a_gigabyte_takes_no_memory() {
        let huge = Buffers::new(&[one(b"a", BUFFER_BYTES_MAX, b"bcd")]).expect("it is described");
        let end = BUFFER_BYTES_MAX as u32;
        assert_eq!(copied(&huge, 0, end - 4, 4).len(), 4);
        assert!(huge.buffers[0].base.bytes.len() + huge.buffers[0].fill().bytes.len() < 10_000);
        let sum = huge.sum(BufferIndex(0), 1, 3);
        assert_eq!(sum.folded(), Sum::of(b"bcd").folded());
    }

    #[test]
    fn limits_are_said() {
        let long = one(b"", BUFFER_BYTES_MAX + 1, b"");
        let error = Buffers::new(&[BufferSpec::default(), long]).expect_err("too long");
        assert!(error.to_string().contains("buf_list[1]"), "{error}");
        assert!(error.to_string().contains("1073741824"), "{error}");
        let many = vec![BufferSpec::default(); BUFFERS_MAX + 1];
        assert_eq!(
            Buffers::new(&many).expect_err("too many"),
            BufferError::TooMany(BUFFERS_MAX + 1)
        );
    }

    #[test]
    #[should_panic(expected = "the buffer ends before")]
    fn nothing_is_behind_the_end() {
        let buffers = Buffers::new(&[one(b"abc", 3, b"")]).expect("small");
        copied(&buffers, 0, 1, 3);
    }

    proptest! {
        #[test]
        fn slices_and_their_sums_are_those_of_the_whole(
            base in prop::collection::vec(any::<u8>(), 0..700),
            more in 0_u64..20_000,
            fill in prop::collection::vec(any::<u8>(), 0..700),
            kept in prop::sample::select(vec![0_u64, 10_000, 1 << 20]),
            from in any::<prop::sample::Index>(),
            to in any::<prop::sample::Index>(),
        ) {
            let spec = one(&base, base.len() as u64 + more, &fill);
            let whole = expanded(&spec);
            let (a, b) = (from.index(whole.len() + 1), to.index(whole.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let buffers = Buffers::keep(&[BufferSpec::default(), spec], kept);
            let slice = copied(&buffers, 1, from as u32, to - from);
            prop_assert!(slice == whole[from..to]);
            let sum = buffers.sum(BufferIndex(1), from as u32, (to - from) as u32);
            // Zero has two forms; with anything else added they are the same.
            let header = Sum::default().and_u16(0x4500);
            let expected = header.and(&whole[from..to]).checksum();
            prop_assert_eq!(header.and_sum(sum).checksum(), expected);
        }

        #[test]
        fn what_frames_share_is_the_whole_in_order(
            base in prop::collection::vec(any::<u8>(), 0..3000),
            more in 0_u64..40_000,
            fill in prop::collection::vec(any::<u8>(), 0..700),
            kept in prop::sample::select(vec![0_u64, 1 << 20]),
            from in any::<prop::sample::Index>(),
            bytes in 1_usize..3000,
        ) {
            let spec = one(&base, base.len() as u64 + more, &fill);
            let whole = expanded(&spec);
            let buffers = Buffers::keep(&[BufferSpec::default(), spec], kept);
            let from = from.index(whole.len() + 1);
            let count = (whole.len() - from) / bytes;
            let (offset, len, most) = (from as u32, bytes as u32, count as u32);
            let run = (count > 0).then(|| buffers.shared_run(BufferIndex(1), offset, len, most));
            let slices: Vec<_> = run.flatten().into_iter().flatten().collect();
            for (slice, expected) in slices.iter().zip(whole[from..].chunks_exact(bytes)) {
                prop_assert_eq!(slice.slice(), expected);
                prop_assert_eq!(slice.sum % 0xffff, Sum::of(expected).folded() % 0xffff);
            }
            // Only at the end of the base it breaks off.
            let in_base = base.len().saturating_sub(from) / bytes;
            let is_whole = kept > 0 || base.len() <= from || in_base >= count;
            let expected = if is_whole { count } else { in_base };
            prop_assert_eq!(slices.len(), expected);
        }
    }
}
