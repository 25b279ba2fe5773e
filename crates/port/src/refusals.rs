//! What becomes of a frame that the kernel refuses: whether its queue is full now, so that it is offered
//! again, or it can never leave, so that it is lost and counted and the next one goes.
//!
//! The kernel tells the two apart nowhere: a packet socket says ENOBUFS and an AF_XDP socket EBUSY when
//! a device's queue is full, when the other end has no link, and when a frame is longer than the MTU of
//! the other end of a veth. What can be told is how long it lasts. So a frame is given up that is the
//! oldest of its queue and was refused [`TRIES`] times, [`TRY_GAP_NS`] apart or more, while the
//! interface had a link and nothing else left. Frames that are as long are then given up when they are
//! refused for the first time, until one of them leaves. Without a link frames wait for it, as long as
//! there is traffic.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use allosaur_netdev::interface::{LinkQuery, LinkState};

/// How often a frame is refused before it is given up.
const TRIES: u32 = 50;
/// Refusals that follow each other faster count once: the process may stand still between two, and
/// then the kernel, too, had no time to empty its queue.
const TRY_GAP_NS: u64 = 1_000_000;
/// How long a queue waits before it offers a frame again, first and at most.
const PAUSE_MIN_NS: u64 = 10_000;
const PAUSE_MAX_NS: u64 = 1_000_000;

/// What a queue does with a frame that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is offered again later, and those behind it wait.
    Wait,
    /// It is lost, and the next one goes.
    GiveUp,
}

/// Counts to [`TRIES`], once in a [`TRY_GAP_NS`].
#[derive(Clone, Copy, Debug, Default)]
struct Patience {
    tries: u32,
    counted_at_ns: Option<u64>,
}

impl Patience {
    /// One more time. Returns whether it is over.
    fn is_over(&mut self, now_ns: u64) -> bool {
        let is_counted = |at: u64| now_ns.saturating_sub(at) < TRY_GAP_NS;
        if !self.counted_at_ns.is_some_and(is_counted) {
            self.counted_at_ns = Some(now_ns);
            self.tries += 1;
        }
        self.tries >= TRIES
    }
}

/// The refusals of one transmit queue, and the frames that it has lost.
#[derive(Debug)]
pub(crate) struct Refusals {
    link: Link,
    began: Instant,
    /// Of the oldest frame.
    patience: Patience,
    /// Of all frames, since nothing more was to be sent.
    last_call: Patience,
    /// Until when the oldest frame is not offered again.
    retry_at_ns: u64,
    pause_ns: u64,
    /// Frames of this length and longer are refused for good.
    refused_bytes_min: usize,
    /// The lengths of frames that were lost and not taken from here yet.
    lost: Vec<u16>,
}

/// Whether the interface has a link.
#[derive(Debug)]
enum Link {
    Of(Arc<LinkQuery>),
    #[cfg(test)]
    Is(LinkState),
}

impl Link {
    fn is_up(&self) -> bool {
        match self {
            Link::Of(query) => query.link() == LinkState::Up,
            #[cfg(test)]
            Link::Is(state) => *state == LinkState::Up,
        }
    }
}

impl Refusals {
    /// Those of a queue that holds so many frames, on an interface whose link is asked for.
    pub(crate) fn new(link: Arc<LinkQuery>, frames: usize) -> Refusals {
        Refusals::over(Link::Of(link), frames)
    }

    fn over(link: Link, frames: usize) -> Refusals {
        Refusals {
            link,
            began: Instant::now(),
            patience: Patience::default(),
            last_call: Patience::default(),
            retry_at_ns: 0,
            pause_ns: PAUSE_MIN_NS,
            refused_bytes_min: usize::MAX,
            lost: Vec::with_capacity(frames),
        }
    }

    /// The time that others are given in, in nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Whether it is too early to offer again what was refused.
    #[inline]
    pub(crate) fn is_too_early(&self) -> bool {
        self.retry_at_ns > 0 && self.now_ns() < self.retry_at_ns
    }

    /// Whether frames that leave have to be shown to [`note_left`](Refusals::note_left) by their
    /// length.
    pub(crate) fn wants_lengths(&self) -> bool {
        self.refused_bytes_min < usize::MAX
    }

    /// Frames left, the longest of them so long; 0 where nobody wants to know.
    #[inline]
    pub(crate) fn note_left(&mut self, longest: usize) {
        self.patience = Patience::default();
        self.last_call = Patience::default();
        self.retry_at_ns = 0;
        self.pause_ns = PAUSE_MIN_NS;
        if longest >= self.refused_bytes_min {
            self.refused_bytes_min = usize::MAX;
        }
    }

