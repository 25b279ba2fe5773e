//! A recorder of what an engine sends: implements the engine's tx queues and keeps every frame.

use allosaur_engine::time::{Due, Gap, Nanos};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_packet::network::checksum;
use allosaur_packet::offload::TxChecksumOffload;

use crate::golden::Record;

/// What a fresh slot holds: an engine that does not write every byte is seen.
pub const UNWRITTEN: u8 = 0xa5;

/// A frame that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Out of which port.
    pub port: PortIndex,
    /// When it was due.
    pub at: Nanos,
    /// Without FCS.
    pub bytes: Vec<u8>,
}

/// Tx queues that record what is sent, in the order of sending.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    sent: Vec<Sent>,
    ports: Vec<PortState>,
}

/// What one queue knows.
#[derive(Clone, Debug)]
struct PortState {
    frames: Vec<Option<Kept>>,
    /// The frame of which a copy is being written.
    reused: Option<FrameHandle>,
    /// Frames that the queue still takes.
    room: usize,
    /// Frames that may be registered at a time.
    registered_max: usize,
    /// Checksums may be left to the queue.
    computes_checksums: bool,
}

/// Copies of a frame that are sent in turn, each as it was left the time before.
const COPIES: usize = 3;

/// A registered frame.
#[derive(Clone, Debug)]
struct Kept {
    bytes: Vec<u8>,
    /// The checksums that the queue computes.
    left: Option<TxChecksumOffload>,
    /// What is sent when the frame is reused; the first one is next.
    copies: [Vec<u8>; COPIES],
}

impl Default for PortState {
    fn default() -> PortState {
        PortState {
            frames: Vec::new(),
            reused: None,
            room: usize::MAX,
            registered_max: usize::MAX,
            computes_checksums: false,
        }
    }
}

impl Recording {
    /// The queue of `port` takes `room` more frames and is full then, until this is called again.
    pub fn limit(&mut self, port: PortIndex, room: usize) {
        self.port(port).room = room;
    }

    /// The queue of `port` keeps no more than `registered_max` frames for repetition.
    pub fn limit_registered(&mut self, port: PortIndex, registered_max: usize) {
        self.port(port).registered_max = registered_max;
    }

    /// The queue of `port` computes checksums that are left to it.
    pub fn compute_checksums(&mut self, port: PortIndex) {
        self.port(port).computes_checksums = true;
    }

    /// Gives what was sent since the last time.
    pub fn take(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// What was sent.
    pub fn sent(&self) -> &[Sent] {
        &self.sent
    }

    /// What was sent out of `port`, by time, as a capture has it.
    pub fn capture(&self, port: PortIndex) -> Vec<Record> {
        let of_port = self.sent.iter().filter(|sent| sent.port == port);
        let mut records: Vec<Record> = of_port
            .map(|sent| Record {
                time_ns: sent.at,
                bytes: sent.bytes.clone(),
            })
            .collect();
        records.sort_by_key(|record| record.time_ns);
        records
    }

    /// How many frames the queue of `port` keeps ready.
    pub fn registered(&self, port: PortIndex) -> usize {
        let state = self.ports.get(usize::from(port));
        state.map_or(0, |state| state.frames.iter().flatten().count())
    }

    fn port(&mut self, port: PortIndex) -> &mut PortState {
        let index = usize::from(port);
        if index >= self.ports.len() {
            self.ports.resize(index + 1, PortState::default());
        }
        &mut self.ports[index]
    }
}

impl TxQueues for Recording {
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, job: J) -> J::Output {
        self.port(port);
        let mut queue = Queue {
            port,
            state: &mut self.ports[usize::from(port)],
            sent: &mut self.sent,
        };
        let output = job.run(&mut queue);
        queue.keep_what_was_written();
        output
    }
}

/// The queue of one port, while a job runs on it.
#[derive(Debug)]
struct Queue<'a> {
    port: PortIndex,
    state: &'a mut PortState,
    sent: &'a mut Vec<Sent>,
}

impl Queue<'_> {
    /// A copy of a frame that was sent is sent again, later, with what was written into it.
    fn keep_what_was_written(&mut self) {
        let (Some(frame), Some(sent)) = (self.state.reused.take(), self.sent.last_mut()) else {
            return;
        };
        if let Some(kept) = &mut self.state.frames[frame.0 as usize] {
            kept.copies[0][..sent.bytes.len()].copy_from_slice(&sent.bytes);
            kept.copies.rotate_left(1);
            if let Some(left) = &kept.left {
                complete(left, &mut sent.bytes);
            }
        }
    }

    fn keep(&mut self, frame: &[u8], left: Option<TxChecksumOffload>) -> Option<FrameHandle> {
        if self.state.frames.iter().flatten().count() >= self.state.registered_max {
            return None;
        }
        self.state.frames.push(Some(Kept {
            bytes: frame.to_vec(),
            left,
            copies: [(); COPIES].map(|()| frame.to_vec()),
        }));
        Some(FrameHandle(self.state.frames.len() as u32 - 1))
    }
}

