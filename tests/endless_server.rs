//! Servers that send more than was asked for: the program gives them up, says so, and takes bounded memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Most bytes that a server sends in all, so that a program that takes everything fails here rather than fill the machine.
const SENT_MOST: usize = 1 << 30;
/// Most memory that the program may have had, in KiB.
const MEMORY_KIB_MAX: u64 = 256 << 10;

/// Lets everybody in as PostgreSQL does, and answers the first statement with a head and a part that is repeated.
fn lie(mut client: TcpStream, head: &[u8], part: &[u8]) -> std::io::Result<()> {
    let mut asked = vec![0; 64 << 10];
    client.read(&mut asked).and_then(|_| client.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"))?;
    client.read(&mut asked).and_then(|_| client.write_all(head))?;
    let many = part.repeat((64 << 10) / part.len());
    (0..SENT_MOST / many.len()).try_for_each(|_| client.write_all(&many))
}

/// What `run` says of such a server, and the most memory that it had, in KiB.
fn run_against(name: &str, head: &'static [u8], part: &'static [u8]) -> (String, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || lie(client, head, part));
        }
    });
    let folder = std::env::temp_dir().join(format!("loadline-endless-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let study = format!(
        "name = \"endless\"\n[database]\nname = \"postgres\"\nurl = \"postgres://a:b@127.0.0.1:{port}/c?sslmode=disable\"\n\
         [record]\nrows = 100\n[load]\nclients = 1\noperations = 20\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    );
    std::fs::write(folder.join("study.toml"), study).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["run", "study.toml", "--out", "run"]).current_dir(&folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut most_kib = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        most_kib = most_kib.max(peak.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    (String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(), most_kib)
}

#[test]
fn a_message_without_an_end_takes_bounded_memory() {
    let (said, most_kib) = run_against("message", b"D\x3f\xff\xff\xff", &[0; 1 << 10]);
    assert!(said.contains("a message of more than 64 MiB, and no more are read"), "{said}");
    assert!(most_kib < MEMORY_KIB_MAX, "{most_kib} KiB");
}

#[test]
fn rows_without_an_end_take_bounded_memory() {
    // A row of one value that is null: small on the way, and large in memory.
    let (said, most_kib) = run_against("rows", b"", b"D\0\0\0\x0a\0\x01\xff\xff\xff\xff");
    assert!(said.contains("rows of more than 64 MiB, and no more are read"), "{said}");
    assert!(most_kib < MEMORY_KIB_MAX, "{most_kib} KiB");
}
