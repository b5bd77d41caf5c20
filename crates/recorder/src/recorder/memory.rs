//! Freed memory, and how much of it the process keeps. Main function: [`keep_freed`].

/// Keeps up to 16 MiB for each arena of the allocator instead of giving them back to the kernel, and has at most 2 arenas for each CPU.
///
/// glibc gives memory at the top of an arena back once 128 KiB are free there, and raises that bound only when a block of its own mapping happens to be freed. A writer frees
/// its batch after every commit, so the kernel had to clear some hundred pages for each: 6 % of the recorder's CPU time per row. It would have up to 8 arenas for each CPU, and
/// threads that come and go leave some MiB in each.
/// The process calls this once, before it starts threads. Other allocators are left as they are.
pub fn keep_freed() {
    #[cfg(target_env = "gnu")]
    glibc::set();
}

#[cfg(target_env = "gnu")]
mod glibc {
    use libc::c_int;

    /// Bytes of freed memory that an arena keeps for the next batch. A batch of the writer takes a few MiB and is freed whole.
    const KEPT_BYTES: c_int = 16 << 20;
    /// Blocks of this many bytes or more come from the kernel, and go back to it when they are freed.
    const LARGE_BYTES: c_int = 4 << 20;
    /// Arenas for each CPU.
    const ARENAS_PER_CPU: c_int = 2;
    /// The fewest arenas: the intake's two threads, the writer and the spool each have one.
    const ARENAS_MIN: c_int = 4;

    pub(super) fn set() {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| c_int::try_from(cpus.get()).unwrap_or(1));
        for (setting, value) in [
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
            (libc::M_MMAP_THRESHOLD, LARGE_BYTES),
            (libc::M_ARENA_MAX, cpus.saturating_mul(ARENAS_PER_CPU).max(ARENAS_MIN)),
        ] {
            // SAFETY: mallopt takes two numbers and sets a parameter of the allocator; a value that it refuses changes nothing.
            unsafe { libc::mallopt(setting, value) };
        }
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Returns the page faults of this thread so far that needed no disk.
    fn faults() -> i64 {
        // SAFETY: all zeros is a valid rusage, and the call fills the one on this stack.
        unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
            usage.ru_minflt
        }
    }

    /// Allocates and frees what a batch does: bodies of 80 kB, and a list that outgrows them.
    fn batch() {
        let bodies: Vec<Vec<u8>> = (0..5).map(|body| vec![body + 1; 80_000]).collect();
        let list = vec![1_u8; 300_000];
        std::hint::black_box((bodies, list));
    }

    #[test]
    fn memory_of_one_batch_serves_the_next() {
        keep_freed();
        std::thread::spawn(|| {
            batch();
            let before = faults();
            (0..100).for_each(|_| batch());
            // 700,000 bytes are 171 pages: 17,100 faults where the kernel is asked each time.
            assert!(faults() - before < 1_000, "{} page faults in 100 batches", faults() - before);
        })
        .join()
        .unwrap();
    }
}
