//! What tests of targets on a server of somebody else share: a table that is not the study's, and questions whose every answer must be right.

use loadline::record::ColumnKind;
use loadline::statement::{Table, TableColumn};

use super::program::Scratch;

/// A table of somebody else, with a column of numbers.
pub fn table(name: &str) -> Table {
    Table {
        name: name.to_owned(),
        columns: vec![TableColumn { name: "mine".to_owned(), kind: ColumnKind::Int64, nullable: false }],
        primary_key: vec!["mine".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    }
}

/// Checks that a study's questions get right answers, each of them some rows, and those of a second study while readings come in. `text` gives the study with questions and sections behind
/// its own, and `run` runs it by its file and directory.
pub fn assert_answers_are_right(
    scratch: &Scratch,
    run: impl Fn(&str, &str),
    text: impl Fn(&str) -> String,
    (all, in_spans): (&str, &str),
) {
    scratch.write("asked.toml", &text(all));
    run("asked.toml", "asked");
    let stored = scratch.stored("asked");
    assert_eq!(stored[0].operations.len(), all.matches("ask =").count());
    for (kind, operation) in &stored[0].operations {
        assert_eq!((operation.wrong, operation.failed), (Some(0), 0), "{kind}: {:?}", stored[0].errors);
        assert!(operation.completed > 0 && operation.rows.is_some_and(|rows| rows > 0), "{kind}: {operation:?}");
    }
    let beside = "[background]\nworkload = \"write\"\narrivals = \"constant\"\nrate = 20\nbatch = 10\n";
    scratch.write("beside.toml", &(text(in_spans) + beside));
    run("beside.toml", "beside");
    let stored = scratch.stored("beside");
    for (kind, operation) in &stored[0].operations {
        assert_eq!((operation.wrong.unwrap_or(0), operation.failed), (0, 0), "{kind}: {:?}", stored[0].errors);
    }
}
