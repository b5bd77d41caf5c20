//! Queue of log lines on their way to stderr. Main type: [`Queue`].
//!
//! Invariant: lines and bytes are bounded, and the caller that adds a line never waits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most lines that may wait.
const LINES_MAX: usize = 1_000;
/// The most bytes that may wait.
const BYTES_MAX: usize = 1 << 20;

/// The waiting lines.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    bytes: usize,
    /// True while a line that was taken out is not written yet.
    is_writing: bool,
    /// Number of dropped lines that are not reported yet, and of all dropped lines.
    untold: u64,
    dropped: u64,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line at the end, or drops it if there is no room.
    pub(super) fn push(&self, line: String) {
        let mut state = self.lock();
        if state.lines.len() >= LINES_MAX || state.bytes + line.len() > BYTES_MAX {
            (state.untold, state.dropped) = (state.untold + 1, state.dropped + 1);
            // Nothing may be before it that would be told first.
            self.changed.notify_all();
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        self.changed.notify_all();
    }

    /// Writes line after line, for ever. If lines were dropped, those that waited before them are written, then the line that `tell` makes of their number.
    pub(super) fn work(&self, write: &dyn Fn(&str), tell: &dyn Fn(&str) -> String) {
        loop {
            let line = self.next(tell);
            write(&line);
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }

    fn next(&self, tell: &dyn Fn(&str) -> String) -> String {
        let mut state = self.lock();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.is_writing = true;
                return line;
            }
            if state.untold > 0 {
                state.is_writing = true;
                return tell(&std::mem::take(&mut state.untold).to_string());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until all lines are written, but no longer than `within`.
    pub(super) fn flush(&self, within: Duration) {
        let waits = |state: &mut State| state.is_writing || !state.lines.is_empty() || state.untold > 0;
        drop(self.changed.wait_timeout_while(self.lock(), within, waits));
    }

    /// Returns the number of dropped lines.
    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn what_nobody_takes_is_dropped_and_told_of() {
        let queue = Arc::new(Queue::default());
        let (sender, receiver) = sync_channel::<String>(0);
        let working = Arc::clone(&queue);
        std::thread::spawn(move || {
            let write = |line: &str| {
                let _ = sender.send(line.to_owned());
            };
            working.work(&write, &|dropped| format!("{dropped} dropped"));
        });
        let all = LINES_MAX + 500;
        (0..all).for_each(|number| queue.push(number.to_string()));
        let dropped = queue.dropped();
        // One line may have been taken out already.
        assert!((499..=500).contains(&dropped), "{dropped}");
        queue.flush(Duration::from_millis(1));
        // It is not known when that was: the lines come in order, and as many as were not dropped.
        let came: Vec<usize> = (0..all - dropped as usize).map(|_| receiver.recv().unwrap().parse().unwrap()).collect();
        assert!(
            came.is_sorted_by(|a, b| a < b) && came[..LINES_MAX] == (0..LINES_MAX).collect::<Vec<_>>()[..],
            "{came:?}"
        );
        assert_eq!(receiver.recv().unwrap(), format!("{dropped} dropped"));
        queue.push("x".repeat(BYTES_MAX + 1));
        assert_eq!((receiver.recv().unwrap().as_str(), queue.dropped()), ("1 dropped", dropped + 1));
        queue.push("again".to_owned());
        assert_eq!(receiver.recv().unwrap(), "again");
        queue.flush(Duration::from_secs(240));
    }
}
