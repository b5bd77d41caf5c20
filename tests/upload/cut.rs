//! Uploads that are cut: on every connection, at every stage. What was not acknowledged whole leaves nothing behind.

use std::io::Write;
use std::net::{Shutdown, TcpStream};

use crate::client::{CAMERA, Ftp, PASSWORD, Try, block, secure, tls, wait_until};

/// Ends a connection as a crash does: with a reset.
fn reset(socket: TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the option is a linger, its size is given, and the descriptor is that of an open socket.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            std::ptr::from_ref(&linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
}

#[test]
fn a_data_connection_that_breaks_off_leaves_nothing_wherever_it_breaks() {
    let tried = Try::new("", "");
    let bytes = block(1, 300_000);
    let mut ftp = tried.log_in();
    for end in [0, 1, 1_000, 131_072, 131_073, 299_999, 300_000] {
        let mut data = ftp.begin("a.block");
        data.write_all(&bytes[..end]).unwrap();
        reset(data);
        let reply = ftp.reply();
        assert!(reply.starts_with("426 "), "cut behind {end}: {reply}");
        assert_eq!(tried.names(CAMERA), [""; 0]);
    }
    tried.assert_nothing_half();
    assert_eq!(tried.metric("loadline_uploads_refused_total{reason=\"cut\"}"), 7);
    assert!(ftp.store("a.block", &bytes).starts_with("226 "));
    assert_eq!(tried.received(CAMERA), [("a.block".to_owned(), bytes)]);
}

#[test]
fn a_shorter_end_is_recognised_by_the_announced_length_and_an_empty_one_always() {
    let tried = Try::new("", "");
    let bytes = block(1, 200_000);
    let mut ftp = tried.log_in();
    assert!(ftp.store("a.block", b"").starts_with("426 "), "an end before the first byte");
    for end in [1, 199_999] {
        ftp.expect("ALLO 200000", "200 ");
        let reply = ftp.store("a.block", &bytes[..end]);
        assert!(reply.starts_with("426 ") && reply.contains("200000 were announced"), "{reply}");
        assert_eq!(tried.names(CAMERA), [""; 0]);
    }
    ftp.expect("ALLO 200000", "200 ");
    assert!(ftp.store("a.block", &bytes).starts_with("226 "));
    // The announcement was for one upload. Without one, plain FTP cannot tell an end from a cut: the block's own seal does, later.
    assert!(ftp.store("b.block", &bytes[..100]).starts_with("226 "));
}

#[test]
fn a_control_connection_that_breaks_off_leaves_nothing_at_any_stage() {
    let tried = Try::new("", "");
    let bytes = block(2, 300_000);
    for stage in ["greeting", "user", "password", "passive", "before", "first", "middle", "last"] {
        let mut ftp = Ftp::silent(tried.address("ftp"));
        if stage != "greeting" {
            assert!(ftp.reply().starts_with("220 "));
            ftp.expect(&format!("USER {CAMERA}"), "331 ");
        }
        if !["greeting", "user"].contains(&stage) {
            ftp.expect(&format!("PASS {PASSWORD}"), "230 ");
            ftp.expect("TYPE I", "200 ");
        }
        let port =
            if ["passive", "before", "first", "middle", "last"].contains(&stage) { Some(ftp.passive()) } else { None };
        if let Some(port) = port.filter(|_| stage != "passive") {
            let mut data = crate::client::socket(port);
            ftp.expect("STOR a.block", "150 ");
            let sent = match stage {
                "before" => 0,
                "first" => 1,
                "middle" => 150_000,
                _ => bytes.len(),
            };
            data.write_all(&bytes[..sent]).unwrap();
            ftp.socket.shutdown(Shutdown::Both).unwrap();
            // The server has to see that end, and not the data's.
            wait_until("it was noticed", || tried.metric("loadline_upload_connections") == 0);
            drop(data);
        } else {
            ftp.socket.shutdown(Shutdown::Both).unwrap();
            wait_until("it was noticed", || tried.metric("loadline_upload_connections") == 0);
        }
        assert_eq!(tried.names(CAMERA), [""; 0], "cut at {stage}");
        tried.assert_nothing_half();
    }
    assert!(tried.log_in().store("a.block", &bytes).starts_with("226 "));
}

#[test]
fn an_answer_that_is_lost_is_repeated_when_the_block_is_sent_again() {
    let tried = Try::new("", "");
    let bytes = block(3, 100_000);
    let mut ftp = tried.log_in();
    let mut data = ftp.begin("a.block");
    data.write_all(&bytes).unwrap();
    drop(data);
    wait_until("it is stored", || tried.names(CAMERA).len() == 1);
    // Nobody reads the 226.
    drop(ftp);
    let mut again = tried.log_in();
    let reply = again.store("a.block", &bytes);
    assert!(reply.starts_with("226 ") && reply.contains("sent before"), "{reply}");
    assert!(again.store("a.block", &bytes[1..]).starts_with("553 "), "another content is no repetition");
    assert_eq!(tried.received(CAMERA), [("a.block".to_owned(), bytes)]);
}

#[test]
fn a_protected_upload_without_its_authenticated_end_leaves_nothing() {
    let tried = Try::new("", &tls());
    let bytes = block(4, 200_000);
    let mut ftp = tried.connect().secured();
    ftp.log_in(CAMERA, PASSWORD);
    ftp.expect("PBSZ 0", "200 ");
    ftp.expect("PROT P", "200 ");
    for end in [0, 1, 16_384, 199_999, 200_000] {
        let mut data = secure(ftp.begin("a.block"));
        data.write_all(&bytes[..end]).unwrap();
        data.flush().unwrap();
        // An end that anybody on the way can make.
        data.sock.shutdown(Shutdown::Write).unwrap();
        let reply = ftp.reply();
        assert!(reply.starts_with("426 ") || reply.starts_with("425 "), "cut behind {end}: {reply}");
    }
    assert_eq!(tried.names(CAMERA), [""; 0]);
    tried.assert_nothing_half();
    // A client that never reads its data connection, and closes it at once, is not cut.
    for number in 0..20 {
        let reply = ftp.store_secured(&format!("{number}.block"), &bytes);
        assert!(reply.starts_with("226 "), "{reply}");
    }
    assert!(tried.received(CAMERA).iter().all(|(_, received)| *received == bytes));
}

#[test]
fn an_abort_discards_what_has_come_and_the_session_goes_on() {
    let tried = Try::new("", "");
    let mut ftp = tried.log_in();
    let mut data = ftp.begin("a.block");
    data.write_all(&[1; 1_000]).unwrap();
    ftp.expect("ABOR", "426 ");
    assert!(ftp.reply().starts_with("226 "));
    assert!(ftp.store("b.block", &block(5, 10)).starts_with("226 "));
    assert_eq!(tried.names(CAMERA), ["b.block"]);
    tried.assert_nothing_half();
}
