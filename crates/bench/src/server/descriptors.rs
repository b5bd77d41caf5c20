//! The limit of open files and connections of this process.

/// Raises the limit of open files as far as the system allows, and returns it. Servers started afterwards inherit it.
pub fn raise_descriptors() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: getrlimit writes to the structure, which lives as long as the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } < 0 {
        return u64::MAX;
    }
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    // SAFETY: setrlimit only reads the structure.
    let is_raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0;
    if is_raised { raised.rlim_cur } else { limit.rlim_cur }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_once_and_stays() {
        let first = raise_descriptors();
        assert!(first >= 64, "{first}");
        assert_eq!(raise_descriptors(), first);
    }
}
