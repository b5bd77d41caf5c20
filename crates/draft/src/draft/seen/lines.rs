//! Reads the lines of a file that may have no line ends, or endless lines.
//!
//! Main type: [`Lines`].

use std::io::BufRead;

/// The most bytes of a line that are kept; the rest is ignored.
pub const LINE_BYTES_MOST: usize = 512 << 10;

/// The lines of a file.
pub struct Lines<'f> {
    file: Box<dyn BufRead + 'f>,
    line: Vec<u8>,
}

impl<'f> Lines<'f> {
    /// Creates a reader for the lines of a file.
    pub fn of(file: impl BufRead + 'f) -> Self {
        Lines { file: Box::new(file), line: Vec::new() }
    }

    /// Returns the next line, without its end; `None` after the last line.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next(&mut self) -> std::io::Result<Option<String>> {
        self.line.clear();
        let mut is_any = false;
        loop {
            let bytes = self.file.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            is_any = true;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(bytes.len());
            let room = LINE_BYTES_MOST.saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..length.min(room)]);
            self.file.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                break;
            }
        }
        Ok(is_any.then(|| String::from_utf8_lossy(&self.line).trim_end_matches('\r').to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_line_without_an_end_takes_bounded_memory() {
        let mut lines = Lines::of(std::io::BufReader::new(std::io::repeat(b'x').take(10 << 20)));
        assert_eq!(lines.next().unwrap().unwrap().len(), LINE_BYTES_MOST);
        assert_eq!(lines.next().unwrap(), None);
    }
}
