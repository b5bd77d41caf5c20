//! Names and commands that try to reach what they must not.

use crate::client::{CAMERA, PASSWORD, Try, block, tls};

#[test]
fn names_that_lead_elsewhere_are_refused_before_a_byte_is_sent() {
    let tried = Try::new("", "");
    let mut ftp = tried.log_in();
    let long = "x".repeat(201);
    let tricks = [
        "../x",
        "..",
        ".",
        "/etc/passwd",
        "/a.block",
        "a/b",
        "a\\b",
        "..\\x",
        ".hidden",
        "tab\there",
        "bell\u{7}",
        "ä",
        "del\u{7f}",
        "",
        " ",
        &long,
    ];
    for name in tricks {
        ftp.passive();
        let reply = ftp.say(&format!("STOR {name}"));
        assert!(reply.starts_with("553 "), "{name:?}: {reply}");
    }
    for line in [&b"STOR a\0b\r\n"[..], b"STOR a\rb\r\n", b"STOR \xff\xfe\r\n"] {
        ftp.passive();
        ftp.send(line);
        let reply = ftp.reply();
        assert!(reply.starts_with("504 "), "{line:?}: {reply}");
    }
    assert_eq!(tried.metric("loadline_uploads_refused_total{reason=\"name\"}"), tricks.len() as u64);
    assert!(!tried.inbox.path().join("cameras").join(CAMERA).exists(), "nothing was made for it");
    assert!(ftp.store("still works.block", &block(1, 10)).starts_with("226 "));
}

#[test]
fn stored_blocks_cannot_be_read_changed_or_removed() {
    let tried = Try::new("", "");
    let mut ftp = tried.log_in();
    let bytes = block(1, 5_000);
    assert!(ftp.store("a.block", &bytes).starts_with("226 "));
    let lines = "DELE a.block|RNFR a.block|RNTO b.block|MKD d|RMD d|APPE a.block|REST 100|STOU|SITE CHMOD 777 a.block|RETR a.block|LIST\
                 |NLST|MLSD|SIZE a.block|MDTM a.block|CDUP|CWD ..|CWD /etc|PORT 127,0,0,1,4,1";
    for line in lines.split('|') {
        ftp.expect(line, "502 ");
    }
    assert!(ftp.store("a.block", &block(2, 5_000)).starts_with("553 "), "it is not overwritten");
    assert_eq!(tried.received(CAMERA), [("a.block".to_owned(), bytes)]);
}

#[test]
fn a_link_that_somebody_placed_in_the_folder_is_not_followed() {
    let tried = Try::new("", "");
    let mut ftp = tried.log_in();
    assert!(ftp.store("first.block", &block(1, 100)).starts_with("226 "));
    let target = tried.directory.0.join("elsewhere");
    std::fs::write(&target, "untouched").unwrap();
    let received = tried.inbox.path().join("cameras").join(CAMERA).join("received");
    std::os::unix::fs::symlink(&target, received.join("link.block")).unwrap();
    std::os::unix::fs::symlink(tried.directory.0.join("nowhere"), received.join("dangling.block")).unwrap();
    for name in ["link.block", "dangling.block"] {
        let reply = ftp.store(name, &block(2, 100));
        assert!(reply.starts_with("553 "), "{name}: {reply}");
    }
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched");
    assert!(!tried.directory.0.join("nowhere").exists());
}

#[test]
fn cameras_have_nothing_of_each_other() {
    let tried = Try::new("", "");
    let (mut first, mut second) = (tried.log_in(), tried.connect());
    second.log_in("GDA-018", PASSWORD);
    assert!(first.store("same.block", &block(1, 100)).starts_with("226 "));
    assert!(second.store("same.block", &block(2, 100)).starts_with("226 "));
    assert_eq!(tried.received(CAMERA), [("same.block".to_owned(), block(1, 100))]);
    assert_eq!(tried.received("GDA-018"), [("same.block".to_owned(), block(2, 100))]);
}

#[test]
fn without_login_nothing_is_taken_and_without_protection_no_password() {
    let tried = Try::new("", "");
    let mut ftp = tried.connect();
    for line in ["PASV", "EPSV", "STOR a.block", "CWD /", "PWD", "ALLO 3"] {
        ftp.expect(line, "530 ");
    }
    ftp.expect("PASS x", "503 ");
    for (camera, password) in [(CAMERA, "wrong"), ("nobody", PASSWORD)] {
        ftp.expect(&format!("USER {camera}"), "331 ");
        ftp.expect(&format!("PASS {password}"), "530 ");
    }
    assert_eq!(tried.metric("loadline_uploads_refused_total{reason=\"login\"}"), 2);

    let tried = Try::new("", &tls());
    let mut ftp = tried.connect();
    ftp.expect(&format!("USER {CAMERA}"), "530 ");
    ftp.expect("PROT P", "503 ");
    let mut ftp = ftp.secured();
    ftp.log_in(CAMERA, PASSWORD);
    for line in ["PASV", "EPSV", "STOR a.block"] {
        ftp.expect(line, "521 ");
    }
    ftp.expect("PROT P", "200 ");
    ftp.expect("EPSV", "229 ");
}

#[test]
fn commands_that_were_sent_ahead_of_tls_are_not_taken_as_protected() {
    let tried = Try::new("", &tls());
    let mut ftp = tried.connect();
    ftp.send(format!("AUTH TLS\r\nUSER {CAMERA}\r\n").as_bytes());
    assert!(ftp.reply().starts_with("234 "));
    assert_eq!(ftp.reply(), "", "the connection is closed");
}
