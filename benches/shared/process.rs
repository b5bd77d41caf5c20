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

    /// The same with the operations counted, and the time that they took.
    pub fn with(self, operations: f64, elapsed_s: f64) -> Self {
        Usage { operations, elapsed_s, ..self }
    }
}

/// Runs a command to its end and returns its standard output and usage.
pub fn run(command: &mut Command) -> (String, Usage) {
    let begun = Instant::now();
    let output_path = std::env::temp_dir().join(format!("loadline-bench-output-{}", std::process::id()));
    let output = std::fs::File::create(&output_path).expect("the temporary directory can be written to");
    let child = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::inherit()).spawn();
    #[expect(clippy::zombie_processes, reason = "wait4 below waits for it, and tells what it used")]
    let child = child.unwrap_or_else(|error| panic!("{command:?} cannot be executed: {error}"));
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the process is a child of ours that nobody else waits for, and both pointers are valid for writing.
    let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, usage.as_mut_ptr()) };
    assert!(waited > 0 && status == 0, "{command:?} failed with status {status}");
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
    (text, usage)
}
