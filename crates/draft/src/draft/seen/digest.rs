//! Expands digests of MySQL and MariaDB: statements whose lists are written `(...)`.
//!
//! Main function: [`expanded`].

use std::collections::HashMap;

use crate::draft::sql::{Grammar, Kind, Known, is_keyword, tokens_of};

/// The most lists in a digest.
const LISTS_MOST: usize = 100;
/// The most values of a list whose length is unknown.
const LIST_MOST: f64 = 100.0;

/// Reads digests.
pub struct Digests<'k> {
    known: &'k [Known],
    /// Names of tables and columns, by their lower-case forms.
    names: HashMap<String, &'k String>,
}

impl<'k> Digests<'k> {
    /// Creates a reader for statements about these tables.
    pub fn new(known: &'k [Known]) -> Self {
        let names = known.iter().flat_map(|table| std::iter::once(&table.name).chain(&table.columns));
        Digests { known, names: names.map(|name| (name.to_lowercase(), name)).collect() }
    }

    /// Returns a digest with its lists written out: a row of VALUES has as many values as the table has columns, there are as many rows as a
    /// call stored, and a list of IN is as long as the number of rows that a call returned.
    ///
    /// # Errors
    /// The reason for which the digest cannot be expanded.
    pub fn expanded(&self, digest: &str, rows_per_call: f64) -> Result<String, String> {
        expanded(&renamed(digest, &self.names), rows_per_call, self.known)
    }
}

fn expanded(digest: &str, rows_per_call: f64, known: &[Known]) -> Result<String, String> {
    if digest.trim_end().ends_with("...") {
        return Err(
            "the server cut its text off; set max_digest_length and performance_schema_max_digest_length higher"
                .to_owned(),
        );
    }
    let mut out = String::with_capacity(digest.len());
    let mut rest = digest;
    if digest.matches("...").count() > LISTS_MOST {
        return Err(format!("it has more than {LISTS_MOST} lists"));
    }
    while let Some(at) = rest.find("(...)").or_else(|| rest.find("( ... )")) {
        let (before, behind) = rest.split_at(at);
        let length = if behind.starts_with("(...)") { "(...)".len() } else { "( ... )".len() };
        out += before;
        let word = before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default().to_ascii_uppercase();
        let list = |count: f64| format!("({})", vec!["?"; count.round().clamp(1.0, LIST_MOST) as usize].join(", "));
        match word.as_str() {
            "VALUES" | "VALUE" => {
                let width = columns_of(&out, known).ok_or("its table and columns are not known")?;
                let rows = vec![list(width as f64); rows_per_call.round().clamp(1.0, LIST_MOST) as usize];
                out += &rows.join(", ");
            }
            "IN" => out += &list(rows_per_call),
            _ => return Err(format!("what its server wrote as \"{word} (...)\" is not known")),
        }
        rest = &behind[length..];
        // Further rows are a comment: VALUES (...) /* , ... */
        rest = rest.trim_start().strip_prefix("/* , ... */").unwrap_or(rest);
    }
    out += rest;
    let out = with_short_rows(&out, known);
    if out.contains("...") {
        return Err(
            "the server wrote a list of values short, so that its length is not known; a log would tell it".to_owned()
        );
    }
    Ok(out)
}

/// Restores names that are also keywords: a digest has them in upper case and unquoted; they are written as the tables and columns are named.
fn renamed(digest: &str, names: &HashMap<String, &String>) -> String {
    let tokens = tokens_of(digest, Grammar::MYSQL);
    let (mut out, mut from) = (String::with_capacity(digest.len()), 0);
    for (place, token) in tokens.iter().enumerate() {
        let is_call = tokens.get(place + 1).is_some_and(|next| next.is_mark("("));
        let is_type = place.checked_sub(1).is_some_and(|before| tokens[before].is("as"));
        if token.kind != Kind::Word || is_call || is_type || is_keyword(token.text) {
            continue;
        }
        if let Some(name) = names.get(&token.text.to_lowercase()) {
            let at = token.text.as_ptr() as usize - digest.as_ptr() as usize;
            out += &digest[from..at];
            out += &format!("`{name}`");
            from = at + token.text.len();
        }
    }
    out + &digest[from..]
}

