//! Files of other tools, read line by line, and the errors about them.
//!
//! Main types: [`SourceFile`] and [`ImportError`]. Invariant: an error names file and line, what was found there, and what to do.

/// A file of another tool that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Name as given on the command line.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// The reason why files cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {found}; {remedy}")]
pub struct ImportError {
    /// File and line, or the option of the command line.
    pub place: String,
    /// What was found.
    pub found: String,
    /// What to do.
    pub remedy: String,
}

impl ImportError {
    /// Makes the error for a fault at a place.
    pub fn new(place: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        ImportError { place: place.into(), found: found.into(), remedy: remedy.into() }
    }
}

/// Maximum number of digits of a whole number: the sum of as many as a file can have does not overflow.
const DIGITS_MAX: usize = 15;

impl SourceFile {
    /// Returns the lines with their numbers, from 1; carriage returns at line ends are left out.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(place, line)| (place + 1, line))
    }

    /// Returns the number of the last line; 1 for an empty file.
    pub fn last_line(&self) -> usize {
        self.text.lines().count().max(1)
    }

    /// Makes the error for a fault in a line of this file.
    pub fn error(&self, line: usize, found: impl Into<String>, remedy: impl Into<String>) -> ImportError {
        ImportError::new(format!("{}:{line}", self.name), found, remedy)
    }

    /// Checks that the last line is complete: a file that was cut within a line may have lost digits of a figure.
    ///
    /// # Errors
    /// Names the last line.
    pub fn check_ended(&self) -> Result<(), ImportError> {
        if self.text.is_empty() || self.text.ends_with('\n') {
            return Ok(());
        }
        let last = self.text.lines().last().unwrap_or_default();
        let remedy = "the file is torn; copy it again, or leave it out (if it is whole, end it with a line break)";
        Err(self.error(self.last_line(), format!("the last line ends within \"{}\"", shortened(last)), remedy))
    }

    /// Checks that no number in a line has more digits than a figure of a run can have: sums of such numbers would be wrong.
    ///
    /// # Errors
    /// Names the line.
    pub fn check_numbers(&self, number: usize, line: &str) -> Result<(), ImportError> {
        let integers = line.split(|c: char| !(c.is_ascii_digit() || c == '.')).map(|word| word.split('.').next());
        if integers.flatten().all(|digits| digits.trim_start_matches('0').len() <= DIGITS_MAX) {
            return Ok(());
        }
        let found = format!("a number has more than {DIGITS_MAX} digits in \"{}\"", shortened(line));
        Err(self.error(number, found, "the file is damaged; copy it again, or leave it out"))
    }

    /// Returns the name without directories.
    pub fn base_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Returns the directory part of the name; empty if there is none.
    pub fn directory(&self) -> &str {
        self.name.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// Returns the name without directories and without its last extension.
    pub fn stem(&self) -> &str {
        self.base_name().rsplit_once('.').map_or(self.base_name(), |(stem, _)| stem)
    }
}

/// Returns at most 60 characters of a line, for messages.
pub fn shortened(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= 60 { line.to_owned() } else { line.chars().take(57).chain("...".chars()).collect() }
}

/// Parses a number that is finite and not negative.
pub fn figure(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

/// Returns the text after a label at the beginning of a line, without surrounding white space.
pub fn after<'a>(line: &'a str, label: &str) -> Option<&'a str> {
    line.trim_start().strip_prefix(label).map(str::trim)
}

/// Parses the number at the beginning of a text; the rest is ignored.
pub fn leading_figure(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    figure(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_within_a_line_is_named_with_that_line() {
        let file = SourceFile { name: "a/b.txt".to_owned(), text: "one\ntwo 12".to_owned() };
        let error = file.check_ended().unwrap_err();
        assert!(error.to_string().starts_with("a/b.txt:2: the last line ends within \"two 12\"; "), "{error}");
        assert_eq!((file.base_name(), file.directory(), file.stem()), ("b.txt", "a", "b"));
        assert!(SourceFile { text: "one\n".to_owned(), ..file }.check_ended().is_ok());
    }

    #[test]
    fn figures_are_finite_and_not_negative() {
        assert_eq!((figure("1.5"), figure("NaN"), figure("-1"), figure("inf")), (Some(1.5), None, None, None));
        assert_eq!((leading_figure("3 s"), leading_figure("0.17"), leading_figure("x")), (Some(3.0), Some(0.17), None));
        assert_eq!(after("  total:   5", "total:"), Some("5"));
    }

    #[test]
    fn numbers_that_no_run_has_are_named_with_their_line() {
        let file = SourceFile { name: "a".to_owned(), text: String::new() };
        assert!(file.check_numbers(3, "tps = 000000000000000000012.123456789012345678 (2026)").is_ok());
        let error = file.check_numbers(3, "number of threads: 9999999999999999").unwrap_err().to_string();
        assert!(error.starts_with("a:3: a number has more than 15 digits"), "{error}");
    }
}
