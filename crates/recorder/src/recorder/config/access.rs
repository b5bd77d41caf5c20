//! Reads `[[access]]`: the senders of measurement data, and what each may send.

use serde_json::json;

use super::IntakeConfig;
use crate::fault::fault;
use crate::recorder::access::{Grant, Names, TokenHash};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Node, Table};
use crate::written::{Absent, Form, Kind, Part, Setting};

/// `[[access]]`
pub static ACCESS: Part = Part {
    name: "access",
    help: "A sender of measurement data, and what its token permits it to send.",
    settings: &[
        Setting::new(
            "name",
            Kind::Text,
            Absent::Refused,
            "The sender's name, within which ids of messages are unique: 1 to 64 letters, digits, -, _ and .",
        ),
        TOKEN_HASH,
        Setting::new(
            "sources",
            Kind::Texts,
            Absent::Means("all"),
            "The source names that it may use; `*` stands for any characters.",
        ),
        Setting::new(
            "measurements",
            Kind::Texts,
            Absent::Means("all"),
            "The measurements that it may send; `*` stands for any characters.",
        ),
        Setting::new("rate", Kind::Number(0.1, 1e9), Absent::Means("no limit"), "Maximum number of rows per second."),
        Setting::new("bytes", Kind::Bytes(1, 1 << 40), Absent::Means("no limit"), "Maximum bytes per second."),
    ],
};

static HASH: Form = Form {
    says: "`\"sha256:…\"`, 64 hexadecimal digits",
    schema: || json!({ "type": "string", "pattern": "^sha256:" }),
    example: "\"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
};

/// The hash of a token.
pub(super) const TOKEN_HASH: Setting = Setting::new(
    "token_hash",
    Kind::Own(&HASH),
    Absent::Refused,
    "The hash of its token. `loadline password --token` makes both.",
);

/// The longest name of a sender, in characters.
const NAME_CHARACTERS_MAX: usize = 64;

pub(super) fn read_access(root: &Table, intake: &IntakeConfig, errors: &mut Errors) -> Vec<Grant> {
    let Some(entry) = root.get("access") else { return Vec::new() };
    let Content::List(nodes) = &entry.node.content else {
        errors.push(entry.place, fault!("access is {}", entry.node; "write a table [[access]] for each sender"));
        return Vec::new();
    };
    if intake.http.is_none() && intake.tcp.is_none() {
        let remedy = "add [intake.http] or [intake.tcp], or leave it out";
        errors.push(entry.place, fault!("[[access]] is for intakes that take tokens and there is none"; "{remedy}"));
    }
    let tokens = [&intake.http, &intake.tcp].into_iter().flatten().flat_map(|listen| &listen.tokens);
    let of_tokens: Vec<_> = tokens.map(|token| TokenHash::of(token)).collect();
    let mut access: Vec<Grant> = Vec::new();
    for node in nodes {
        let Some(grant) = read_grant(node, errors) else { continue };
        if access.iter().any(|other| other.name == grant.name) {
            let name = &grant.name;
            errors.push(node.place, fault!("access.name \"{name}\" stands twice"; "ids belong to it: take another"));
        }
        if let Some(other) = access.iter().find(|other| other.token.is(&grant.token)) {
            let names = format!("\"{}\" and \"{}\"", other.name, grant.name);
            let remedy = "give each a token of its own, as loadline password --token makes it";
            errors.push(node.place, fault!("access.token_hash is the same for {names}"; "{remedy}"));
        }
        if of_tokens.iter().any(|token| token.is(&grant.token)) {
            let remedy = "take it out of tokens, whose holders may do all";
            let what = format!("access.token_hash of \"{}\" is that of one of an intake's tokens", grant.name);
            errors.push(node.place, fault!("{what}"; "{remedy}"));
        }
        access.push(grant);
    }
    access
}

fn read_grant(node: &Node, errors: &mut Errors) -> Option<Grant> {
    let section = Section::of_node(node, ACCESS.name, &ACCESS, errors)?;
    let name = read_name(&section, errors);
    let shown = name.clone().unwrap_or_default();
    let token = read_hash(&section, &format!("access.token_hash of \"{shown}\""), errors);
    let sources = read_names(&section, "sources", errors);
    let measurements = read_names(&section, "measurements", errors);
    let (rows_per_s, bytes_per_s) = (section.read("rate", errors), section.read("bytes", errors));
    Some(Grant { name: name?, token: token?, sources, measurements, rows_per_s, bytes_per_s })
}

fn read_name(section: &Section<'_>, errors: &mut Errors) -> Option<String> {
    let remedy = "name the sender, as in name = \"probes-north\"";
    let Some(entry) = section.get("name") else {
        errors.push(section.place, fault!("access.name is missing"; "{remedy}"));
        return None;
    };
    let name = section.text("name", errors)?;
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.chars().all(is_allowed) {
        let must = format!("it must be 1 to {NAME_CHARACTERS_MAX} letters, digits, -, _ and .");
        errors.push(entry.node.place, fault!("access.name is {}", entry.node; "{must}"));
        return None;
    }
    Some(name.to_owned())
}

/// Reads the hash of a token; `what` names its owner in errors.
pub(super) fn read_hash(section: &Section<'_>, what: &str, errors: &mut Errors) -> Option<TokenHash> {
    let Some(entry) = section.get("token_hash") else {
        let remedy = "loadline password --token makes a token and its hash";
        errors.push(section.place, fault!("{what} is missing"; "{remedy}"));
        return None;
    };
    let text = section.text("token_hash", errors)?;
    let wrong = |sentence| errors.push(entry.node.place, format!("{what} {sentence}"));
    TokenHash::read(text).map_err(wrong).ok()
}

