//! Limits: connections, time, lines, commands, guesses, rates. Whoever reaches one is told so, and the others go on.

use std::io::Write;
use std::time::{Duration, Instant};

use loadline::recorder::inbox::Faults;

use crate::client::{CAMERA, Ftp, PASSWORD, Try, block, socket, wait_until};

#[test]
fn connections_beyond_the_bounds_are_refused_clearly_and_places_are_given_back() {
    let tried = Try::new("connections_per_camera = 2", "connections = 20");
    let (first, second) = (tried.log_in(), tried.log_in());
    let mut third = tried.connect();
    third.expect(&format!("USER {CAMERA}"), "331 ");
    third.expect(&format!("PASS {PASSWORD}"), "421 ");
    assert_eq!(third.reply(), "", "it is closed");
    let mut other = tried.connect();
    other.log_in("GDA-018", PASSWORD);
    drop(first);
    wait_until("a place is given back", || {
        let mut again = tried.connect();
        again.expect(&format!("USER {CAMERA}"), "331 ");
        again.say(&format!("PASS {PASSWORD}")).starts_with("230 ")
    });
    drop(second);
    assert!(other.store("a.block", &block(1, 100)).starts_with("226 "));
}

#[test]
fn a_flood_of_connections_that_say_nothing_does_not_keep_cameras_out() {
    let tried = Try::new("", "connections = 30\npatience = \"60s\"");
    let mut here = tried.log_in();
    // Twice as many as there are places, one after the other; those that came first have to go.
    let mut silent: Vec<_> = (0..60).map(|_| socket(tried.address("ftp"))).collect();
    let mut first = Ftp::silent(tried.address("ftp"));
    let told = first.reply();
    assert!(told.starts_with("220 ") || told.starts_with("421 "), "{told}");
    wait_until("a camera comes in", || {
        let mut ftp = Ftp::silent(tried.address("ftp"));
        if !ftp.reply().starts_with("220 ") {
            return false;
        }
        ftp.log_in("GDA-018", PASSWORD);
        ftp.store("flood.block", &block(1, 100)).starts_with("226 ")
    });
    assert!(here.store("a.block", &block(1, 100)).starts_with("226 "), "those inside are not disturbed");
    let mut words = String::new();
    let _ = std::io::Read::read_to_string(&mut silent[0], &mut words);
    assert!(words.contains("421 "), "who is sent away is told why: {words}");
}

