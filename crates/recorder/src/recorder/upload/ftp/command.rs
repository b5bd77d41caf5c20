//! Commands of an FTP client: one line, one command (RFC 959, 2228, 2428, 4217). Main type: [`Command`]; parsing it is pure.
//!
//! Only what uploading needs is understood. Commands that would read, change or remove blocks, or make the server open connections, are
//! known by name and refused.

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// `AUTH TLS`
    AuthTls,
    /// `PBSZ 0`
    ProtectionSize,
    /// `PROT P` (true) or `PROT C`.
    Protect(bool),
    /// `USER`
    User(String),
    /// `PASS`
    Password(String),
    /// `TYPE I` (true), or text.
    Binary(bool),
    /// `MODE S`, `STRU F`, `OPTS UTF8 ON`: settings that hold anyway.
    AsItIs,
    /// `PASV`
    Passive,
    /// `EPSV`
    ExtendedPassive,
    /// `ALLO`, with the number of bytes that will come.
    Allocate(u64),
    /// `REST 0`: from the beginning.
    FromBeginning,
    /// `STOR`
    Store(String),
    /// `ABOR`
    Abort,
    /// `CWD` to the only directory there is.
    Stay,
    /// `PWD`
    Where,
    /// `SYST`
    System,
    /// `FEAT`
    Features,
    /// `STAT` or `HELP` without a parameter.
    Help,
    /// `NOOP`
    Nothing,
    /// `QUIT`
    Quit,
    /// A command that is known but not supported; the reason.
    Refused(&'static str),
    /// A parameter that is not accepted; the reason.
    Wrong(&'static str),
    /// An unknown command.
    Unknown,
}

const GIVEN_OUT: &str = "blocks are taken in here, not given out";
const CHANGED: &str = "blocks that are stored are not changed";
const ACTIVE: &str = "the server opens no connections; use PASV or EPSV";
const FOLDERS: &str = "every camera has one folder, and this is it";

/// Parses a line without its end.
pub(super) fn read(line: &[u8]) -> Command {
    let Ok(text) = std::str::from_utf8(line) else { return Command::Wrong("commands must be UTF-8") };
    if text.contains('\0') || text.contains('\r') {
        return Command::Wrong("commands have no NUL and no CR within");
    }
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let upper = rest.trim().to_ascii_uppercase();
    match (verb.to_ascii_uppercase().as_str(), upper.as_str()) {
        ("AUTH", "TLS" | "TLS-C" | "SSL") => Command::AuthTls,
        ("AUTH", _) => Command::Wrong("there is AUTH TLS"),
        ("PBSZ", _) => Command::ProtectionSize,
        ("PROT", "P") => Command::Protect(true),
        ("PROT", "C") => Command::Protect(false),
        ("PROT", _) => Command::Wrong("there are PROT P and PROT C"),
        ("USER", _) => Command::User(rest.to_owned()),
        ("PASS", _) => Command::Password(rest.to_owned()),
        ("TYPE", "I" | "L 8") => Command::Binary(true),
        ("TYPE", "A" | "A N") => Command::Binary(false),
        ("TYPE", _) => Command::Wrong("there are TYPE I and TYPE A"),
        ("MODE", "S") | ("STRU", "F") | ("OPTS", "UTF8" | "UTF8 ON") => Command::AsItIs,
        ("MODE" | "STRU" | "OPTS", _) => Command::Wrong("there are MODE S, STRU F and OPTS UTF8 ON"),
        ("PASV", _) => Command::Passive,
        ("EPSV", "" | "1" | "2" | "ALL") => Command::ExtendedPassive,
        ("EPSV", _) => Command::Wrong("there are EPSV, EPSV 1 and EPSV 2"),
        ("ALLO", _) => match upper.split(' ').next().and_then(|bytes| bytes.parse().ok()) {
            Some(bytes) => Command::Allocate(bytes),
            None => Command::Wrong("ALLO needs a number of bytes"),
        },
        ("REST", "0") => Command::FromBeginning,
        ("STOR", _) => Command::Store(rest.to_owned()),
        ("ABOR", _) => Command::Abort,
        ("CWD" | "XCWD", "/" | "." | "./" | "") => Command::Stay,
        ("CWD" | "XCWD" | "CDUP" | "XCUP", _) => Command::Refused(FOLDERS),
        ("PWD" | "XPWD", _) => Command::Where,
        ("SYST", _) => Command::System,
        ("FEAT", _) => Command::Features,
        ("STAT" | "HELP", "") => Command::Help,
        ("NOOP", _) => Command::Nothing,
        ("QUIT", _) => Command::Quit,
        ("RETR" | "LIST" | "NLST" | "MLSD" | "MLST" | "STAT" | "SIZE" | "MDTM" | "HELP", _) => {
            Command::Refused(GIVEN_OUT)
        }
        ("APPE" | "REST" | "STOU" | "DELE" | "RNFR" | "RNTO" | "RMD" | "XRMD" | "MFMT" | "SITE", _) => {
            Command::Refused(CHANGED)
        }
        ("MKD" | "XMKD" | "SMNT", _) => Command::Refused(FOLDERS),
        ("PORT" | "EPRT" | "LPRT", _) => Command::Refused(ACTIVE),
        ("CCC" | "REIN" | "ACCT" | "CONF" | "ENC" | "MIC" | "ADAT" | "HOST" | "LANG", _) => {
            Command::Refused("not needed for uploading")
        }
        _ => Command::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_clients_say_is_understood_in_any_case() {
        for (line, command) in [
            ("auth tls", Command::AuthTls),
            ("USER GDA-017", Command::User("GDA-017".to_owned())),
            ("PASS  two spaces ", Command::Password(" two spaces ".to_owned())),
            ("Type i", Command::Binary(true)),
            ("TYPE A", Command::Binary(false)),
            ("EPSV", Command::ExtendedPassive),
            ("ALLO 2000000", Command::Allocate(2_000_000)),
            ("ALLO 10 R 1", Command::Allocate(10)),
            ("STOR a b.block", Command::Store("a b.block".to_owned())),
            ("STOR ../x", Command::Store("../x".to_owned())),
            ("CWD /", Command::Stay),
            ("OPTS UTF8 ON", Command::AsItIs),
            ("REST 0", Command::FromBeginning),
        ] {
            assert_eq!(read(line.as_bytes()), command, "{line}");
        }
    }

    #[test]
    fn what_would_touch_stored_blocks_or_others_is_refused() {
        let lines = "APPE a|REST 10|STOU|DELE a|RNFR a|RNTO b|MKD d|RMD d|SITE CHMOD 777 a|RETR a|LIST|NLST|MLSD|SIZE a|MDTM a|CDUP|CWD ..|CWD /etc\
                     |PORT 127,0,0,1,0,22|EPRT x|CCC";
        for line in lines.split('|') {
            assert!(matches!(read(line.as_bytes()), Command::Refused(_)), "{line}: {:?}", read(line.as_bytes()));
        }
        assert!(matches!(read(b"STOR a\0b"), Command::Wrong(_)));
        assert!(matches!(read(b"STOR \xff"), Command::Wrong(_)));
        assert_eq!(read(b"GET / HTTP/1.1"), Command::Unknown);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&line);
        }
    }
}
