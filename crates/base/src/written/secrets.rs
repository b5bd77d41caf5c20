//! Removal of secrets from messages. Main function: [`hidden`].

use super::attributes::attributes;

/// The placeholder with which messages show where user and password stand in an address; it is not hidden.
const FORM: &str = "user:password";

/// Returns a message without the passwords of addresses in it, whatever setting they were written under.
pub fn hidden(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(at) = rest.find("://") {
        let address = at + "://".len();
        out.push_str(&rest[..address]);
        let before = rest[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric());
        rest = &rest[address..];
        let is_quoted = before.ends_with('"');
        if message[..message.len() - rest.len()].ends_with("odbc://") {
            // Values may have spaces, so that only a quote or the end of the line ends the address.
            let end = rest.find(if is_quoted { '"' } else { '\n' }).unwrap_or(rest.len());
            out += &without_values(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let end = rest.find(|c: char| if is_quoted { c == '"' } else { c.is_whitespace() }).unwrap_or(rest.len());
        let (account, behind) = rest[..end].rfind('@').map_or(("", 0), |at| (&rest[..at], at));
        if let Some((user, _)) = account.split_once(':').filter(|_| account != FORM) {
            out.push_str(user);
            out.push_str(":***");
            rest = &rest[behind..];
        }
    }
    out + rest
}

/// Returns a connection string with marks in place of its passwords.
fn without_values(text: &str) -> String {
    let (mut out, mut kept_to) = (String::new(), 0);
    for secret in attributes(text).into_iter().filter(|attribute| attribute.is_password()) {
        out += &text[kept_to..secret.place.start];
        out += "***";
        kept_to = secret.place.end;
    }
    out + &text[kept_to..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_no_password() {
        for (message, shown) in [
            ("unknown database \"mysql://u:p w@h/d\"; leave", "unknown database \"mysql://u:***@h/d\"; leave"),
            ("--set x=mysql://u:p@h/d: wrong", "--set x=mysql://u:***@h/d: wrong"),
            ("[\"mysql://u:p@a/d\", \"mysql://u@b/d\"]", "[\"mysql://u:***@a/d\", \"mysql://u@b/d\"]"),
            ("write mysql://user:password@host:port/database", "write mysql://user:password@host:port/database"),
            ("see http://host:80/a", "see http://host:80/a"),
            ("\"odbc://DSN=a b;PWD={p;};UID=me\" is wrong", "\"odbc://DSN=a b;PWD=***;UID=me\" is wrong"),
            ("--set x=odbc://DSN=a b;Pwd=p@w", "--set x=odbc://DSN=a b;Pwd=***"),
            ("[\"odbc://DSN=a;PWD=p\", \"mysql://u:p@b/d\"]", "[\"odbc://DSN=a;PWD=***\", \"mysql://u:***@b/d\"]"),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(hidden(message), shown);
        }
    }
}