#[test]
fn silent_and_trickling_uploads_are_broken_off_and_do_not_stop_others() {
    let tried = Try::new("slowest = \"10KiB\"", "patience = \"3s\"");
    let mut silent = tried.log_in();
    let held = silent.begin("silent.block");
    let mut trickling = tried.log_in();
    let mut trickle = trickling.begin("trickling.block");
    let mut other = tried.connect();
    other.log_in("GDA-018", PASSWORD);
    let begun = Instant::now();
    let trickler = std::thread::spawn(move || {
        // Ten bytes at a time, never silent for long.
        while begun.elapsed() < Duration::from_secs(60) && trickle.write_all(&[1; 10]).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    for number in 0..5 {
        assert!(other.store(&format!("{number}.block"), &block(number, 50_000)).starts_with("226 "));
    }
    let reply = silent.reply();
    assert!(reply.starts_with("426 ") && reply.contains("nothing came for"), "{reply}");
    let reply = trickling.reply();
    assert!(reply.starts_with("426 ") && reply.contains("per second"), "{reply}");
    drop((held, trickling));
    trickler.join().unwrap();
    assert_eq!(tried.metric("loadline_uploads_refused_total{reason=\"slow\"}"), 2);
    assert_eq!(tried.names(CAMERA), [""; 0]);
    tried.assert_nothing_half();
}

#[test]
fn sessions_that_are_silent_or_say_too_much_are_ended() {
    let tried = Try::new("", "idle = \"100ms\"\ncommands = 20");
    let mut silent = tried.log_in();
    assert!(silent.reply().starts_with("421 "));
    let mut ftp = tried.log_in();
    let replies: Vec<_> = (0..30).map(|_| ftp.say("NOOP")).take_while(|reply| !reply.is_empty()).collect();
    assert!(replies.len() < 22 && replies.last().unwrap().starts_with("421 "), "{replies:?}");

    let tried = Try::new("", "");
    let mut endless = tried.connect();
    // No more than a line may have is kept of it.
    endless.send(&vec![b'A'; 1 << 20]);
    assert!(endless.reply().starts_with("500 "));
    assert_eq!(endless.reply(), "");
    let mut chatty = tried.connect();
    let replies: Vec<_> = (0..50).map(|_| chatty.say("FEAT")).take_while(|reply| !reply.is_empty()).collect();
    assert!(replies.len() <= 31 && replies.last().unwrap().starts_with("421 "), "{}", replies.len());
}

#[test]
fn guessing_is_slowed_and_ends_the_session() {
    let tried = Try::new("", "attempts = 3");
    let mut known = tried.log_in();
    let guess = |attempt: u32, ftp: &mut Ftp| {
        ftp.expect(&format!("USER {CAMERA}"), "331 ");
        ftp.say(&format!("PASS guess{attempt}"))
    };
    let begun = Instant::now();
    let mut ftp = tried.connect();
    assert!(guess(0, &mut ftp).starts_with("530 "));
    assert!(guess(1, &mut ftp).starts_with("530 "));
    assert!(guess(2, &mut ftp).starts_with("421 "), "the third ends the session");
    assert_eq!(ftp.reply(), "");
    let mut ftp = tried.connect();
    assert!(guess(3, &mut ftp).starts_with("530 "));
    // The pause itself: a lower bound, which a busy machine only lengthens.
    assert!(begun.elapsed() >= Duration::from_millis(500), "{:?}", begun.elapsed());
    // Who has logged in before is recognised at once, and who is in is not disturbed.
    assert!(tried.log_in().store("a.block", &block(1, 10)).starts_with("226 "));
    assert!(known.store("b.block", &block(2, 10)).starts_with("226 "));
}

#[test]
fn bytes_are_held_to_the_rate_of_the_camera_and_of_all() {
    let tried = Try::new("rate = \"1200KiB\"\nrate_per_camera = \"600KiB\"", "");
    let begun = Instant::now();
    let upload = |camera: &'static str| {
        let mut ftp = tried.connect();
        ftp.log_in(camera, PASSWORD);
        assert!(ftp.store(&format!("{camera}.block"), &block(1, 600 << 10)).starts_with("226 "));
        begun.elapsed()
    };
    std::thread::scope(|scope| {
        let uploads = [CAMERA, "GDA-018"].map(|camera| scope.spawn(move || upload(camera)));
        for upload in uploads {
            // A second's bytes, less the burst; more on a busy machine.
            let took = upload.join().unwrap();
            assert!(took >= Duration::from_millis(850), "{took:?}");
        }
    });
}

#[test]
fn blocks_that_come_faster_than_their_rate_are_asked_to_come_again() {
    let tried = Try::new("blocks_per_s_per_camera = 0.01", "");
    let mut ftp = tried.log_in();
    for number in 0..2 {
        assert!(ftp.store(&format!("{number}.block"), &block(number, 100)).starts_with("226 "));
    }
    let reply = ftp.store("2.block", &block(2, 100));
    assert!(reply.starts_with("450 ") && reply.contains("send again in"), "{reply}");
    let mut other = tried.connect();
    other.log_in("GDA-018", PASSWORD);
    assert!(other.store("0.block", &block(0, 100)).starts_with("226 "));
    assert_eq!(tried.metric("loadline_uploads_refused_total{reason=\"rate\"}"), 1);
}

#[test]
fn a_data_connection_that_does_not_come_is_not_waited_for_long_and_strangers_are_not_let_in() {
    let tried = Try::with("", "", "patience = \"200ms\"", "", Faults::default());
    let mut ftp = tried.log_in();
    ftp.expect("STOR a.block", "425 ");
    ftp.passive();
    ftp.expect("STOR a.block", "150 ");
    assert!(ftp.reply().starts_with("425 "));
    let port = ftp.passive();
    // Another host of this machine: 127.0.0.2.
    let stranger = std::process::Command::new("python3")
        .args(["-c", "import socket,sys\ns = socket.socket()\ns.bind(('127.0.0.2', 0))\ns.connect(('127.0.0.1', int(sys.argv[1])))\n\
                      s.sendall(b'from elsewhere')\ns.shutdown(1)\ns.recv(1)", &port.port().to_string()])
        .stderr(std::process::Stdio::null())
        .spawn();
    let mut stranger = stranger.unwrap();
    ftp.expect("STOR a.block", "150 ");
    assert!(ftp.reply().starts_with("425 "));
    stranger.wait().unwrap();
    assert_eq!(tried.names(CAMERA), [""; 0]);
}
