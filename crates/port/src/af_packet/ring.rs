//! The ring that a packet socket shares with the kernel: blocks of frames of one size.
//!
//! Both directions use version 2 of the ring. Version 3 hands received frames over in whole blocks,
//! and a block that is not full only after a millisecond at least: that would be seen as latency.
//! For sending the two are the same but for the header.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{tpacket_req, tpacket2_hdr};

use super::socket::PacketSocket;

/// The kernel asks for this much at once; a multiple of any page size up to it.
const BLOCK_BYTES: usize = 64 << 10;
/// Frames begin at multiples of this, the size of a cache line.
const LINE_BYTES: usize = 64;
/// The header of a frame.
pub(super) const HEADER_BYTES: usize = size_of::<tpacket2_hdr>();

// The kernel's layout, which `status` and `len` below rely on.
const _: () = assert!(HEADER_BYTES == 32 && HEADER_BYTES % libc::TPACKET_ALIGNMENT == 0);
const _: () = assert!(std::mem::offset_of!(tpacket2_hdr, tp_status) == 0);
const _: () = assert!(std::mem::offset_of!(tpacket2_hdr, tp_len) == 4);

/// Where the frames of a ring lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    frame_bytes: usize,
    frames_per_block: usize,
    blocks: usize,
}

/// A frame of a ring: its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    block: usize,
    frame: usize,
    offset: usize,
}

impl Geometry {
    /// At least `frames` frames of at least `bytes` bytes, headers included.
    ///
    /// A frame has an odd number of cache lines: with a power of two the headers of all frames
    /// would compete for a few places in the cache.
    pub(super) fn new(frames: usize, bytes: usize) -> Geometry {
        let lines = bytes.div_ceil(LINE_BYTES) | 1;
        let frame_bytes = lines * LINE_BYTES;
        assert!(frame_bytes <= BLOCK_BYTES, "a frame fits into a block");
        let frames_per_block = BLOCK_BYTES / frame_bytes;
        Geometry {
            frame_bytes,
            frames_per_block,
            blocks: frames.div_ceil(frames_per_block),
        }
    }

    pub(super) fn frames(&self) -> usize {
        self.frames_per_block * self.blocks
    }

    fn bytes(&self) -> usize {
        self.blocks * BLOCK_BYTES
    }

    /// The frame behind a frame; the first one behind the last.
    #[inline]
    pub(super) fn next(&self, place: Place) -> Place {
        let frame = place.frame + 1;
        if frame < self.frames_per_block {
            let offset = place.offset + self.frame_bytes;
            return Place {
                frame,
                offset,
                ..place
            };
        }
        let block = match place.block + 1 {
            block if block == self.blocks => 0,
            block => block,
        };
        Place {
            block,
            frame: 0,
            offset: block * BLOCK_BYTES,
        }
    }

    fn request(&self) -> tpacket_req {
        tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: self.blocks as u32,
            tp_frame_size: self.frame_bytes as u32,
            tp_frame_nr: self.frames() as u32,
        }
    }
}

/// A ring in the memory of both the kernel and this process.
#[derive(Debug)]
pub(super) struct Ring {
    memory: NonNull<u8>,
    geometry: Geometry,
}