    /// The kernel had no room, or no interface: no frame's fault. It is offered again a little later.
    pub(crate) fn note_held(&mut self, now_ns: u64) {
        self.retry_at_ns = now_ns + self.pause_ns;
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_MAX_NS);
    }

    /// The kernel refused the oldest frame, which has so many bytes.
    pub(crate) fn judge(&mut self, now_ns: u64, frame_bytes: usize) -> Fate {
        let is_known = frame_bytes >= self.refused_bytes_min;
        if (is_known || self.patience.is_over(now_ns)) && self.link.is_up() {
            self.refused_bytes_min = self.refused_bytes_min.min(frame_bytes);
            self.patience = Patience::default();
            self.retry_at_ns = 0;
            self.pause_ns = PAUSE_MIN_NS;
            return Fate::GiveUp;
        }
        self.note_held(now_ns);
        Fate::Wait
    }

    /// Nothing more is to be sent, and frames wait. Returns whether they have waited long enough: then
    /// all of them are lost, so that they do not leave when nobody expects them any more.
    pub(crate) fn is_last_call_over(&mut self) -> bool {
        let now_ns = self.now_ns();
        let is_over = self.last_call.is_over(now_ns);
        if is_over {
            self.last_call = Patience::default();
            self.patience = Patience::default();
        }
        is_over
    }

    /// A frame of so many bytes is lost.
    pub(crate) fn note_lost(&mut self, frame_bytes: usize) {
        self.lost.push(frame_bytes as u16);
    }

    /// Hands the length of each frame that was lost to `each`, once.
    pub(crate) fn take_lost(&mut self, each: &mut dyn FnMut(usize)) {
        for frame_bytes in self.lost.drain(..) {
            each(frame_bytes.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(link: LinkState) -> Refusals {
        Refusals::over(Link::Is(link), 8)
    }

    /// Refuses a frame once a millisecond, until it is given up; how often that was.
    fn refused(refusals: &mut Refusals, frame_bytes: usize) -> u32 {
        let at = |number: u32| u64::from(number) * TRY_GAP_NS;
        let is_kept = |number: &u32| refusals.judge(at(*number), frame_bytes) == Fate::Wait;
        (0..10 * TRIES).take_while(is_kept).count() as u32
    }

    #[test]
    fn a_frame_that_is_refused_again_and_again_is_given_up_and_others_as_long_at_once() {
        let mut refusals = refusals(LinkState::Up);
        assert_eq!(refused(&mut refusals, 1500), TRIES - 1);
        refusals.note_left(60);
        assert_eq!(refused(&mut refusals, 1500), 0, "it is known now");
        assert_eq!(refused(&mut refusals, 9000), 0);
        assert_eq!(
            refused(&mut refusals, 1499),
            TRIES - 1,
            "a shorter one may leave"
        );
        assert_eq!(refused(&mut refusals, 1499), 0);
    }

    #[test]
    fn what_was_refused_and_leaves_is_no_longer_known_to_be_refused() {
        let mut refusals = refusals(LinkState::Up);
        assert!(!refusals.wants_lengths());
        assert_eq!(refused(&mut refusals, 1500), TRIES - 1);
        assert!(refusals.wants_lengths());
        refusals.note_left(1500);
        assert!(!refusals.wants_lengths());
        assert_eq!(refused(&mut refusals, 1500), TRIES - 1);
    }

    #[test]
    fn a_queue_that_empties_a_little_in_between_loses_nothing() {
        let mut refusals = refusals(LinkState::Up);
        for number in 0..u64::from(20 * TRIES) {
            assert_eq!(refusals.judge(number * TRY_GAP_NS, 60), Fate::Wait);
            if number % u64::from(TRIES - 1) == 0 {
                refusals.note_left(0);
            }
        }
    }

    #[test]
    fn refusals_that_follow_each_other_fast_count_once() {
        let mut refusals = refusals(LinkState::Up);
        for number in 0..100_000 {
            let now = number * (TRY_GAP_NS / 10_000);
            assert_eq!(refusals.judge(now, 60), Fate::Wait, "try {number}");
        }
        // A process that stood still for a second has tried once.
        assert_eq!(refusals.judge(1_000_000_000, 60), Fate::Wait);
    }

    #[test]
    fn without_a_link_frames_wait_for_it() {
        for state in [
            LinkState::NoCarrier,
            LinkState::SetDown,
            LinkState::Gone,
            LinkState::Replaced,
        ] {
            let mut refusals = refusals(state);
            assert_eq!(refused(&mut refusals, 1500), 10 * TRIES, "{state:?}");
        }
    }

    #[test]
    fn what_is_refused_is_offered_again_later_and_later_until_something_leaves() {
        let mut refusals = refusals(LinkState::NoCarrier);
        let mut now = 0;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            assert_eq!(refusals.judge(now, 60), Fate::Wait);
            pauses.push(refusals.retry_at_ns - now);
            now = refusals.retry_at_ns;
        }
        assert_eq!((pauses[0], pauses[9]), (PAUSE_MIN_NS, PAUSE_MAX_NS));
        assert!(pauses.is_sorted());
        refusals.note_left(0);
        assert!(!refusals.is_too_early());
        refusals.note_held(now);
        assert_eq!(refusals.retry_at_ns, now + PAUSE_MIN_NS);
    }

    #[test]
    fn lost_frames_are_told_once() {
        let mut refusals = refusals(LinkState::Up);
        refusals.note_lost(1500);
        refusals.note_lost(60);
        for expected in [vec![1500, 60], Vec::new()] {
            let mut told = Vec::new();
            refusals.take_lost(&mut |len| told.push(len));
            assert_eq!(told, expected);
        }
    }
}
