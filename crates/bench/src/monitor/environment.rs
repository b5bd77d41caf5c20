//! The machine and the software that a run is measured on.

use std::fs;
use std::path::Path;

use super::counters::meminfo_bytes;
use crate::measurement::Environment;

/// Returns the facts about this machine, without its databases. A fact that the kernel does not provide is an empty
/// text or `None`. `run_directory` need not exist yet: the disk is that of its nearest existing ancestor.
pub fn environment(run_directory: &Path) -> Environment {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    Environment {
        loadline: env!("CARGO_PKG_VERSION").to_owned(),
        machine: read("/proc/sys/kernel/hostname"),
        cpu: cpu_model(&read("/proc/cpuinfo")),
        cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        governor: Some(governor).filter(|governor| !governor.is_empty()),
        memory_bytes: meminfo_bytes(&read("/proc/meminfo"), "MemTotal:").unwrap_or_default(),
        kernel: kernel(&read("/etc/os-release"), &read("/proc/sys/kernel/ostype"), &read("/proc/sys/kernel/osrelease")),
        disk: disk(run_directory, &read("/proc/self/mountinfo")),
        disk_sync: None,
        databases: Default::default(),
        links: Default::default(),
        servers: Vec::new(),
        command: Vec::new(),
    }
}

/// Returns the number of CPUs of the whole machine, whichever of them this process may use; `None` if the kernel does not say.
pub fn machine_cpus() -> Option<u32> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let is_cpu =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    u32::try_from(text.lines().filter(is_cpu).count()).ok().filter(|cpus| *cpus > 0)
}

/// Returns the CPU model from `/proc/cpuinfo`; on ARM there is none, and the architecture stands for it.
fn cpu_model(text: &str) -> String {
    let value = |name: &str| {
        let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    value("model name").or_else(|| value("Hardware")).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the system and its kernel: `Debian GNU/Linux 12 (bookworm), Linux 6.18.44`.
fn kernel(os_release: &str, name: &str, version: &str) -> String {
    let system = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match system.map(|system| system.trim_matches('"')) {
        Some(system) => format!("{system}, {name} {version}"),
        None => format!("{name} {version}"),
    }
}

/// Returns the file system, device and mount point of a path: `ext4 on /dev/vda at /`.
fn disk(path: &Path, mountinfo: &str) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let path = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok())?;
    let mut best: Option<(usize, String)> = None;
    for line in mountinfo.lines() {
        let Some((point, kind, device)) = parse_mount(line) else { continue };
        // Of equal mount points, the later one hides the earlier one.
        let is_closer = best.as_ref().is_none_or(|(length, _)| point.len() >= *length);
        if path.starts_with(&point) && is_closer {
            best = Some((point.len(), format!("{kind} on {device} at {point}")));
        }
    }
    best.map(|(_, description)| description)
}

/// Reads mount point, kind of file system and device from a line of mountinfo: `27 1 254:0 / /mnt rw shared:1 - ext4 /dev/vda rw`.
fn parse_mount(line: &str) -> Option<(String, &str, String)> {
    let (left, right) = line.split_once(" - ")?;
    let point = unescape(left.split(' ').nth(4)?);
    let mut right = right.split(' ');
    Some((point, right.next()?, unescape(right.next()?)))
}

/// Decodes spaces and similar characters, which are written as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &behind[3..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let environment = environment(Path::new("runs/not there yet"));
        assert!(!environment.machine.is_empty() && !environment.cpu.is_empty());
        assert!(environment.cpus >= 1 && environment.memory_bytes > 1 << 20);
        assert!(environment.kernel.contains("Linux "), "{}", environment.kernel);
        assert!(environment.disk.is_some_and(|disk| disk.contains(" on ")));
    }

    #[test]
    fn the_nearest_mount_point_is_the_disk() {
        let text = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                    28 27 0:23 / /tmp rw shared:1 master:2 - tmpfs tmpfs rw\n\
                    29 27 0:24 / /tm rw - xfs /dev/my\\040disk rw\n";
        assert_eq!(disk(Path::new("/tmp/loadline not there"), text).unwrap(), "tmpfs on tmpfs at /tmp");
        assert_eq!(disk(Path::new("/usr"), text).unwrap(), "ext4 on /dev/vda at /");
        assert_eq!(parse_mount(text.lines().nth(2).unwrap()).unwrap().2, "/dev/my disk");
        assert_eq!(disk(Path::new("/usr"), ""), None);
    }

    #[test]
    fn a_machine_that_tells_no_cpu_model_is_named_by_its_architecture() {
        assert_eq!(cpu_model("processor : 0\nmodel name\t: Some CPU @ 2 GHz\n"), "Some CPU @ 2 GHz");
        assert_eq!(cpu_model("processor : 0\n"), std::env::consts::ARCH);
        assert_eq!(kernel("", "Linux", "6.1"), "Linux 6.1");
        assert_eq!(kernel("NAME=x\nPRETTY_NAME=\"Debian 12\"\n", "Linux", "6.1"), "Debian 12, Linux 6.1");
    }
}
