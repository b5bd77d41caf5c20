//! The number that distinguishes an inbox from others that forward to the same place: [`Inbox::station`].

use std::io::Write;

use ring::rand::{SecureRandom, SystemRandom};

use super::{Inbox, InboxError, Taking, unusable};

/// The random bytes of a station's number.
const BYTES: usize = 16;

impl Taking {
    /// Returns the inbox's number, 32 digits, which is drawn once. Only the process that takes blocks out calls this, so that only one draws it.
    ///
    /// # Errors
    /// [`InboxError::Unusable`] if it cannot be read or made durable.
    pub fn station(&self) -> Result<String, InboxError> {
        let path = self.inbox.path().join("station");
        match std::fs::read_to_string(&path) {
            Ok(text) if is_number(text.trim_end()) => Ok(text.trim_end().to_owned()),
            Ok(_) => Err(unusable(&path, &"it has not 32 digits 0-9 and a-f; remove it, and another is drawn")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.inbox.draw_station(),
            Err(error) => Err(unusable(&path, &error)),
        }
    }
}

impl Inbox {
    fn draw_station(&self) -> Result<String, InboxError> {
        let (path, new) = (self.path().join("station"), self.path().join("station.new"));
        let mut bytes = [0; BYTES];
        let drawn = SystemRandom::new().fill(&mut bytes);
        drawn.map_err(|_| unusable(&path, &"the system gives no random numbers"))?;
        let number: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let written = std::fs::File::create(&new).and_then(|mut file| {
            writeln!(file, "{number}")?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            self.sync_directory(self.path())
        });
        written.map(|()| number).map_err(|error| unusable(&path, &error))
    }
}

fn is_number(text: &str) -> bool {
    text.len() == 2 * BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
