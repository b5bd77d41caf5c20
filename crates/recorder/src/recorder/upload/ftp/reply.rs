//! Replies of the FTP server: a code and a sentence, each code as RFC 959, 2228 and 4217 define it.
//!
//! Codes that begin with 4 ask to send again later, and clients do so by themselves; codes that begin with 5 do not.

use std::net::{IpAddr, SocketAddr};

use crate::recorder::inbox::{Acknowledged, InboxError};
use crate::recorder::upload::NotTaken;

pub(super) const READY: &str = "220 loadline takes in blocks\r\n";
pub(super) const TOO_MANY: &[u8] = b"421 Too many connections; come again later\r\n";
pub(super) const OTHERS_WAIT: &str = "421 Others wait to log in; come again and log in at once\r\n";
pub(super) const TOO_MANY_OF_CAMERA: &str = "421 This camera has as many connections as it may\r\n";
pub(super) const TOO_MANY_GUESSES: &str = "421 Too many wrong passwords; come again later\r\n";
pub(super) const TOO_MANY_COMMANDS: &str = "421 Too many commands without a block\r\n";
pub(super) const STOPPING: &str = "421 The recorder is stopping; come again later\r\n";
pub(super) const IDLE: &str = "421 Nothing came for too long\r\n";
pub(super) const LINE_TOO_LONG: &str = "500 The line is too long\r\n";
pub(super) const UNKNOWN: &str = "500 This command is not known\r\n";
pub(super) const BYE: &str = "221 Goodbye\r\n";
pub(super) const DONE: &str = "200 Done\r\n";
pub(super) const STAYED: &str = "250 Every camera has one folder, and this is it\r\n";
pub(super) const WHERE: &str = "257 \"/\" is the folder of this camera\r\n";
pub(super) const SYSTEM: &str = "215 UNIX Type: L8\r\n";
pub(super) const HELP: &str = "214 Log in, PASV or EPSV, STOR a name; 226 says that the block is durable\r\n";
pub(super) const FEATURES: &str =
    "211-Features\r\n ALLO\r\n AUTH TLS\r\n EPSV\r\n PBSZ\r\n PROT\r\n UTF8\r\n211 End\r\n";
pub(super) const NO_TLS: &str = "534 There is no certificate here, so there is no TLS\r\n";
pub(super) const SECURE: &str = "234 Go on with TLS\r\n";
pub(super) const TLS_FIRST: &str = "530 Use AUTH TLS before you log in\r\n";
pub(super) const TLS_ALREADY: &str = "503 This connection is protected already\r\n";
pub(super) const NO_TLS_YET: &str = "503 Use AUTH TLS first\r\n";
pub(super) const PROTECTED: &str = "521 Data must be protected; use PROT P\r\n";
pub(super) const PASSWORD: &str = "331 Now the password\r\n";
pub(super) const USER_FIRST: &str = "503 Use USER first\r\n";
pub(super) const WRONG_PASSWORD: &str = "530 No such camera, or not its password\r\n";
pub(super) const LOGGED_IN: &str = "230 Logged in\r\n";
pub(super) const LOGGED_IN_ALREADY: &str = "503 Logged in already\r\n";
pub(super) const LOG_IN: &str = "530 Log in first\r\n";
pub(super) const PASSIVE_FIRST: &str = "425 Use PASV or EPSV first\r\n";
pub(super) const NO_PORT: &str = "425 There is no port left for data; send again later\r\n";
pub(super) const NO_ADDRESS: &str = "425 This address does not fit into PASV; use EPSV\r\n";
pub(super) const NOT_CONNECTED: &str = "425 No data connection came\r\n";
pub(super) const BINARY: &str = "550 Blocks are binary; use TYPE I\r\n";
pub(super) const SEND: &str = "150 Send the block\r\n";
pub(super) const NOTHING_TO_ABORT: &str = "226 Nothing is being sent\r\n";
pub(super) const ABORTED: &str = "426 Aborted, nothing is stored\r\n226 Aborted\r\n";
pub(super) const FROM_BEGINNING: &str = "350 From the beginning\r\n";
pub(super) const ALLOCATED: &str = "200 Fewer bytes will be taken for an upload that was cut\r\n";

/// Reply to a command that is known but not supported.
pub(super) fn not_done(reason: &str) -> String {
    format!("502 Not done here: {reason}\r\n")
}

/// Reply to a parameter that is not accepted.
pub(super) fn wrong(reason: &str) -> String {
    format!("504 Not taken: {reason}\r\n")
}

/// Reply to `PASV` with the address to connect to; `None` if the address does not fit into it.
pub(super) fn passive(address: IpAddr, port: u16) -> Option<String> {
    let IpAddr::V4(address) = address else { return None };
    let [a, b, c, d] = address.octets();
    Some(format!("227 Entering Passive Mode ({a},{b},{c},{d},{},{})\r\n", port >> 8, port & 0xff))
}

/// Reply to `EPSV` with the port to connect to.
pub(super) fn extended_passive(port: u16) -> String {
    format!("229 Entering Extended Passive Mode (|||{port}|)\r\n")
}

/// Reply to an upload.
pub(super) fn stored(outcome: &Result<Acknowledged, NotTaken>) -> String {
    let (code, sentence) = match outcome {
        Ok(Acknowledged::New) => return "226 The block is durable\r\n".to_owned(),
        Ok(Acknowledged::Again) => return "226 The block is durable; it was sent before\r\n".to_owned(),
        Err(refusal) => (code(refusal), refusal.to_string()),
    };
    format!("{code} {}\r\n", sentence.replace(|character: char| character.is_control(), " "))
}

fn code(refusal: &NotTaken) -> u16 {
    match refusal {
        NotTaken::Inbox(InboxError::Name(_) | InboxError::Exists(_)) => 553,
        NotTaken::Inbox(InboxError::TooLarge(_)) => 552,
        NotTaken::Inbox(InboxError::Full(_)) => 452,
        NotTaken::Inbox(InboxError::Broken(_) | InboxError::Unusable { .. }) => 451,
        NotTaken::TooFast(_) => 450,
        NotTaken::Cut(_) | NotTaken::Slow(_) => 426,
        NotTaken::Stopping => 421,
    }
}

/// Returns the address that clients are told: the one they reached, unless another is configured.
pub(super) fn told(configured: Option<IpAddr>, own: SocketAddr) -> IpAddr {
    configured.unwrap_or(own.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passive_reply_has_the_form_that_clients_read() {
        let reply = passive([192, 168, 3, 4].into(), 50_001).unwrap();
        assert_eq!(reply, "227 Entering Passive Mode (192,168,3,4,195,81)\r\n");
        assert_eq!(passive("::1".parse().unwrap(), 1), None);
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:21".parse().unwrap();
        assert_eq!(told(None, mapped), IpAddr::from([10, 0, 0, 1]));
        assert_eq!(told(Some([1, 2, 3, 4].into()), mapped), IpAddr::from([1, 2, 3, 4]));
    }

    #[test]
    fn what_may_be_sent_again_has_another_code_than_what_may_not() {
        let full = Err(NotTaken::Inbox(InboxError::Full("no room\nreally".to_owned())));
        assert_eq!(stored(&full), "452 no room really\r\n");
        assert!(stored(&Err(InboxError::Exists("a".to_owned()).into())).starts_with("553 "));
        assert!(stored(&Err(NotTaken::Cut("gone".to_owned()))).starts_with("426 "));
    }
}
