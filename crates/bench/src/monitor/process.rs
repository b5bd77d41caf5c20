//! CPU time of single processes, from their clocks: exact to nanoseconds, while the kernel's counters have ticks of 10 ms.

/// Returns the CPU time that processes have used since they started, in seconds, with that of their ended threads. A
/// process that has ended counts as zero.
pub fn cpu_s_of(pids: &[u32]) -> f64 {
    pids.iter().filter_map(|pid| process_cpu_s(*pid)).sum()
}

fn process_cpu_s(pid: u32) -> Option<f64> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both pointers are to values of ours that outlive the calls.
    let has_failed =
        unsafe { libc::clock_getcpuclockid(pid, &mut clock) != 0 || libc::clock_gettime(clock, &mut time) != 0 };
    (!has_failed).then_some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_a_process_grows_with_its_work_and_one_that_is_not_there_has_none() {
        let own = std::process::id();
        let before_s = cpu_s_of(&[own]);
        let mut sum = 0_u64;
        while cpu_s_of(&[own]) - before_s < 0.005 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(before_s > 0.0);
        // This pid is above the largest one that the kernel assigns; far above it, the clock's number would wrap around to our own.
        assert_eq!(cpu_s_of(&[(1 << 22) + 1]), 0.0);
    }
}
