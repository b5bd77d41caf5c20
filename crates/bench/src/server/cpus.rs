//! Lists of CPUs, such as `0` or `0,2-3`, and pinning threads to them.
//!
//! Main type: [`CpuList`]. Invariant: a list is sorted, without repetition, and not empty.

use std::fmt;

/// A list of CPUs to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

/// The reason why a list of CPUs cannot be used: a sentence without the setting's name, which the caller knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// The text is not a list of CPUs.
    #[error("\"{0}\" is no list of CPUs; write numbers and ranges, as in \"0\" or \"0,2-3\"")]
    Malformed(String),
    /// A CPU of the list does not exist or is offline.
    #[error("CPU {cpu} does not exist or is switched off; this machine has CPUs {online}")]
    Missing {
        /// The first CPU that is missing.
        cpu: usize,
        /// The CPUs that are online.
        online: CpuList,
    },
    /// The operating system refused to pin the thread.
    #[error("cannot run on CPUs {cpus}: {reason}; loadline itself may use CPUs {allowed}")]
    Refused {
        /// The CPUs that were asked for.
        cpus: CpuList,
        /// The operating system's message.
        reason: String,
        /// The CPUs on which the calling thread may run; empty if that is not known.
        allowed: String,
    },
}

impl CpuList {
    /// Reads a list such as `0`, `0,2-3` or `1-7`.
    ///
    /// # Errors
    /// [`CpuListError::Malformed`] with the text. [`CpuList::check`] tests whether the CPUs exist.
    pub fn parse(text: &str) -> Result<CpuList, CpuListError> {
        let malformed = || CpuListError::Malformed(text.to_owned());
        let number = |text: &str| {
            let digits = text.trim();
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = plain.then(|| digits.parse::<usize>().ok()).flatten();
            number.filter(|number| *number < libc::CPU_SETSIZE as usize).ok_or_else(malformed)
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(malformed());
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(CpuList(cpus))
    }

    /// Checks that all CPUs of the list exist and are online.
    ///
    /// # Errors
    /// [`CpuListError::Missing`] with the first CPU that is not online.
    pub fn check(&self) -> Result<(), CpuListError> {
        let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        // If the kernel does not say which CPUs are online, pinning itself shows what is wrong.
        let Ok(online) = CpuList::parse(text.trim()) else { return Ok(()) };
        match self.0.iter().find(|cpu| !online.0.contains(cpu)) {
            Some(cpu) => Err(CpuListError::Missing { cpu: *cpu, online }),
            None => Ok(()),
        }
    }

    /// Returns the CPU numbers in ascending order.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Returns a list of only the last CPU if the list has more than one, else `None`.
    pub fn last_of_several(&self) -> Option<CpuList> {
        let last = self.0.last().filter(|_| self.0.len() > 1)?;
        Some(CpuList(vec![*last]))
    }

    /// Returns each CPU as a list of its own, in ascending order.
    pub fn each_alone(&self) -> Vec<CpuList> {
        self.0.iter().map(|cpu| CpuList(vec![*cpu])).collect()
    }

    /// Returns the list as the operating system's CPU set.
    pub(super) fn to_set(&self) -> libc::cpu_set_t {
        // SAFETY: cpu_set_t is an array of integers, for which all zero bytes are a valid value: the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for cpu in &self.0 {
            // SAFETY: `parse` keeps every number below CPU_SETSIZE, so that CPU_SET writes inside the set.
            unsafe { libc::CPU_SET(*cpu, &mut set) };
        }
        set
    }
}

impl fmt::Display for CpuList {
    /// Writes the list with ranges, in the form that [`CpuList::parse`] reads: `0,2-3`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for range in self.0.chunk_by(|cpu, next| cpu + 1 == *next) {
            match range {
                [first, .., last] => write!(out, "{separator}{first}-{last}")?,
                _ => write!(out, "{separator}{}", range[0])?,
            }
            separator = ",";
        }
        Ok(())
    }
}

/// Pins the calling thread, and the threads that it will start, to these CPUs.
///
/// # Errors
/// [`CpuListError::Missing`] and [`CpuListError::Refused`]; the thread's CPUs are then unchanged.
pub fn pin_this_thread(cpus: &CpuList) -> Result<(), CpuListError> {
    cpus.check()?;
    apply(&cpus.to_set()).map_err(|error| CpuListError::Refused {
        cpus: cpus.clone(),
        reason: error.to_string(),
        allowed: allowed_to_this_thread().map(|list| list.to_string()).unwrap_or_default(),
    })
}

/// Returns the CPUs on which the calling thread may run; `None` if the kernel does not say.
pub fn allowed_to_this_thread() -> Option<CpuList> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuList::parse(list.trim()).ok()
}

/// Pins the calling thread. Does not allocate, so that it may be called between fork and exec.
pub(super) fn apply(set: &libc::cpu_set_t) -> std::io::Result<()> {
    // SAFETY: the set is valid for reads of its size during the call; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_ranges_in_any_order() {
        assert_eq!(CpuList::parse("0").unwrap().as_slice(), [0]);
        assert_eq!(CpuList::parse("0,2-3").unwrap().as_slice(), [0, 2, 3]);
        assert_eq!(CpuList::parse(" 5-6 , 1,6").unwrap().as_slice(), [1, 5, 6]);
        assert_eq!(CpuList::parse("3,1,0,2,7").unwrap().to_string(), "0-3,7");
    }

    #[test]
    fn what_is_no_list_is_refused_with_its_text() {
        for text in ["", ",", "a", "3-1", "-1", "1-", "0,,1", "+1", "1024", "99999999999999999999"] {
            let sentence = CpuList::parse(text).unwrap_err().to_string();
            assert!(sentence.starts_with(&format!("\"{text}\" is no list of CPUs")), "{sentence}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let sentence = CpuList::parse("0,1000").unwrap().check().unwrap_err().to_string();
        assert!(sentence.starts_with("CPU 1000 does not exist"), "{sentence}");
    }

    #[test]
    fn a_pinned_thread_is_seen_on_its_cpu() {
        let before = allowed_to_this_thread().unwrap();
        let last = CpuList::parse(&before.as_slice().last().unwrap().to_string()).unwrap();
        std::thread::spawn(move || {
            pin_this_thread(&last).unwrap();
            assert_eq!(allowed_to_this_thread(), Some(last));
        })
        .join()
        .unwrap();
        assert_eq!(allowed_to_this_thread().unwrap(), before, "other threads are not touched");
    }
}