// SAFETY: the memory belongs to the ring alone, on this side; no thread is special to it.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes the ring of a socket: `option` says of which direction.
    pub(super) fn map(socket: &PacketSocket, option: i32, geometry: Geometry) -> io::Result<Ring> {
        socket.set(option, &geometry.request())?;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in use.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                geometry.bytes(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_fd().as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { memory, geometry })
    }

    /// How many frames it holds.
    pub(super) fn frames(&self) -> usize {
        self.geometry.frames()
    }

    /// The place behind a place.
    #[inline]
    pub(super) fn next(&self, place: Place) -> Place {
        self.geometry.next(place)
    }

    /// What a frame's state is.
    #[inline]
    pub(super) fn status(&self, place: Place) -> u32 {
        self.status_word(place).load(Ordering::Acquire)
    }

    /// Gives a frame back to the kernel.
    #[inline]
    pub(super) fn give(&mut self, place: Place, status: u32) {
        self.status_word(place).store(status, Ordering::Release);
    }

    /// Says how many bytes of a frame are to be sent. The kernel reads it when the frame is given
    /// to it.
    #[inline]
    pub(super) fn set_len(&mut self, place: Place, len: u32) {
        let frame = self.frame(place).cast::<u32>();
        // SAFETY: the length is the second word of each header. The kernel may read it meanwhile
        // only if the frame was not ours; then it takes the one or the other.
        unsafe { frame.add(1).write_volatile(len) };
    }

    /// How many bytes of a frame are to be sent.
    pub(super) fn len(&self, place: Place) -> u32 {
        let frame = self.frame(place).cast::<u32>();
        // SAFETY: as in `set_len`; the kernel does not write there while a frame waits to be sent.
        unsafe { frame.add(1).read_volatile() }
    }

    /// The bytes of a frame behind its header, and the header, when its status is `ours`: the
    /// kernel then leaves it alone until it is given back.
    #[inline]
    pub(super) fn own(
        &mut self,
        place: Place,
        ours: impl FnOnce(u32) -> bool,
    ) -> Option<(tpacket2_hdr, &mut [u8])> {
        if !ours(self.status(place)) {
            return None;
        }
        let frame = self.frame(place);
        let bytes = self.geometry.frame_bytes - HEADER_BYTES;
        // SAFETY: every place is a frame within the mapping, and the header stands at its start,
        // aligned to a cache line. The kernel has handed the frame over (the status was read with
        // Acquire), and on this side the borrow of the ring lasts as long as that of the bytes.
        unsafe {
            let header = frame.cast::<tpacket2_hdr>().read();
            let bytes = std::slice::from_raw_parts_mut(frame.add(HEADER_BYTES).as_ptr(), bytes);
            Some((header, bytes))
        }
    }

    #[inline]
    fn status_word(&self, place: Place) -> &AtomicU32 {
        // SAFETY: the first word of a frame within the mapping, which both sides read and write
        // whole, and this side only as an atomic.
        unsafe { AtomicU32::from_ptr(self.frame(place).cast().as_ptr()) }
    }

    #[inline]
    fn frame(&self, place: Place) -> NonNull<u8> {
        debug_assert!(place.offset + self.geometry.frame_bytes <= self.geometry.bytes());
        // SAFETY: places come from this ring's geometry, which keeps them within the mapping.
        unsafe { self.memory.add(place.offset) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this place and size, and no borrow of it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.geometry.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_visit_every_frame_once_and_come_back() {
        for (frames, bytes) in [(1, 100), (40, 1600), (1024, 1568), (100, 9300), (3, 60_000)] {
            let geometry = Geometry::new(frames, bytes);
            assert!(geometry.frames() >= frames);
            let mut place = Place::default();
            let mut ends_at = 0;
            for _ in 0..geometry.frames() {
                assert!(place.offset >= ends_at, "{geometry:?}: frames lie apart");
                assert_eq!(place.offset % LINE_BYTES, 0);
                ends_at = place.offset + geometry.frame_bytes;
                let (first, last) = (place.offset / BLOCK_BYTES, (ends_at - 1) / BLOCK_BYTES);
                assert_eq!(first, last, "{geometry:?}: a frame lies in one block");
                assert!(ends_at <= geometry.bytes());
                place = geometry.next(place);
            }
            assert_eq!(place, Place::default(), "{geometry:?}");
        }
    }

    #[test]
    fn the_kernel_gets_numbers_that_agree() {
        let geometry = Geometry::new(1000, 1568);
        let request = geometry.request();
        assert_eq!(request.tp_frame_size, 1600);
        assert_eq!(request.tp_block_size / request.tp_frame_size, 40);
        assert_eq!(request.tp_frame_nr, 40 * request.tp_block_nr);
        assert_eq!(request.tp_frame_nr, 1000);
    }
}
