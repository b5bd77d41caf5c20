//! Moments in which other work leaves a test alone.

/// Repeats a run whose times a busy machine can only make longer, until one of them is as short as the code makes it. What holds at
/// any speed the run asserts itself; it returns what may have come from other work. Code that is too slow is so every time.
pub fn in_a_quiet_moment(tries: u32, mut run: impl FnMut() -> Result<(), String>) {
    let mut why = Vec::new();
    for _ in 0..tries {
        match run() {
            Ok(()) => return,
            Err(reason) => why.push(reason),
        }
    }
    panic!("not in any of {tries} runs:\n{}", why.join("\n"));
}
