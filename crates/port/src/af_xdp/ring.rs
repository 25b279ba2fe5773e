//! One end of a ring that is shared with the kernel: entries, and two counters that only grow.
//!
//! The layout is the kernel's: `Documentation/networking/af_xdp.rst`. The side that writes entries
//! owns the producer's counter, the side that reads them the consumer's; both counters wrap at 2³².

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::Mapping;

/// Where the parts of a ring lie in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
    /// How many entries there are, a power of two.
    pub(super) count: u32,
}

/// What both ends have in common.
#[derive(Debug)]
struct Shared<T> {
    memory: Arc<Mapping>,
    layout: Layout,
    entries: NonNull<T>,
    entry: PhantomData<T>,
}

// SAFETY: the entries are plain values in memory that the ring keeps alive; one end is owned by one
// thread at a time, and the other is the kernel's.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Copy> Shared<T> {
    fn new(memory: Arc<Mapping>, layout: Layout) -> Shared<T> {
        assert!(layout.count.is_power_of_two(), "a power of two");
        let bytes = layout.count as usize * size_of::<T>();
        let entries = memory.address(layout.entries, bytes).cast::<T>();
        assert!(entries.is_aligned(), "entries are aligned");
        for counter in [layout.producer, layout.consumer, layout.flags] {
            let counter = memory.address(counter, size_of::<u32>());
            assert!(counter.cast::<u32>().is_aligned(), "counters are aligned");
        }
        Shared {
            memory,
            layout,
            entries,
            entry: PhantomData,
        }
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU32 {
        let word = self.memory.address(offset, size_of::<u32>());
        // SAFETY: an aligned word within the mapping (see `new`), which both sides touch as an
        // atomic only.
        unsafe { AtomicU32::from_ptr(word.cast().as_ptr()) }
    }

    #[inline]
    fn entry(&self, number: u32) -> NonNull<T> {
        let place = (number & (self.layout.count - 1)) as usize;
        // SAFETY: the mask keeps the place within the entries, which are within the mapping.
        unsafe { self.entries.add(place) }
    }

    /// Whether the kernel asks to be woken.
    #[inline]
    fn needs_wakeup(&self) -> bool {
        self.word(self.layout.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The end that writes entries.
#[derive(Debug)]
pub(super) struct Producer<T> {
    shared: Shared<T>,
    /// Entries that were written.
    head: u32,
    /// Entries that the kernel may see.
    published: u32,
    /// Entries that are known to be taken.
    taken: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn new(memory: Arc<Mapping>, layout: Layout) -> Producer<T> {
        Producer {
            shared: Shared::new(memory, layout),
            head: 0,
            published: 0,
            taken: 0,
        }
    }

    /// Room for at least so many entries? Asks the kernel only if it must.
    #[inline]
    pub(super) fn has_room(&mut self, count: u32) -> bool {
        self.room_known() >= count || {
            self.look();
            self.room_known() >= count
        }
    }

    /// As many of `wished` as there is room for.
    #[inline]
    pub(super) fn room_for(&mut self, wished: u32) -> u32 {
        if self.has_room(wished) {
            return wished;
        }
        self.room_known()
    }

    #[inline]
    fn room_known(&self) -> u32 {
        self.shared.layout.count - self.head.wrapping_sub(self.taken)
    }

    fn look(&mut self) {
        let consumer = self.shared.word(self.shared.layout.consumer);
        self.taken = consumer.load(Ordering::Acquire);
    }

    /// Entries that the kernel has not taken.
    pub(super) fn untaken(&mut self) -> u32 {
        self.look();
        self.head.wrapping_sub(self.taken)
    }

    /// Writes the next entry; there must be room.
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        debug_assert!(self.room_known() > 0, "room was made sure of");
        // SAFETY: the place is within the entries, and ours until it is published.
        unsafe { self.shared.entry(self.head).write(entry) };
        self.head = self.head.wrapping_add(1);
    }

    /// Makes what was written visible to the kernel. Returns whether there was anything.
    #[inline]
    pub(super) fn publish(&mut self) -> bool {
        if self.head == self.published {
            return false;
        }
        self.published = self.head;
        let producer = self.shared.word(self.shared.layout.producer);
        producer.store(self.head, Ordering::Release);
        true
    }

    /// Puts the entry that the kernel took last in front of those that it did not take, and
    /// makes that visible. Returns the entry. The kernel must have taken one since it was
    /// published, and must not look meanwhile.
    pub(super) fn put_back_last(&mut self) -> T {
        self.look();
        let read = |number: u32| self.read(number);
        let last = read(self.taken.wrapping_sub(1));
        let mut number = self.head;
        while number != self.taken {
            let entry = read(number.wrapping_sub(1));
            // SAFETY: as above; the place behind the last entry is free, as one was just taken.
            unsafe { self.shared.entry(number).write(entry) };
            number = number.wrapping_sub(1);
        }
        // SAFETY: as above.
        unsafe { self.shared.entry(self.taken).write(last) };
        self.head = self.head.wrapping_add(1);
        self.publish();
        last
    }

    /// The entries that the kernel has taken last, `count` of them, the newest one first. They must have
    /// been taken since they were published.
    pub(super) fn last_taken(&self, count: u32) -> impl Iterator<Item = T> + '_ {
        (1..=count).map(|back| self.read(self.taken.wrapping_sub(back)))
    }

    /// The entries that the kernel has not taken.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = T> + '_ {
        let count = self.untaken();
        (0..count).map(|number| self.read(self.taken.wrapping_add(number)))
    }

    /// Writes `entry` in the place of each that the kernel has not taken. It must not look meanwhile.
    pub(super) fn overwrite_waiting(&mut self, entry: T) {
        for number in 0..self.untaken() {
            let number = self.taken.wrapping_add(number);
            // SAFETY: the place is within the entries, and the kernel does not read there meanwhile.
            unsafe { self.shared.entry(number).write(entry) };
        }
    }

    fn read(&self, number: u32) -> T {
        // SAFETY: the place is within the entries. Nobody writes there meanwhile: this end does not,
        // and the other end never does.
        unsafe { self.shared.entry(number).read() }
    }

    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.shared.needs_wakeup()
    }
}