impl Transmit for Queue<'_> {
    const REUSES: bool = true;

    fn slot(&mut self, at: Nanos, len: usize) -> Option<&mut [u8]> {
        self.keep_what_was_written();
        self.state.room = self.state.room.checked_sub(1)?;
        self.sent.push(Sent {
            port: self.port,
            at,
            bytes: vec![UNWRITTEN; len],
        });
        self.sent.last_mut().map(|sent| &mut sent.bytes[..])
    }

    fn reuse(&mut self, at: Nanos, frame: FrameHandle, len: usize) -> Option<&mut [u8]> {
        self.keep_what_was_written();
        let kept = self.state.frames[frame.0 as usize].as_ref();
        let kept = kept.expect("a frame is reused only while it is registered");
        let bytes = kept.copies[0][..len].to_vec();
        self.state.room = self.state.room.checked_sub(1)?;
        self.state.reused = Some(frame);
        let port = self.port;
        self.sent.push(Sent { port, at, bytes });
        self.sent.last_mut().map(|sent| &mut sent.bytes[..])
    }

    fn repeat(&mut self, frame: FrameHandle, first: Due, gap: Gap, count: u32) -> u32 {
        self.keep_what_was_written();
        let kept = self.state.frames[frame.0 as usize].as_ref();
        let bytes = &kept
            .expect("a frame is repeated only while it is registered")
            .bytes;
        let count = count.min(u32::try_from(self.state.room).unwrap_or(u32::MAX));
        let mut due = first;
        for _ in 0..count {
            self.sent.push(Sent {
                port: self.port,
                at: due.at,
                bytes: bytes.clone(),
            });
            due = due.after(gap);
        }
        self.state.room -= count as usize;
        count
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameHandle> {
        self.keep(frame, None)
    }

    fn register_offloaded(
        &mut self,
        frame: &[u8],
        offload: &TxChecksumOffload,
    ) -> Option<FrameHandle> {
        match self.state.computes_checksums {
            true => self.keep(frame, Some(*offload)),
            false => None,
        }
    }

    fn unregister(&mut self, frame: FrameHandle) {
        self.keep_what_was_written();
        let known = self.state.frames[frame.0 as usize].take();
        assert!(known.is_some(), "a frame is unregistered once");
    }
}

/// Computes the checksums of a frame as a card does. That of TCP or UDP begins with what is in its
/// place: the sum of the pseudo header.
fn complete(offload: &TxChecksumOffload, frame: &mut [u8]) {
    let header = usize::from(offload.l2_bytes);
    let segment = header + usize::from(offload.l3_bytes);
    if offload.is_ipv4 {
        let sum = checksum::checksum(&frame[header..segment]);
        frame[header + 10..][..2].copy_from_slice(&sum.to_be_bytes());
    }
    let place = segment + if offload.is_tcp { 16 } else { 6 };
    let sum = match checksum::checksum(&frame[segment..]) {
        // Zero would mean none (RFC 768).
        0 if !offload.is_tcp => 0xffff,
        sum => sum,
    };
    frame[place..][..2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends one frame by slot and some by repeat; gives how many were taken.
    struct Burst(u32);

    impl QueueOp for Burst {
        type Output = u32;

        fn run<T: Transmit>(self, queue: &mut T) -> u32 {
            let Some(slot) = queue.slot(5, 3) else {
                return 0;
            };
            slot[..2].copy_from_slice(b"ab");
            let frame = queue.register(b"frame").expect("without limit");
            let sent = queue.repeat(frame, Due::at(10), Gap::from_nanos(1.5), self.0);
            queue.unregister(frame);
            1 + sent
        }
    }

    #[test]
    fn every_frame_has_its_exact_time() {
        let mut recording = Recording::default();
        assert_eq!(recording.with_queue(2, Burst(3)), 4);
        let times: Vec<Nanos> = recording.sent().iter().map(|sent| sent.at).collect();
        assert_eq!(times, [5, 10, 11, 13]);
        assert_eq!(recording.sent()[0].bytes, [b'a', b'b', UNWRITTEN]);
        assert_eq!(recording.capture(2)[3].bytes, b"frame");
        assert_eq!(recording.capture(0), []);
        assert_eq!(recording.take().len(), 4);
        assert_eq!(recording.sent(), []);
        assert_eq!(recording.registered(2), 0);
    }

    #[test]
    fn reused_frames_are_as_they_were_left() {
        struct Reuse;
        impl QueueOp for Reuse {
            type Output = ();
            fn run<T: Transmit>(self, queue: &mut T) {
                let frame = queue.register(b"frame").expect("without limit");
                for number in 0..COPIES as u8 + 1 {
                    let slot = queue.reuse(0, frame, 5).expect("without limit");
                    slot[usize::from(number)] = b'A' + number;
                }
                queue.reuse(0, frame, 3).expect("without limit");
            }
        }
        let mut recording = Recording::default();
        recording.with_queue(0, Reuse);
        let sent: Vec<&[u8]> = recording
            .sent()
            .iter()
            .map(|sent| &sent.bytes[..])
            .collect();
        let expected: [&[u8]; 5] = [b"Arame", b"fBame", b"frCme", b"AraDe", b"fBa"];
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let mut recording = Recording::default();
        recording.limit(0, 3);
        assert_eq!(recording.with_queue(0, Burst(9)), 3);
        assert_eq!(recording.with_queue(0, Burst(9)), 0);
        assert_eq!(recording.with_queue(1, Burst(9)), 10);
        recording.limit(0, 1);
        assert_eq!(recording.with_queue(0, Burst(9)), 1);
    }

    #[test]
    fn registration_can_be_refused() {
        struct Register;
        impl QueueOp for Register {
            type Output = bool;
            fn run<T: Transmit>(self, queue: &mut T) -> bool {
                queue.register(b"frame").is_some()
            }
        }
        let mut recording = Recording::default();
        recording.limit_registered(0, 1);
        assert!(recording.with_queue(0, Register));
        assert!(!recording.with_queue(0, Register));
        assert_eq!(recording.registered(0), 1);
    }
}
