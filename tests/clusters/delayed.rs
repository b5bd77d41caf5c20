//! A way from the primary of a Redis cluster to its replica on which everything takes a set time longer.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::program::Scratch;

/// Makes a program that starts a server, whose replicas get everything from their primary `delay` later. Returns its path.
pub fn server(scratch: &Scratch, delay: Duration) -> String {
    let primary = scratch.write("primary", "");
    // The servers have a user of their own.
    std::fs::set_permissions(&primary, Permissions::from_mode(0o666)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = primary.clone();
    std::thread::spawn(move || {
        for replica in listener.incoming().flatten() {
            let port = std::fs::read_to_string(&place).unwrap().trim().parse::<u16>().unwrap();
            // A primary that is gone lets nobody in.
            if let Ok(primary) = TcpStream::connect(("127.0.0.1", port)) {
                relay(replica, primary, delay);
            }
        }
    });
    let primary = primary.display();
    program(
        scratch,
        &format!(
            "case \"$*\" in\n*\" --replicaof \"*)\n  all=\"$*\"\n  echo \"${{all##* }}\" > {primary}\n  \
             exec redis-server \"$@\" --replicaof 127.0.0.1 {port} ;;\nesac\nexec redis-server \"$@\"\n"
        ),
    )
}

/// Writes a program of the shell and returns its path. Another process writes it, as `tests/copied` explains.
pub fn program(scratch: &Scratch, text: &str) -> String {
    let path = scratch.path("server").display().to_string();
    let write = format!("cat > {path} && chmod 755 {path}");
    let mut shell = Command::new("sh").args(["-c", &write]).stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(format!("#!/bin/sh\n{text}").as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
    path
}

fn relay(replica: TcpStream, primary: TcpStream, delay: Duration) {
    let (mut from_replica, mut to_primary) = (replica.try_clone().unwrap(), primary.try_clone().unwrap());
    std::thread::spawn(move || {
        // Whichever of them ends, the other one learns it.
        let _ = std::io::copy(&mut from_replica, &mut to_primary);
        let _ = to_primary.shutdown(Shutdown::Both);
    });
    let (mut from_primary, mut to_replica) = (primary, replica);
    let (send, receive) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        for (due, bytes) in receive {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to_replica.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to_replica.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from_primary.read(&mut bytes) {
            if send.send((Instant::now() + delay, bytes[..read].to_vec())).is_err() {
                break;
            }
        }
    });
}
