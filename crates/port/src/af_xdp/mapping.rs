//! Memory that is shared with the kernel: the mapping itself, and the frames in it.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use libc::{c_int, off_t};

/// A piece of memory, mapped by this process as long as this lives.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is a range of addresses; whoever reads or writes there has to justify it.
unsafe impl Send for Mapping {}
// SAFETY: as above; the methods of this type hand out addresses only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// New memory, filled with zeros. All of it is there from the start.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Mapping::map(bytes, flags, -1, 0)
    }

    /// A part of what a file describes.
    pub(super) fn of_file(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Mapping::map(bytes, flags, file.as_raw_fd(), offset as off_t)
    }

    fn map(bytes: usize, flags: c_int, file: c_int, offset: off_t) -> io::Result<Mapping> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory that is in use.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at zero");
        Ok(Mapping { start, bytes })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of `offset`.
    ///
    /// # Panics
    ///
    /// When the `bytes` there are not all within the mapping.
    pub(super) fn address(&self, offset: usize, bytes: usize) -> NonNull<u8> {
        let end = offset.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "within the mapping"
        );
        // SAFETY: the offset is within the mapping, as was just checked.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this place and size; whoever has an address of it keeps
        // it alive.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A run of frames in the memory of a queue ("chunks" in the kernel's words) that belongs to one
/// thread alone. The kernel may touch those that it was given.
#[derive(Debug)]
pub(super) struct Chunks {
    memory: Arc<Mapping>,
    first: usize,
    count: usize,
    chunk_bytes: usize,
}

impl Chunks {
    /// Shares `memory` out in runs of `counts` chunks.
    ///
    /// # Panics
    ///
    /// When there are not as many.
    pub(super) fn share(
        memory: &Arc<Mapping>,
        chunk_bytes: usize,
        counts: impl IntoIterator<Item = usize>,
    ) -> Vec<Chunks> {
        let mut first = 0;
        let share = |count| {
            let chunks = Chunks {
                memory: Arc::clone(memory),
                first,
                count,
                chunk_bytes,
            };
            first += count;
            assert!(first * chunk_bytes <= memory.bytes(), "enough memory");
            chunks
        };
        counts.into_iter().map(share).collect()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of the first one, counted from the start of the memory.
    pub(super) fn first(&self) -> usize {
        self.first
    }

    /// Where a chunk begins, in bytes from the start of the memory: its name to the kernel.
    #[inline]
    pub(super) fn address(&self, chunk: usize) -> u64 {
        ((self.first + chunk) * self.chunk_bytes) as u64
    }

    /// The chunk at an address of this run.
    pub(super) fn chunk_at(&self, address: u64) -> usize {
        address as usize / self.chunk_bytes - self.first
    }

    /// The first `len` bytes of a chunk. The kernel must not have it, or only to read what is not
    /// written.
    ///
    /// # Panics
    ///
    /// When there is no such chunk, or it is not as long.
    #[inline]
    pub(super) fn bytes_mut(&mut self, chunk: usize, len: usize) -> &mut [u8] {
        assert!(
            chunk < self.count && len <= self.chunk_bytes,
            "within a chunk"
        );
        let offset = (self.first + chunk) * self.chunk_bytes;
        let start = self.memory.address(offset, len);
        // SAFETY: the bytes are within the mapping, which `self` keeps alive, and belong to this run
        // of chunks alone: `share` makes no two that overlap. They are plain bytes, all written by
        // `mmap` with zeros. The borrow of `self` lasts as long as that of the bytes.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }

    /// Where the kernel has received bytes at an address of this run: the chunk, and where in it they
    /// begin and end. `None` when they are not within one.
    #[inline]
    fn place_of(&self, address: u64, len: usize) -> Option<(usize, Range<usize>)> {
        let address = usize::try_from(address).ok()?;
        let (chunk, offset) = (address / self.chunk_bytes, address % self.chunk_bytes);
        let chunk = chunk.checked_sub(self.first)?;
        let end = offset.checked_add(len)?;
        (chunk < self.count && end <= self.chunk_bytes).then_some((chunk, offset..end))
    }

    /// The bytes that the kernel has received at an address of this run; `None` when they are not
    /// within one of its chunks.
    #[inline]
    pub(super) fn received_mut(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let (chunk, place) = self.place_of(address, len)?;
        Some(&mut self.bytes_mut(chunk, place.end)[place.start..])
    }

    /// The same to read, of several at once.
    #[inline]
    pub(super) fn received(&self, address: u64, len: usize) -> Option<&[u8]> {
        let (chunk, place) = self.place_of(address, len)?;
        let offset = (self.first + chunk) * self.chunk_bytes + place.start;
        let start = self.memory.address(offset, len);
        // SAFETY: as in `bytes_mut`; the borrow of `self` keeps others from writing.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_chunks_lie_apart() {
        let memory = Arc::new(Mapping::anonymous(8 * 2048).expect("memory"));
        let mut runs = Chunks::share(&memory, 2048, [3, 0, 5]);
        for (value, run) in (1..).zip(&mut runs) {
            for chunk in 0..run.count() {
                run.bytes_mut(chunk, 2048).fill(value);
            }
        }
        let values: Vec<Vec<u8>> = runs
            .iter_mut()
            .map(|run| {
                (0..run.count())
                    .map(|chunk| run.bytes_mut(chunk, 9)[8])
                    .collect()
            })
            .collect();
        assert_eq!(values, [vec![1; 3], vec![], vec![3; 5]]);
        assert_eq!(runs[2].address(0), 3 * 2048);
        assert_eq!(runs[2].chunk_at(runs[2].address(4)), 4);
        let bytes = runs[2].received_mut(4 * 2048 + 256, 60).expect("within");
        bytes.copy_from_slice(&[9; 60]);
        assert_eq!(runs[2].received(4 * 2048 + 256, 60), Some(&[9; 60][..]));
        assert_eq!(runs[2].bytes_mut(1, 257)[256], 9);
        for (address, len) in [(0, 60), (3 * 2048 - 1, 1), (8 * 2048, 1), (u64::MAX, 1)] {
            assert!(runs[2].received(address, len).is_none(), "{address}");
        }
        assert!(
            runs[2].received(4 * 2048 + 2000, 60).is_none(),
            "past the end"
        );
    }
}
