//! Uploads over HTTP PUT on a persistent connection. Main type: [`PutLine`].

use std::io::{Read, Write};

use super::stream::{Dialer, Secured};
use super::{Camera, Line, lost};
use crate::database::DatabaseError;
use crate::database::http::read_answer;

/// A connection for uploads of blocks.
pub(super) struct PutLine {
    stream: Secured,
    host: String,
    camera: Camera,
}

impl PutLine {
    pub(super) fn open(dialer: &Dialer, camera: &Camera) -> Result<Self, DatabaseError> {
        let socket = dialer.dial()?;
        let stream = if dialer.has_tls() { dialer.secure(socket)? } else { Secured::Plain(socket) };
        Ok(PutLine { stream, host: dialer.host().to_owned(), camera: camera.clone() })
    }

    fn answer(&mut self) -> Result<(u16, String), DatabaseError> {
        let (mut input, mut piece) = (Vec::new(), [0; 4_096]);
        loop {
            if let Some(answer) = read_answer(&input).map_err(DatabaseError::Lost)? {
                return Ok((answer.status, String::from_utf8_lossy(&input[answer.body]).trim().to_owned()));
            }
            match self.stream.read(&mut piece).map_err(|error| lost(&error))? {
                0 => return Err(DatabaseError::Lost("the station has hung up".to_owned())),
                read => input.extend_from_slice(&piece[..read]),
            }
        }
    }
}

impl Line for PutLine {
    fn upload(&mut self, name: &str, parts: [&[u8]; 2]) -> Result<(), DatabaseError> {
        let Camera { name: camera, password } = &self.camera;
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let head = format!(
            "PUT /blocks/{camera}/{name} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {password}\r\nContent-Length: {bytes}\r\n\r\n",
            self.host
        );
        let pieces = [head.as_bytes(), parts[0], parts[1]];
        let sent = pieces.iter().try_for_each(|piece| self.stream.write_all(piece)).and_then(|()| self.stream.flush());
        // A station that refuses answers before it has read everything, and then hangs up: its answer counts.
        match self.answer() {
            Ok((200 | 201, _)) => sent.map_err(|error| lost(&error)),
            Ok((status, body)) if sent.is_ok() && status != 408 => {
                Err(DatabaseError::refused(status.to_string(), body))
            }
            Ok((status, body)) => Err(DatabaseError::Lost(format!("{status} {body}"))),
            Err(error) => Err(error),
        }
    }
}
