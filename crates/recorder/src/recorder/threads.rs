//! Runtimes with threads of their own, on a machine that may have none left. Main function: [`runtime`].

use std::io;
use std::sync::mpsc;

/// Creates a runtime with this number of threads, and at most `blocking_most` more that wait for a disk or a database.
///
/// # Errors
/// If the system has no threads left: they are tried first, since tokio panics for want of one and then waits for ever for the others.
pub fn runtime(name: &'static str, threads: usize, blocking_most: usize) -> io::Result<tokio::runtime::Runtime> {
    // One more, so that the runtime does not take the last one.
    try_threads(name, threads + 1)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(blocking_most)
        .thread_name(name)
        .enable_all()
        .build()
}

/// Starts this number of threads at once, which then end.
fn try_threads(name: &str, count: usize) -> io::Result<()> {
    let mut begun = Vec::with_capacity(count);
    for _ in 0..count {
        let (end, told) = mpsc::channel::<()>();
        let wait = move || told.recv().unwrap_or_default();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(wait).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("the system gives no more threads: {error}; raise the limit of processes (TasksMax, ulimit -u, or pids.max of the cgroup)"),
            )
        })?;
        begun.push((end, thread));
    }
    for (end, thread) in begun {
        drop(end);
        // The thread does nothing that could panic.
        let _ = thread.join();
    }
    Ok(())
}