/// Expands a row of VALUES that begins with values and ends otherwise, `(?, ..., NOW ( ))`, with as many values as there are columns left.
fn with_short_rows(sql: &str, known: &[Known]) -> String {
    let short = ["?, ...", "?,..."].into_iter().find_map(|list| Some((sql.find(list)?, list)));
    let Some((at, list)) = short else { return sql.to_owned() };
    let (before, behind) = (&sql[..at], &sql[at + list.len()..]);
    let is_row = before
        .trim_end()
        .strip_suffix('(')
        .is_some_and(|insert| insert.trim_end().to_ascii_uppercase().ends_with("VALUES"));
    let Some(width) = columns_of(before, known).filter(|_| is_row) else { return sql.to_owned() };
    let (mut depth, mut others) = (0_u32, 0);
    for letter in behind.chars() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            ',' if depth == 0 => others += 1,
            _ => {}
        }
    }
    match width.checked_sub(others).filter(|count| *count >= 1) {
        Some(count) => format!("{before}{}{behind}", vec!["?"; count].join(", ")),
        None => sql.to_owned(),
    }
}

/// Returns the number of columns that an INSERT names, or that its table has.
fn columns_of(insert: &str, known: &[Known]) -> Option<usize> {
    let upper = insert.to_ascii_uppercase();
    let into = upper.find("INTO")? + "INTO".len();
    let target = insert.get(into..upper.rfind("VALUE")?)?.trim();
    if let Some((_, columns)) = target.split_once('(') {
        return Some(columns.split(',').count());
    }
    let name = target.rsplit('.').next()?.trim().trim_matches('`');
    known.iter().find(|table| table.name.eq_ignore_ascii_case(name)).map(|table| table.columns.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_as_long_as_the_rows_say() {
        let known = [Known {
            schema: String::new(),
            name: "t".to_owned(),
            columns: ["a", "b", "c"].map(str::to_owned).to_vec(),
        }];
        let expand = |digest, rows| Digests::new(&known).expanded(digest, rows);
        assert_eq!(
            expand("SELECT * FROM `t` WHERE `a` IN (...)", 2.2),
            Ok("SELECT * FROM `t` WHERE `a` IN (?, ?)".to_owned())
        );
        assert_eq!(expand("INSERT INTO `t` VALUES (...)", 1.0), Ok("INSERT INTO `t` VALUES (?, ?, ?)".to_owned()));
        assert_eq!(
            expand("INSERT INTO `d` . `t` ( `a` , `b` ) VALUES (...) /* , ... */", 2.0),
            Ok("INSERT INTO `d` . `t` ( `a` , `b` ) VALUES (?, ?), (?, ?)".to_owned())
        );
        assert!(expand("SELECT * FROM `t` WHERE `a` = ? AND ...", 1.0).unwrap_err().contains("max_digest_length"));
        assert!(expand("SELECT ELT(?, ?, ...) FROM `t`", 1.0).unwrap_err().contains("wrote a list of values short"));
        let stamped = "INSERT INTO `t` ( `a` , `b` , `c` ) VALUES (?, ... , NOW ( 6 , ? ) )";
        assert_eq!(
            expand(stamped, 1.0),
            Ok("INSERT INTO `t` ( `a` , `b` , `c` ) VALUES (?, ? , NOW ( 6 , ? ) )".to_owned())
        );
        assert_eq!(expand("SELECT B FROM T WHERE `c` = ?", 1.0), Ok("SELECT `b` FROM `t` WHERE `c` = ?".to_owned()));
        assert!(expand("INSERT INTO `x` VALUES (...)", 1.0).is_err());
        assert_eq!(expand("SELECT ?", 1.0), Ok("SELECT ?".to_owned()));
    }
}