/// The end that reads entries.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    shared: Shared<T>,
    /// Entries that were read.
    tail: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn new(memory: Arc<Mapping>, layout: Layout) -> Consumer<T> {
        Consumer {
            shared: Shared::new(memory, layout),
            tail: 0,
        }
    }

    /// How many entries wait to be read.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        let producer = self.shared.word(self.shared.layout.producer);
        let waiting = producer.load(Ordering::Acquire).wrapping_sub(self.tail);
        waiting.min(self.shared.layout.count)
    }

    /// Reads the next entry; one must wait.
    #[inline]
    pub(super) fn pop(&mut self) -> T {
        // SAFETY: the place is within the entries; the kernel has written it, for its counter was
        // read with Acquire, and leaves it alone until it is released. Any bytes are a right `T`:
        // descriptors and addresses are numbers.
        let entry = unsafe { self.shared.entry(self.tail).read() };
        self.tail = self.tail.wrapping_add(1);
        entry
    }

    /// Gives what was read back to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        let consumer = self.shared.word(self.shared.layout.consumer);
        consumer.store(self.tail, Ordering::Release);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Both ends of a ring in plain memory.
    pub(in super::super) fn pair<T: Copy>(count: u32) -> (Producer<T>, Consumer<T>) {
        let layout = Layout {
            producer: 0,
            consumer: 64,
            flags: 128,
            entries: 192,
            count,
        };
        let bytes = layout.entries + count as usize * size_of::<T>();
        let memory = Arc::new(Mapping::anonymous(bytes).expect("memory"));
        let consumer = Consumer::new(Arc::clone(&memory), layout);
        (Producer::new(memory, layout), consumer)
    }

    #[test]
    fn entries_come_out_in_order_and_only_when_published() {
        let (mut producer, mut consumer) = pair::<u64>(4);
        for round in 0..10 {
            assert!(producer.has_room(4) && !producer.has_room(5));
            for number in 0..4 {
                producer.push(round * 10 + number);
            }
            assert_eq!(consumer.waiting(), 0);
            producer.publish();
            assert!(!producer.has_room(1));
            assert_eq!((consumer.waiting(), producer.untaken()), (4, 4));
            let read: Vec<u64> = (0..4).map(|_| consumer.pop()).collect();
            assert_eq!(read, [0, 1, 2, 3].map(|number| round * 10 + number));
            assert!(!producer.has_room(1), "not released yet");
            consumer.release();
            assert_eq!((consumer.waiting(), producer.untaken()), (0, 0));
        }
    }

    #[test]
    fn counters_wrap() {
        let (mut producer, mut consumer) = pair::<u64>(8);
        let start = u32::MAX - 2;
        (producer.head, producer.taken, consumer.tail) = (start, start, start);
        producer.publish();
        consumer.release();
        for number in 0..8 {
            assert!(producer.has_room(1));
            producer.push(number);
        }
        producer.publish();
        assert!(!producer.has_room(1));
        assert_eq!(consumer.waiting(), 8);
        assert_eq!((0..8).map(|_| consumer.pop()).sum::<u64>(), 28);
        consumer.release();
        assert_eq!(producer.untaken(), 0);
    }

    #[test]
    fn what_was_taken_last_can_be_put_back_in_front() {
        let (mut producer, mut consumer) = pair::<u64>(4);
        for number in 1..=4 {
            producer.push(number);
        }
        producer.publish();
        assert_eq!((consumer.pop(), consumer.pop()), (1, 2));
        consumer.release();
        assert_eq!(producer.put_back_last(), 2);
        assert_eq!((consumer.waiting(), producer.untaken()), (3, 3));
        let rest: Vec<u64> = (0..3).map(|_| consumer.pop()).collect();
        assert_eq!(rest, [2, 3, 4]);
        consumer.release();
        assert_eq!(producer.put_back_last(), 4);
        assert_eq!((consumer.waiting(), consumer.pop()), (1, 4));
    }

    #[test]
    fn entries_that_were_not_taken_can_be_read_and_overwritten() {
        let (mut producer, mut consumer) = pair::<u64>(4);
        for number in 1..=4 {
            producer.push(number);
        }
        producer.publish();
        assert_eq!((consumer.pop(), consumer.pop()), (1, 2));
        consumer.release();
        assert_eq!(producer.waiting().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(producer.last_taken(2).collect::<Vec<_>>(), [2, 1]);
        producer.overwrite_waiting(9);
        assert_eq!((consumer.pop(), consumer.pop()), (9, 9));
        consumer.release();
        assert_eq!(producer.waiting().count(), 0);
    }

    #[test]
    fn entries_pass_between_threads() {
        let (mut producer, mut consumer) = pair::<u64>(64);
        let sender = std::thread::spawn(move || {
            for number in 0..100_000 {
                while !producer.has_room(1) {
                    std::thread::yield_now();
                }
                producer.push(number);
                if number % 7 == 0 || number == 99_999 || !producer.has_room(1) {
                    producer.publish();
                }
            }
        });
        let mut expected = 0;
        while expected < 100_000 {
            for _ in 0..consumer.waiting() {
                assert_eq!(consumer.pop(), expected);
                expected += 1;
            }
            consumer.release();
            std::thread::yield_now();
        }
        sender.join().expect("the sender ends");
    }
}