fn read_names(section: &Section<'_>, key: &str, errors: &mut Errors) -> Names {
    let Some(entry) = section.get(key) else { return Names::ALL };
    let names = section.texts(key, errors);
    if matches!(&entry.node.content, Content::List(items) if items.is_empty()) {
        let remedy = "list names, in which * stands for any characters, or leave it out for all";
        errors.push(entry.node.place, fault!("access.{key} is empty, and nothing could be sent"; "{remedy}"));
    }
    Names::new(names)
}

#[cfg(test)]
mod tests {
    use crate::recorder::access::TokenHash;
    use crate::recorder::config::{Config, read};

    fn config(access: &str) -> Result<Config, String> {
        let intake =
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\ntokens = [\"0123456789abcdef\"]\n";
        read(&format!("{access}\n{intake}"), "c.toml").map_err(|errors| errors.to_string())
    }

    fn hash(token: &str) -> String {
        format!("token_hash = \"{}\"\n", TokenHash::of(token).text())
    }

    #[test]
    fn senders_are_read() {
        let north = format!(
            "[[access]]\nname = \"probes-north\"\n{}sources = [\"north-*\"]\nmeasurements = [\"qos\", \"cpu\"]\nrate = 5000\nbytes = \"1MiB\"\n",
            hash("a")
        );
        let config = config(&format!("{north}[[access]]\nname = \"b\"\n{}", hash("b"))).unwrap();
        let [north, other] = &config.access[..] else { panic!("{:?}", config.access) };
        assert_eq!((north.rows_per_s, north.bytes_per_s), (Some(5_000.0), Some(1_048_576.0)));
        assert!(north.sources.have("north-1") && !north.sources.have("victim") && north.measurements.have("cpu"));
        assert!(other.sources.are_all() && other.measurements.are_all() && other.rows_per_s.is_none());
    }

    #[test]
    fn what_is_wrong_with_a_sender_is_said_with_place_value_and_remedy() {
        let (a, b) = (hash("a"), hash("b"));
        for (access, says) in [
            ("access = 5".to_owned(), "c.toml:1: access is 5; write a table [[access]]"),
            (format!("[[access]]\n{a}"), "c.toml:1: access.name is missing; name the sender"),
            (
                "[[access]]\nname = \"a\"".to_owned(),
                "c.toml:1: access.token_hash of \"a\" is missing; loadline password",
            ),
            (
                format!("[[access]]\nname = \"a b\"\n{a}"),
                "c.toml:2: access.name is \"a b\"; it must be 1 to 64 letters",
            ),
            (
                "[[access]]\nname = \"a\"\ntoken_hash = \"sha256:12\"".to_owned(),
                "c.toml:3: access.token_hash of \"a\" has 2 characters behind sha256:",
            ),
            (
                format!("[[access]]\nname = \"a\"\n{a}[[access]]\nname = \"a\"\n{b}"),
                "c.toml:4: access.name \"a\" stands twice",
            ),
            (
                format!("[[access]]\nname = \"a\"\n{a}[[access]]\nname = \"b\"\n{a}"),
                "c.toml:4: access.token_hash is the same for \"a\" and \"b\"",
            ),
            (
                format!("[[access]]\nname = \"a\"\n{}", hash("0123456789abcdef")),
                "c.toml:1: access.token_hash of \"a\" is that of one of an intake's tokens",
            ),
            (
                format!("[[access]]\nname = \"a\"\n{a}source = [\"x\"]"),
                "c.toml:4: unknown key \"source\" in access; did you mean \"sources\"?",
            ),
            (format!("[[access]]\nname = \"a\"\n{a}sources = []"), "c.toml:4: access.sources is empty"),
            (format!("[[access]]\nname = \"a\"\n{a}rate = 0"), "c.toml:4: access.rate is 0; it must be a number"),
            (
                format!("[[access]]\nname = \"a\"\n{a}bytes = \"much\""),
                "c.toml:4: access.bytes: \"much\" is not a size",
            ),
        ] {
            let sentence = config(&access).unwrap_err();
            assert!(sentence.contains(says), "{access}: {sentence}");
        }
        let nowhere = "[[access]]\nname = \"a\"\n".to_owned() + &a + "[intake.put]\nlisten = \"127.0.0.1:0\"";
        let sentence = read(&nowhere, "c.toml").unwrap_err().to_string();
        assert!(
            sentence.contains("c.toml:1: [[access]] is for intakes that take tokens and there is none"),
            "{sentence}"
        );
    }

    #[test]
    fn other_machines_are_listened_to_with_tokens_and_tls_only() {
        let said = |lines: &str| {
            let text = format!("[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"0.0.0.0:0\"\n{lines}");
            read(&text, "c.toml").map_or_else(|errors| errors.to_string(), |_| "it is read".to_owned())
        };
        let access = format!("[[access]]\nname = \"a\"\n{}", hash("a"));
        assert!(
            said("insecure = true").contains("c.toml:4: intake.http.listen is \"0.0.0.0:0\" and there is no token")
        );
        let open = said("tokens = [\"0123456789abcdef\"]");
        assert!(
            open.contains("c.toml:4: intake.http.listen is \"0.0.0.0:0\" and clients would come without TLS"),
            "{open}"
        );
        assert!(open.contains("write insecure = true where something else protects the way"), "{open}");
        assert_eq!(said(&format!("insecure = true\n{access}")), "it is read");
        assert_eq!(said(&format!("certificate = \"c\"\nkey = \"k\"\n{access}")), "it is read");
        let short = said("tokens = [\"0123456789abcde\"]\ninsecure = true");
        assert!(
            short.contains("c.toml:5: intake.http.tokens has 1 that are shorter") && !short.contains("abcde"),
            "{short}"
        );
    }
}
