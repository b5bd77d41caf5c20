//! Where servers keep their data, what they say, and as whom loadline runs.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::copied;
use crate::program::{Scratch, is_root, outcome, small_study};

const FAST: &str = "[load]\noperations = 30\nwarmup = \"0s\"";

#[test]
fn what_a_server_says_about_its_settings_is_told_once() {
    let scratch = Scratch::new();
    let database = "[database]\nname = \"mariadb\"\nconfig = { innodb_io_capacity = 1 }";
    // Another server for each level.
    let factor = "[factors]\n\"database.config.innodb_lru_scan_depth\" = [150, 200]";
    scratch.write("study.toml", &small_study(&format!("{database}\n{FAST}\n{factor}")));
    let outcome = scratch.run_study("study.toml", "run").expect(0);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("note: mariadb warns: option 'innodb-io-capacity'"), "{lines:?}");
    assert!(lines[0].ends_with("adjusted to 100"), "{lines:?}");
}

#[test]
fn a_run_directory_that_the_servers_user_may_not_enter_keeps_all_but_the_servers_data() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("closed")).unwrap();
    std::fs::set_permissions(scratch.path("closed"), std::fs::Permissions::from_mode(0o700)).unwrap();
    scratch.write("study.toml", &small_study(&format!("[database]\nname = \"mariadb\"\n{FAST}")));
    let outcome = scratch.run(&["run", "study.toml", "--out", "closed/run"]).expect(0);
    if is_root() {
        let place = loadline::server::root();
        let expected =
            ["note: the server runs as user mysql, who may not enter ", &place.display().to_string(), "--out"];
        for words in expected {
            assert!(outcome.stderr.contains(words), "{words:?} is missing: {}", outcome.stderr);
        }
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    } else {
        assert_eq!(outcome.stderr, "", "the server runs as this user, who may enter");
    }
    assert_eq!(scratch.stored("closed/run").len(), 2);
}

/// A user without any rights of its own.
const NOBODY: u32 = 65534;

/// The program as that user, who may not read the directory that it was built in.
fn as_nobody(scratch: &Scratch, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&scratch.0).env_clear().env("PATH", "/usr/bin:/bin").uid(NOBODY).gid(NOBODY);
    // Whether the client had a CPU all the time is not the question there.
    command.env("LOADLINE_STOLEN", "1");
    command
}

#[test]
fn servers_run_where_paths_have_spaces_or_are_no_text() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    scratch.write("study.toml", &small_study(FAST));
    let (spaced, other) = (scratch.path("a b"), scratch.0.join(std::ffi::OsStr::from_bytes(b"c\xff")));
    for place in [&spaced, &other] {
        std::fs::create_dir(place).unwrap();
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["mariadb", "postgres"] {
        for place in [&spaced, &other] {
            let set = format!("database.name={name}");
            let mut command = scratch.command(&["run", "study.toml", "--set", &set, "--out"]);
            command.arg(place.join(name)).env("TMPDIR", place);
            assert_eq!(outcome(&mut command).expect(0).stderr, "", "{name} in {}", place.display());
        }
    }
}

#[test]
fn another_user_than_root_can_run_servers_too_and_is_told_where_it_may_not_write() {
    if !is_root() {
        // All other tests show the first half; the second needs somebody else's directory.
        let scratch = Scratch::new();
        scratch.write("study.toml", &small_study(FAST));
        outcome(&mut scratch.command(&["run", "study.toml", "--out", "/run/loadline"]))
            .refused(&["you may write to, with --out"]);
        return;
    }
    let scratch = Scratch::new();
    let program = scratch.path("loadline");
    copied::program_at(&program);
    scratch.write("study.toml", &small_study(FAST));
    let run = |out: &str, name: &str| {
        let set = format!("database.name={name}");
        outcome(&mut as_nobody(&scratch, &program, &["run", "study.toml", "--set", &set, "--out", out]))
    };
    run("run", "sqlite").refused(&["run: Permission denied", "choose a directory that you may write to, with --out"]);
    std::fs::create_dir(scratch.path("open")).unwrap();
    chown(scratch.path("open"), Some(NOBODY), Some(NOBODY)).unwrap();
    for name in ["mariadb", "postgres"] {
        assert_eq!(run(&format!("open/{name}"), name).expect(0).stderr, "");
    }
}
