//! Fuzzing: whole control connections of FTP, without a socket.

use std::sync::{Arc, LazyLock};

use super::lines::Lines;
use super::session::{Session, Shared};
use crate::fuzzed::{Script, Target, assert_told, heard, texts};
use crate::recorder::config;
use crate::recorder::inbox::{Inbox, Receiving, check_camera, check_name};
use crate::recorder::intake::anteroom::lone_place;
use crate::recorder::intake::listen::Ends;
use crate::recorder::upload::Blocks;

/// One control connection; the first byte decides into what pieces the rest is cut.
pub static FTP: Target = Target {
    name: "ftp",
    run: session,
    seeds: || {
        texts(&[
            "\0USER GDA-017\r\nPASS x\r\nTYPE I\r\nPBSZ 0\r\nALLO 10 R 1\r\nEPSV 1\r\nSTOR a.block\r\nABOR\r\nQUIT\r\n",
            "\u{3}SYST\r\nFEAT\r\nOPTS UTF8 ON\r\nUSER a\nPASS\nPWD\nCWD /\nPASV\nSTOR ../x\nREST 0\nREST 1\nAPPE a\nHELP\nSTAT\n",
            "\u{1}AUTH TLS\r\nPROT P\r\nPORT 127,0,0,1,0,22\r\nUSER ../a\r\nPASS b\r\nMKD x\r\nNOOP\r\nXX\r\n",
        ])
    },
    words: &["USER ", "PASS ", "STOR ", "PASV\r\n", "EPSV\r\n", "ALLO ", "ABOR\r\n", "REST ", "PROT ", "\u{fffd}"],
    memory: (512 << 10, 64),
    is_linear: true,
};

/// State that all sessions share, and the inbox for their blocks.
struct Place {
    shared: Shared,
    directory: std::path::PathBuf,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("loadline-fuzzed-ftp-{}", std::process::id()));
    let text = format!("[inbox]\npath = {directory:?}\n[intake.ftp]\nlisten = \"127.0.0.1:0\"\npatience = \"100ms\"\n");
    let config = config::read(&text, "c.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let inbox = Inbox::open(&directory, config.inbox.bounds).unwrap_or_else(|error| panic!("{error}"));
    let receiving = Receiving::start(&inbox).unwrap_or_else(|error| panic!("{error}"));
    let blocks = Arc::new(Blocks::new(&config.intake.blocks, receiving).unwrap_or_else(|error| panic!("{error}")));
    let Some(mut config) = config.intake.ftp else { panic!("it is configured") };
    // No client ever opens a data connection; the wait for it is short.
    (config.listen.patience, config.commands) = (std::time::Duration::from_millis(1), 40);
    Place { shared: Shared { config, blocks, certificate: None, stop: Arc::default() }, directory }
});

fn session(input: &[u8]) {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let (script, said) = Script::new(rest, if *first == 0 { usize::MAX } else { usize::from(*first) });
    let place = &*PLACE;
    let ends = Ends { peer: ([127, 0, 0, 1], 5).into(), own: ([127, 0, 0, 1], 21).into() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap_or_else(|error| panic!("{error}")).block_on(async {
        let lines = Lines::new(Box::new(script), place.shared.config.listen.patience);
        let seat = lone_place(&place.shared.config.listen, false, ends.peer.ip());
        Session::new(&place.shared, lines, ends, seat, false).serve().await;
    });
    let said = String::from_utf8(heard(&said)).unwrap_or_else(|error| panic!("a reply is no text: {error}"));
    assert!(said.starts_with("220 ") && said.ends_with("\r\n"));
    for line in said.split_terminator("\r\n") {
        assert_told(line, 400);
        let code = line.get(..4).unwrap_or_default();
        let is_code = code.ends_with([' ', '-']) && code[..3].bytes().all(|byte| byte.is_ascii_digit());
        assert!(is_code || line.starts_with(' '), "{line:?} is no reply");
    }
    assert_names(&place.directory.join("cameras"));
}

/// Asserts that, whatever was sent, the inbox contains nothing but folders of cameras with blocks in them.
fn assert_names(cameras: &std::path::Path) {
    let names = |path: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    for camera in names(cameras) {
        assert_eq!(check_camera(&camera), Ok(()));
        let received = names(&cameras.join(&camera).join("received"));
        received.iter().for_each(|name| assert_eq!(check_name(name), Ok(())));
        let _ = std::fs::remove_dir_all(cameras.join(camera));
    }
}
