//! A disk that is full, a small one made for the purpose: only root can.

use std::ffi::CString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::program::{Outcome, Scratch, small_study, wait_for};

/// A file system of a few mebibytes, in memory; gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: PathBuf, mib: u32) -> Self {
        std::fs::create_dir(&path).unwrap();
        let text = |text: &str| CString::new(text).unwrap();
        let (target, kind) = (text(path.to_str().unwrap()), text("tmpfs"));
        let options = text(&format!("size={mib}m,mode=0755"));
        // SAFETY: all pointers are to zero-terminated texts that live until the call returns.
        let result = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
        let error = std::io::Error::last_os_error();
        assert!(result == 0, "this test mounts a tmpfs at {} and may not ({error}); run it as root", path.display());
        SmallDisk(path)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let target = CString::new(self.0.to_str().unwrap()).unwrap();
        // SAFETY: the pointer is to a zero-terminated text that lives until the call returns.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

fn count_lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn a_file_that_may_not_grow_any_more_is_told_and_ends_nothing_without_a_word() {
    use std::os::unix::process::CommandExt;
    let scratch = Scratch::new();
    scratch.write("study.toml", &small_study("[load]\noperations = 400\nwarmup = \"0s\""));
    let mut command = scratch.command(&["run", "study.toml", "--out", "run"]);
    let limit = || {
        let most = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
        // SAFETY: it sets one limit, which is allowed between fork and exec, from a structure on the stack.
        match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &most) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(limit) };
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(1), "{:?}: {said}", output.status);
    assert!(said.contains("INVALID") || said.contains("too large"), "{said}");
}

#[test]
fn a_full_disk_spoils_the_trial_and_nothing_that_was_finished() {
    let scratch = Scratch::new();
    let disk = SmallDisk::mount(scratch.path("disk"), 8);
    let load = "[load]\noperations = 40\nwarmup = \"0s\"\n[factors]\n\"workload.batch\" = [1, 2000]";
    scratch.write("study.toml", &small_study(load));
    let outcome = scratch.run(&["run", "study.toml", "--out", "disk/run"]).expect(1);
    assert!(outcome.stderr.contains("full"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("INVALID: 2 of 4 trials"), "{}", outcome.stdout);
    let trials = scratch.stored("disk/run");
    for trial in &trials {
        let is_small = trial.trial.case.settings.workload.batch == 1;
        assert_eq!(trial.is_valid(), is_small, "{:?}", trial.invalid_because);
        assert!(
            is_small || trial.invalid_because.iter().any(|why| why.to_string().contains("full")),
            "{:?}",
            trial.invalid_because
        );
    }
    assert_eq!(trials.len(), 4, "trials after the full disk are done as well");
    drop(disk);
}

#[test]
fn a_run_directory_without_room_keeps_what_it_has_and_is_resumed_when_there_is_some() {
    let scratch = Scratch::new();
    let _disk = SmallDisk::mount(scratch.path("disk"), 1);
    // A file that leaves room for some trials only.
    let database = "[database]\nname = \"simulated\"\nconfig = { service = \"100us\" }";
    let load = "[load]\noperations = 300\nwarmup = \"0s\"";
    scratch.write("study.toml", &small_study(&format!("{database}\n{load}")));
    let run = ["run", "study.toml", "--set", "repeat.least=40"];
    std::fs::write(scratch.path("disk/ballast"), vec![0; 900 << 10]).unwrap();
    let outcome = scratch.run(&[&run[..], &["--out", "disk/run"]].concat()).expect(1);
    assert!(outcome.stderr.contains("free some room, then continue with --resume"), "{}", outcome.stderr);
    let finished = scratch.stored("disk/run").len();
    assert!(finished < 40, "the disk was to be full by then");
    assert_eq!(count_lines(&scratch.path("disk/run/trials.jsonl")), finished, "no line is torn");

    std::fs::remove_file(scratch.path("disk/ballast")).unwrap();
    scratch.run(&[&run[..], &["--resume", "disk/run"]].concat()).expect(0);
    assert_eq!(scratch.stored("disk/run").len(), 40);
}

#[test]
fn a_disk_that_fills_up_under_a_server_spoils_no_finished_trial() {
    let scratch = Scratch::new();
    let _disk = SmallDisk::mount(scratch.path("disk"), 420);
    let load = "[load]\noperations = 20\nthink = \"20ms\"\nwarmup = \"0s\"\n[workload]\nbatch = 100";
    scratch.write("study.toml", &small_study(&format!("[database]\nname = \"mariadb\"\n{load}")));
    let mut command = scratch.command(&["run", "study.toml", "--set", "repeat.least=4", "--out", "disk/run"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let finished =
        || std::fs::read_to_string(scratch.path("disk/run/trials.jsonl")).map_or(0, |text| text.lines().count());
    wait_for("the first trial", || finished() > 0);
    // The other trials wait until the disk is full, however long that takes.
    let signal = |signal| {
        // SAFETY: kill takes no pointer; the process is the child that this test has started and not waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    };
    signal(libc::SIGSTOP);
    let mut ballast = std::fs::File::create(scratch.path("disk/ballast")).unwrap();
    let is_full = |error: std::io::Error| error.kind() == std::io::ErrorKind::StorageFull;
    assert!((0..420).any(|_| ballast.write_all(&[1; 1 << 20]).is_err_and(is_full)), "the disk is full");
    signal(libc::SIGCONT);

    let outcome = Outcome::of(child.wait_with_output().unwrap()).expect(1);
    let trials = scratch.stored("disk/run");
    assert!(trials[0].is_valid() && trials.iter().any(|trial| !trial.is_valid()), "{outcome:?}");
    assert_eq!(trials.len(), 4, "what could not be done is recorded: {outcome:?}");
    let words = ["full", "No space left", "no room", "error 28", "No more room"];
    assert!(words.iter().any(|word| outcome.stderr.contains(word)), "{outcome:?}");
}

#[test]
fn a_disk_without_room_for_a_server_is_refused() {
    let scratch = Scratch::new();
    let _disk = SmallDisk::mount(scratch.path("disk"), 64);
    scratch.write("study.toml", &small_study("[database]\nname = \"mariadb\""));
    let arguments = ["run", "study.toml", "--out", "disk/run"];
    scratch.run(&arguments).refused(&["no room for a server below disk/run", "MiB are needed", "--out"]);
    assert!(!scratch.path("disk/run").exists());
}
