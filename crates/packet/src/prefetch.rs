//! Hints to the processor: what will be read soon, and what will be written.
//!
//! Who is about to look at many things that lie apart asks for all of them first, and the cache misses
//! wait together. An ordinary load would do that too, but keep its place in the processor's queue until
//! its data is there, and hold up what stands behind it.

/// Asks for the line of the cache in which a value begins. It reads nothing that a program could see.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_at(value);
}

#[inline(always)]
fn prefetch_at<T>(at: *const T) {
    // SAFETY: a hint that reads nothing and faults on no address (Intel SDM and AMD APM, PREFETCHh; Arm
    // ARM, PRFM). SSE is part of x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    // SAFETY: as above; it changes no register, no flag, and no memory.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{at}]",
            at = in(reg) at,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Bytes of a line of the cache, on all processors that we know of at least.
const LINE_BYTES: usize = 64;

/// Asks for all lines of the cache that a value lies in.
#[inline(always)]
pub fn prefetch_whole<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(LINE_BYTES) {
        prefetch_at(first.wrapping_add(offset));
    }
    // It need not begin where a line does: its last byte may lie in one more.
    if size_of::<T>() % LINE_BYTES > 1 {
        prefetch_at(first.wrapping_add(size_of::<T>() - 1));
    }
}

/// Asks for the line of the cache at an address, to write it: another core that has it gives it up. It
/// changes nothing that a program could see.
#[inline(always)]
pub fn prefetch_for_write<T>(at: *const T) {
    // `_mm_prefetch` would be compiled to a prefetch for reading: not all x86-64 are known to have this
    // one. Those without take it for no operation (Intel SDM and AMD APM, PREFETCHW).
    // SAFETY: a hint that faults on no address, and changes no register, no flag, and no memory.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "prefetchw [{at}]",
            at = in(reg) at,
            options(nostack, preserves_flags, readonly)
        );
    }
    // SAFETY: as above (Arm ARM, PRFM).
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "prfm pstl1keep, [{at}]",
            at = in(reg) at,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_size_are_asked_for_and_stay() {
        let values = [7_u64; 100];
        values.iter().for_each(prefetch);
        prefetch(&());
        prefetch(&values);
        prefetch_whole(&());
        prefetch_whole(&values);
        values.iter().for_each(prefetch_whole);
        assert_eq!(values, [7; 100]);
    }

    #[test]
    fn what_is_asked_for_to_be_written_stays_too() {
        let values = [7_u64; 100];
        values.iter().for_each(|value| prefetch_for_write(value));
        prefetch_for_write(std::ptr::null::<u64>());
        assert_eq!(values, [7; 100]);
    }
}
