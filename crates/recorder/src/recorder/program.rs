//! The part of `/metrics` about the program itself, under the names that Prometheus uses for every program. Main function: [`text`].

use std::fmt::Write;
use std::sync::OnceLock;

use super::log;
use super::metrics::Page;

/// Numbers of the kernel about this process.
struct Known {
    cpu_s: f64,
    resident_bytes: f64,
    open_files: f64,
    open_files_max: f64,
    threads: f64,
    start_s: f64,
}

/// Returns the part of the page about the program.
pub(super) fn text() -> String {
    let mut page = Page::default();
    page.head("build_info", "gauge", "The version that runs");
    // Writing to a string never fails.
    let _ = writeln!(page.0, "loadline_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    page.counter("log_lines_dropped_total", "Log lines that nobody took off stderr in time", log::dropped());
    let Some(known) = known() else { return page.0 };
    let mut add = |name: &str, kind: &str, says: &str, value: f64| {
        let _ = write!(page.0, "# HELP process_{name} {says}\n# TYPE process_{name} {kind}\nprocess_{name} {value}\n");
    };
    add("cpu_seconds_total", "counter", "CPU time used, in seconds", known.cpu_s);
    add("resident_memory_bytes", "gauge", "Bytes in memory", known.resident_bytes);
    add("open_fds", "gauge", "File descriptors that are open", known.open_files);
    add("max_fds", "gauge", "The most file descriptors that may be open", known.open_files_max);
    add("threads", "gauge", "Threads", known.threads);
    add("start_time_seconds", "gauge", "When it was started, in seconds since 1970", known.start_s);
    page.0
}

fn known() -> Option<Known> {
    // SAFETY: sysconf takes a number and returns one; it has no other effect.
    let [ticks_per_s, page_bytes] = [libc::_SC_CLK_TCK, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program stands in parentheses and may contain any characters.
    let fields: Vec<f64> =
        stat.rsplit_once(')')?.1.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0.0)).collect();
    // After the state follow fields 4, 5, …: 14 and 15 are CPU times, 22 is the start after the boot, 24 the pages in memory.
    let field = |number: usize| fields.get(number - 4).copied();
    Some(Known {
        cpu_s: (field(14)? + field(15)?) / ticks_per_s as f64,
        resident_bytes: field(24)? * page_bytes as f64,
        open_files: open_files()?,
        open_files_max: open_files_max()?,
        threads: field(20)?,
        start_s: boot_s()? + field(22)? / ticks_per_s as f64,
    })
}

/// Returns when the machine was started. It is read once, because the kernel counts all interrupts of the machine for each read.
fn boot_s() -> Option<f64> {
    static BOOT_S: OnceLock<Option<f64>> = OnceLock::new();
    let read = || {
        let boot = std::fs::read_to_string("/proc/stat").ok()?;
        boot.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
    };
    *BOOT_S.get_or_init(read)
}

/// Returns the number of open files. Newer kernels give it as the size of the directory; with others every file is listed.
fn open_files() -> Option<f64> {
    const FILES: &str = "/proc/self/fd";
    match std::fs::metadata(FILES).ok()?.len() {
        0 => Some(std::fs::read_dir(FILES).ok()?.count() as f64),
        count => Some(count as f64),
    }
}

fn open_files_max() -> Option<f64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is that of a limit on this stack, which the call fills.
    let outcome = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (outcome == 0).then_some(limit.rlim_cur as f64)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn the_program_knows_itself() {
        let page = text();
        let value = |name: &str| -> f64 {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("there is no {name} in {page}")).parse().unwrap()
        };
        assert!(page.contains(&format!("loadline_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION"))));
        assert!(value("process_resident_memory_bytes") > 100_000.0 && value("process_open_fds") >= 3.0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        let started = value("process_start_time_seconds");
        assert!(started < now + 1.0 && started > now - 86_400.0, "{started} {now}");
        assert!(value("process_max_fds") >= value("process_open_fds") && value("process_threads") >= 1.0);
        assert!(value("process_cpu_seconds_total") >= 0.0 && value("loadline_log_lines_dropped_total") == 0.0);
    }
}
