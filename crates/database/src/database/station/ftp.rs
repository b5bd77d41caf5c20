//! Uploads over FTP as cameras do them: one control connection, and a data connection for each block. Main type: [`FtpLine`].

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;

use super::stream::{Dialer, Secured};
use super::{Camera, Line, UploadWay, lost};
use crate::database::DatabaseError;

/// The maximum bytes of a reply.
const REPLY_BYTES_MAX: usize = 8 << 10;

/// A logged-in control connection.
pub(super) struct FtpLine {
    control: BufReader<Secured>,
    peer: SocketAddr,
    dialer: Dialer,
    is_protected: bool,
}

impl FtpLine {
    pub(super) fn open(dialer: &Dialer, camera: &Camera, way: UploadWay) -> Result<Self, DatabaseError> {
        let socket = dialer.dial()?;
        let peer = socket.peer_addr().map_err(|error| lost(&error))?;
        let is_protected = way != UploadWay::Ftp;
        let control = match way {
            UploadWay::FtpImplicit => dialer.secure(socket)?,
            _ => Secured::Plain(socket),
        };
        let mut line = FtpLine { control: BufReader::new(control), peer, dialer: dialer.clone(), is_protected };
        line.expect(220)?;
        if way == UploadWay::FtpTls {
            line.say("AUTH TLS", 234)?;
            let Secured::Plain(socket) = line.control.into_inner() else {
                return Err(DatabaseError::Lost("the connection is protected already".to_owned()));
            };
            line =
                FtpLine { control: BufReader::new(dialer.secure(socket)?), peer, dialer: dialer.clone(), is_protected };
        }
        line.say(&format!("USER {}", camera.name), 331)?;
        line.say(&format!("PASS {}", camera.password), 230)?;
        if is_protected {
            line.say("PBSZ 0", 200)?;
            line.say("PROT P", 200)?;
        }
        line.say("TYPE I", 200)?;
        Ok(line)
    }

    fn say(&mut self, command: &str, expected: u16) -> Result<String, DatabaseError> {
        let stream = self.control.get_mut();
        let said = stream.write_all(format!("{command}\r\n").as_bytes()).and_then(|()| stream.flush());
        said.map_err(|error| lost(&error))?;
        self.expect(expected)
    }

    /// Receives a reply, which must have this code.
    fn expect(&mut self, expected: u16) -> Result<String, DatabaseError> {
        let (code, text) = self.reply()?;
        match code {
            code if code == expected => Ok(text),
            // The station closes the connection after this reply.
            421 => Err(DatabaseError::Lost(text)),
            code => Err(DatabaseError::refused(code.to_string(), text)),
        }
    }

    fn reply(&mut self) -> Result<(u16, String), DatabaseError> {
        let mut all = String::new();
        loop {
            let start = all.len();
            let read = self.control.read_line(&mut all).map_err(|error| lost(&error))?;
            if read == 0 || all.len() > REPLY_BYTES_MAX {
                return Err(DatabaseError::Lost("the station has hung up".to_owned()));
            }
            if let Some((code, text)) = all[start..].split_once(' ')
                && let Ok(code) = code.parse()
            {
                return Ok((code, text.trim().to_owned()));
            }
        }
    }
}

impl Line for FtpLine {
    fn upload(&mut self, name: &str, parts: [&[u8]; 2]) -> Result<(), DatabaseError> {
        let told = self.say("EPSV", 229)?;
        let port = told.split('|').nth(3).and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| DatabaseError::Lost(format!("no port in \"{told}\"")))?;
        let socket = self.dialer.dial_port(self.peer, port)?;
        self.say(&format!("STOR {name}"), 150)?;
        let mut data = if self.is_protected { self.dialer.secure(socket)? } else { Secured::Plain(socket) };
        // A refusal breaks the data connection during the write; the station's reply decides.
        let _ = parts.iter().try_for_each(|part| data.write_all(part)).and_then(|()| data.finish());
        self.expect(226).map(drop)
    }
}
