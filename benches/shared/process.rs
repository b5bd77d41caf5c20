//! Child processes with what they used.

use std::process::{Command, Stdio};
use std::time::Instant;

/// What a process used, and how many operations it did with that.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    cpu_s: f64,
    elapsed_s: f64,
    memory_kib: i64,
    operations: f64,
}

impl Usage {
    /// User and system time of the whole process, for each operation.
    pub fn cpu_us_per_operation(&self) -> f64 {
        self.cpu_s * 1e6 / self.operations
    }

    /// Operations per second of the measured time.
    pub fn operations_per_s(&self) -> f64 {
        self.operations / self.elapsed_s
    }

    /// Largest resident memory.
    pub fn memory_mib(&self) -> f64 {
        self.memory_kib as f64 / 1024.0
    }

    /// The same with another CPU time.
    pub fn with_cpu(self, cpu_s: f64) -> Self {
        Usage { cpu_s, ..self }
    }

    /// The same with the operations counted, and the time that they took.
    pub fn with(self, operations: f64, elapsed_s: f64) -> Self {
        Usage { operations, elapsed_s, ..self }
    }
}

/// Share of the CPU time that a hypervisor may give to other machines while a command runs.
const STOLEN_MOST: f64 = 0.05;
/// Times that a command is repeated because of it.
const REPEATED_MOST: usize = 100;

/// A command that runs a program in another session than the server's. Its usage is that of what it becomes, or of the child that it waits for.
pub fn in_session_of_its_own(program: &str) -> Command {
    let mut command = Command::new("setsid");
    command.args(["--wait", program]);
    command
}

/// Runs a command to its end and returns its standard output and usage.
pub fn run(command: &mut Command) -> (String, Usage) {
    let (text, usage, status) = run_once(command);
    assert!(status == 0, "{command:?} failed with status {status}");
    (text, usage)
}

/// The same for what is measured: again where the hypervisor took the CPUs away under it, whichever side of a comparison it is. `prepare` does
/// what has to be done before each time.
pub fn measure(command: &mut Command, prepare: impl Fn()) -> (String, Usage) {
    for _ in 0..REPEATED_MOST {
        prepare();
        let before = cpu_ticks();
        let (text, usage, status) = run_once(command);
        let after = cpu_ticks();
        let [stolen, all] = [after[0] - before[0], after[1] - before[1]];
        if stolen <= STOLEN_MOST * all {
            assert!(status == 0, "{command:?} failed with status {status}");
            return (text, usage);
        }
        eprintln!("repeated: the hypervisor gave {:.0} % of the CPU time to other machines", 100.0 * stolen / all);
    }
    panic!("the hypervisor gave too much of the CPU time to other machines, {REPEATED_MOST} times in turn");
}

/// CPU time so far that the hypervisor gave to other machines, and all CPU time, in clock ticks.
fn cpu_ticks() -> [f64; 2] {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    // user nice system idle iowait irq softirq steal
    let ticks: Vec<f64> = line.split_ascii_whitespace().skip(1).take(8).filter_map(|tick| tick.parse().ok()).collect();
    [ticks.get(7).copied().unwrap_or(0.0), ticks.iter().sum()]
}

fn run_once(command: &mut Command) -> (String, Usage, i32) {
    let begun = Instant::now();
    let output_path = std::env::temp_dir().join(format!("loadline-bench-output-{}", std::process::id()));
    let output = std::fs::File::create(&output_path).expect("the temporary directory can be written to");
    let child = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::inherit()).spawn();
    #[expect(clippy::zombie_processes, reason = "wait4 below waits for it, and tells what it used")]
    let child = child.unwrap_or_else(|error| panic!("{command:?} cannot be executed: {error}"));
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the process is a child of ours that nobody else waits for, and both pointers are valid for writing.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, usage.as_mut_ptr()) };
    assert!(waited > 0, "{command:?} cannot be waited for");
    // SAFETY: zero bytes are a valid rusage, and the kernel has filled it in.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let text = std::fs::read_to_string(&output_path).expect("the output was written just now");
    // The file is small and in the temporary directory.
    let _ = std::fs::remove_file(output_path);
    let usage = Usage {
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        elapsed_s: begun.elapsed().as_secs_f64(),
        memory_kib: usage.ru_maxrss,
        operations: f64::NAN,
    };
    (text, usage, status)
}
