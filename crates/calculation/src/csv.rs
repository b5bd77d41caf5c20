//! The cells of a line of comma-separated values (RFC 4180, one record a line).
//!
//! Main function: [`cells`]. Invariant: a line is either split whole or refused.

/// Splits a line into its cells, without surrounding white space and quotes; a doubled quote within quotes is one quote.
///
/// # Errors
/// When a quote is not closed, or text follows a closed one.
pub fn cells(line: &str) -> Result<Vec<String>, String> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let start = rest.trim_start();
        let (cell, behind) = match start.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => {
                let end = start.find(',').unwrap_or(start.len());
                (start[..end].trim().to_owned(), &start[end..])
            }
        };
        cells.push(cell);
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(cells),
        }
    }
}

/// Returns the text up to the closing quote, and the text after it.
fn quoted_cell(text: &str) -> Result<(String, &str), String> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let Some((before, behind)) = rest.split_once('"') else {
            return Err("a quote is not closed; end the value with \" on the same line".to_owned());
        };
        cell.push_str(before);
        match behind.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                rest = more;
            }
            None => {
                let behind = behind.trim_start();
                return match behind.is_empty() || behind.starts_with(',') {
                    true => Ok((cell, behind)),
                    false => Err(format!("\"{behind}\" follows a closed quote; write a comma between values")),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_commas_and_quotes() {
        assert_eq!(cells(" main, \"A, \"\"fast\"\"\" ,1,").unwrap(), ["main", "A, \"fast\"", "1", ""]);
        assert_eq!(cells("").unwrap(), [""]);
        assert!(cells("\"a").unwrap_err().contains("not closed"));
        assert!(cells("\"a\"b,c").unwrap_err().contains("follows a closed quote"));
    }
}
