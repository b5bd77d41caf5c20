//! All targets of `loadline::fuzzing` as one program for libFuzzer; `fuzz/run` starts it.
//!
//! `FUZZ_TARGET` names the target. `FUZZ_SEEDS=DIR` writes what each target begins with, and its words, into a folder, and ends.
//!
//! Beside what a target asserts itself, three things are counted and must hold of every input: how much is allocated at a time, how much is allocated
//! in all, and how many branches of loadline's own code are taken. The last two must not grow faster than the input: some part of it is repeated,
//! and repeated four times as often.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
#[path = "../counting.rs"]
mod counting;
#[cfg(fuzzing)]
#[path = "../growth.rs"]
mod growth;

/// Without `cfg(fuzzing)` there are no targets.
#[cfg(not(fuzzing))]
fn main() {
    eprintln!("start it with fuzz/run");
    std::process::exit(2);
}

#[cfg(fuzzing)]
mod driver {
    use std::path::Path;
    use std::sync::{Mutex, OnceLock};
    use std::time::Instant;

    use libfuzzer_sys::fuzz_target;
    use loadline::fuzzed::Mutator;
    use loadline::fuzzing::TARGETS;

    use super::growth;

    type Target = loadline::fuzzed::Target;

    fn target() -> &'static Target {
        static TARGET: OnceLock<&'static Target> = OnceLock::new();
        TARGET.get_or_init(|| {
            let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            let found = TARGETS.iter().find(|target| target.name == name);
            found.unwrap_or_else(|| panic!("FUZZ_TARGET is {name:?}; there are {}", names.join(", ")))
        })
    }

    /// Writes seeds and words.
    fn write_seeds(into: &Path) -> std::io::Result<()> {
        for target in TARGETS {
            let folder = into.join(target.name);
            std::fs::create_dir_all(&folder)?;
            for (number, seed) in (target.seeds)().iter().enumerate() {
                std::fs::write(folder.join(format!("seed-{number}")), seed)?;
            }
            let hex = |word: &&str| word.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
            let words: String = target.words.iter().map(|word| format!("\"{}\"\n", hex(word))).collect();
            std::fs::write(into.join(format!("{}.words", target.name)), words)?;
            println!("{}", target.name);
        }
        Ok(())
    }

    /// For `FUZZ_MUTATED` seconds, and `FUZZ_RUNS` times at most, gives the target what differs a little from what it begins with: in its first seconds
    /// libFuzzer is busy learning what there is. What is found is written to the folder `FUZZ_FOUND`.
    fn mutate(target: &Target) {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(seconds) = number("FUZZ_MUTATED") else { return };
        static INPUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let input = INPUT.lock().map(|input| input.clone()).unwrap_or_default();
            let folder = std::env::var("FUZZ_FOUND").unwrap_or_else(|_| ".".to_owned());
            let path = format!("{folder}/mutated-{}", std::process::id());
            if !input.is_empty() && std::fs::write(&path, input).is_ok() {
                eprintln!("Test unit written to {path}");
            }
            before(panic);
        }));
        let begun = Instant::now();
        let mut mutator = Mutator::new(target, number("FUZZ_NUMBER").unwrap_or(1));
        let mut runs = 0_u64;
        let runs_most = number("FUZZ_RUNS").unwrap_or(u64::MAX);
        while runs < runs_most && begun.elapsed().as_secs() < seconds {
            let input = mutator.next_input();
            INPUT.lock().expect("a panic ends the process").clone_from(&input);
            growth::check(target, &input);
            runs += 1;
        }
        INPUT.lock().expect("a panic ends the process").clear();
        eprintln!("stat::mutated: {runs}");
    }

    fuzz_target!(
        init: {
            if let Some(into) = std::env::var_os("FUZZ_SEEDS") {
                write_seeds(Path::new(&into)).expect("the folder can be written");
                std::process::exit(0);
            }
            // What is made once is not the first input's.
            target().try_with(b"");
            mutate(target());
        },
        |input: &[u8]| growth::check(target(), input)
    );
}
