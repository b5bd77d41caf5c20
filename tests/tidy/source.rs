//! A Rust file with its comments and texts blanked, so that only code is searched.

/// A file to be checked.
pub struct Source {
    /// Path below the package's root, with `/`.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// The text with every byte of comments and literals replaced by a space; lines stay where they are.
    pub code: String,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Source { path: path.to_owned(), text: text.to_owned(), code: blank(text) }
    }

    /// A finding at a byte of the file.
    pub fn at(&self, byte: usize, finding: &str) -> String {
        let line = 1 + self.code[..byte].matches('\n').count();
        format!("{}:{line}: {finding}", self.path)
    }

    /// Every identifier and number of the code, with the byte where it begins.
    pub fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.code.as_str();
        code.split(|c: char| !is_word(c))
            .filter(|word| !word.is_empty())
            .map(move |word| (word.as_ptr() as usize - code.as_ptr() as usize, word))
    }
}

pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Blanks comments, texts and characters.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_bytes(rest, code.chars().next_back());
        let (taken, is_hidden) = if hidden > 0 { (hidden, true) } else { (first.len_utf8(), false) };
        for byte in rest[..taken].chars() {
            if is_hidden && byte != '\n' {
                (0..byte.len_utf8()).for_each(|_| code.push(' '));
            } else {
                code.push(byte);
            }
        }
        rest = &rest[taken..];
    }
    code
}

/// Length of the comment or literal that begins here; 0 when it is code.
fn hidden_bytes(rest: &str, before: Option<char>) -> usize {
    let through = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    let is_own_word = !before.is_some_and(is_word);
    match rest.as_bytes()[0] {
        b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with("/*") => through("*/", 2),
        b'"' => escaped_bytes(rest, b'"'),
        b'r' if is_own_word => {
            let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
            let is_text = rest[1 + hashes..].starts_with('"');
            if is_text { through(&format!("\"{}", "#".repeat(hashes)), 2 + hashes) } else { 0 }
        }
        // A character ends with a quote after one character or an escape; else it is a lifetime.
        b'\'' => {
            let inner = rest[1..].chars().next().map_or(0, char::len_utf8);
            let is_plain = rest.get(1 + inner..).is_some_and(|after| after.starts_with('\''));
            if rest[1..].starts_with('\\') {
                escaped_bytes(rest, b'\'')
            } else if is_plain {
                2 + inner
            } else {
                0
            }
        }
        _ => 0,
    }
}

/// Length of a literal between quotes in which a backslash hides the character behind it.
fn escaped_bytes(rest: &str, quote: u8) -> usize {
    let mut at = 1;
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}
