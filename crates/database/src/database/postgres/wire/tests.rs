//! Tests of the state machine with hand-made answers: likely ones, unlikely ones, and all of them cut at any place.

use super::super::types;
use super::*;
use crate::record::Cell;
use crate::statement::Step;
use proptest::prelude::*;

const SELECT: u16 = 0;
const INSERT: u16 = 1;
const UPDATE: u16 = 2;

fn wire() -> PostgresWire {
    let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut wire = PostgresWire::new(std::os::fd::OwnedFd::from(socket).into());
    let mut insert = Prepared::new("s1", "insert".into(), &[types::INT4], &[], false);
    insert.set_copy("t1", "c1");
    wire.statements = vec![
        Prepared::new("s0", "select".into(), &[types::INT4], &[types::INT4], true),
        insert,
        Prepared::new("s2", "update".into(), &[types::INT4], &[], true),
    ];
    wire
}

fn request(steps: &[(u16, u32, Expect)]) -> Request {
    let mut request = Request::default();
    for &(statement, rows, expect) in steps {
        let first_cell = request.cells.len() as u32;
        request.steps.push(Step { statement, rows, first_cell, expect });
        (0..rows).for_each(|row| request.cells.int(i64::from(row)));
    }
    request
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    message::write(&mut out, tag, |out| out.extend_from_slice(body));
    out
}

fn done(tag: &str) -> Vec<u8> {
    [message(b'2', b""), message(b'C', format!("{tag}\0").as_bytes())].concat()
}

fn error(code: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{code}\0Mno\0\0").as_bytes())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

/// Returns the tags of the messages sent.
fn tags(mut bytes: &[u8]) -> String {
    let mut tags = String::new();
    while let Some(message) = message::read(bytes).unwrap() {
        tags.push(char::from(message.tag));
        bytes = &bytes[message.length()..];
    }
    tags
}

/// Returns what a pipelining wire sends at once, what it sends after these answers, and the outcome.
fn run(request: &Request, answers: &[Vec<u8>]) -> (String, String, Option<Result<Answer, DatabaseError>>) {
    let (mut wire, mut first, mut then) = (PostgresWire { pipelines: true, ..wire() }, Vec::new(), Vec::new());
    wire.start(request, &mut first);
    let progress = wire.advance(request, &answers.concat(), &mut then);
    (tags(&first), tags(&then), progress.outcome)
}

/// Returns what is sent at once and after each of these answers, where each statement waits for the answer to the one before, and the outcome.
fn step_by_step(request: &Request, answers: &[Vec<u8>]) -> (Vec<String>, Option<Result<Answer, DatabaseError>>) {
    let (mut wire, mut out) = (wire(), Vec::new());
    wire.start(request, &mut out);
    let (mut sent, mut outcome) = (vec![said(&out)], None);
    for answer in answers {
        assert_eq!(outcome, None, "done before all answers were given");
        out.clear();
        let progress = wire.advance(request, answer, &mut out);
        assert_eq!(progress.consumed, answer.len());
        sent.push(said(&out));
        outcome = progress.outcome;
    }
    (sent, outcome)
}

/// Returns the text of a simple query, or the tags of messages.
fn said(bytes: &[u8]) -> String {
    match message::read(bytes).unwrap() {
        Some(Message { tag: b'Q', body }) => String::from_utf8_lossy(&body[..body.len() - 1]).into_owned(),
        _ => tags(bytes),
    }
}

/// Returns the answer to a statement that is alone in its round trip.
fn answered(tag: &str) -> Vec<u8> {
    [done(tag), ready()].concat()
}

#[test]
fn a_transaction_goes_statement_by_statement_unless_it_is_to_be_pipelined() {
    let request = request(&[
        (SELECT, 1, Expect::Anything),
        (INSERT, 0, Expect::Anything),
        (INSERT, 2, Expect::Changed(2)),
        (UPDATE, 1, Expect::Changed(1)),
    ]);
    let both = [done("INSERT 0 1"), done("INSERT 0 1"), ready()].concat();
    let answers = ["BEGIN", "SELECT 0"].map(answered).into_iter().chain([both]);
    let answers: Vec<_> = answers.chain(["UPDATE 1", "COMMIT"].map(answered)).collect();
    let (sent, outcome) = step_by_step(&request, &answers);
    assert_eq!(sent, ["BEGIN", "BES", "BEBES", "BES", "COMMIT", ""], "a step without rows takes no round trip");
    assert_eq!(outcome, Some(Ok(Answer { rows: 0, changed: 3, empty: 0 })));
}

#[test]
fn one_statement_commits_by_itself_in_one_round_trip() {
    let (sent, outcome) = step_by_step(&request(&[(INSERT, 2, Expect::Changed(2))]), &[]);
    assert_eq!((sent, outcome), (vec!["BEBES".to_owned()], None));
}

#[test]
fn whatever_fails_between_begin_and_commit_is_rolled_back() {
    let plain = request(&[(INSERT, 1, Expect::Changed(1)), (UPDATE, 1, Expect::Changed(1))]);
    let refused = [error("23505"), message(b'Z', b"E")].concat();
    let rolled_back = answered("ROLLBACK");
    let (sent, outcome) = step_by_step(&plain, &[answered("BEGIN"), refused.clone(), rolled_back.clone()]);
    assert_eq!(sent, ["BEGIN", "BES", "ROLLBACK", ""]);
    assert_eq!(outcome, Some(Err(DatabaseError::refused("23505", "no"))));
    // An insert that a trigger dropped, and an update of more rows than expected: nothing of either stays.
    for (inserted, updated) in [("INSERT 0 0", None), ("INSERT 0 1", Some("UPDATE 3"))] {
        let steps = [Some("BEGIN"), Some(inserted), updated, Some("ROLLBACK")];
        let answers: Vec<_> = steps.into_iter().flatten().map(answered).collect();
        let (sent, outcome) = step_by_step(&plain, &answers);
        assert_eq!(sent[sent.len() - 2], "ROLLBACK");
        let refusal = outcome.unwrap().unwrap_err().to_string();
        assert!(refusal.contains("instead of 1") && !refusal.contains("stay changed"), "{refusal}");
    }
    let mut misfit = plain.clone();
    misfit.cells.clear();
    [1, 1 << 40].into_iter().for_each(|value| misfit.cells.int(value));
    let (sent, outcome) = step_by_step(&misfit, &[answered("BEGIN"), answered("INSERT 0 1"), rolled_back]);
    assert_eq!(sent, ["BEGIN", "BES", "ROLLBACK", ""]);
    assert!(outcome.unwrap().unwrap_err().to_string().contains("does not fit"));
    let (_, outcome) = step_by_step(
        &plain,
        &[answered("BEGIN"), answered("INSERT 0 1"), answered("UPDATE 1"), [error("40001"), ready()].concat()],
    );
    assert_eq!(outcome, Some(Err(DatabaseError::refused("40001", "no"))), "a COMMIT that is refused has undone all");
    let (_, outcome) = step_by_step(&plain, &[answered("BEGIN"), ready()]);
    assert!(matches!(outcome, Some(Err(DatabaseError::Lost(_)))), "ready before the statement is complete");
}

#[test]
fn rows_are_counted_and_kept_only_when_wanted() {
    let request = request(&[(SELECT, 1, Expect::Rows)]);
    let row = message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 9]);
    let answers = [message(b'2', b""), row.clone(), row, message(b'C', b"SELECT 2\0"), ready()];
    let expected = Answer { rows: 2, changed: 0, empty: 0 };
    assert_eq!(run(&request, &answers), ("BES".into(), String::new(), Some(Ok(expected))));
    let mut wire = wire();
    assert_eq!(wire.keep_rows(Some(Cells::new())), None);
    wire.start(&request, &mut Vec::new());
    wire.advance(&request, &answers.concat(), &mut Vec::new());
    assert_eq!(wire.keep_rows(None).unwrap().as_slice(), [Cell::Int(9), Cell::Int(9)]);
}

#[test]
fn a_query_without_rows_is_empty() {
    let (_, _, outcome) = run(&request(&[(SELECT, 1, Expect::Rows)]), &[done("SELECT 0"), ready()]);
    assert_eq!(outcome, Some(Ok(Answer { rows: 0, changed: 0, empty: 1 })));
}

#[test]
fn all_steps_leave_in_one_pipeline() {
    let expect = Expect::Changed(2);
    let request = request(&[(INSERT, 2, expect), (INSERT, 5, Expect::Changed(5)), (INSERT, 0, expect)]);
    let copy = [message(b'2', b""), message(b'G', &[1, 0, 1, 0, 1]), message(b'C', b"COPY 5\0")].concat();
    let answers = [done("INSERT 0 1"), done("INSERT 0 1"), done("SELECT 0"), copy, ready()];
    let answer = Answer { rows: 0, changed: 7, empty: 0 };
    assert_eq!(run(&request, &answers), ("BEBEBEBEdcS".into(), String::new(), Some(Ok(answer))));
}

#[test]
fn columns_of_other_types_than_when_they_were_prepared_end_the_connection() {
    let request = request(&[(INSERT, 5, Expect::Changed(5)), (UPDATE, 1, Expect::Changed(1))]);
    let changed = message(b'E', b"SERROR\0C0A000\0Mno\0RRevalidateCachedQuery\0\0");
    let (_, then, outcome) = run(&request, &[changed, ready()]);
    assert_eq!(then, "S", "nothing of the transaction stays");
    assert!(matches!(outcome, Some(Err(DatabaseError::Lost(said))) if said.contains("prepared anew")));
    let other = message(b'E', b"SERROR\0C0A000\0Mno\0Rtransform\0\0");
    assert_eq!(run(&request, &[other, ready()]).2, Some(Err(DatabaseError::refused("0A000", "no"))));
}

#[test]
fn a_transaction_is_committed_only_when_its_counts_are_right() {
    let request = request(&[(INSERT, 1, Expect::Anything), (UPDATE, 1, Expect::Changed(1))]);
    let right = [done("INSERT 0 1"), done("UPDATE 1")];
    assert_eq!(run(&request, &right), ("BEBEH".into(), "S".into(), None));
    let committed = run(&request, &[right.concat(), ready()]).2;
    assert_eq!(committed, Some(Ok(Answer { rows: 0, changed: 2, empty: 0 })));
    let wrong = [done("INSERT 0 1"), done("UPDATE 0")];
    assert_eq!(run(&request, &wrong), ("BEBEH".into(), "PBES".into(), None));
    let notice = message(b'N', b"SWARNING\0\0");
    let undone = [message(b'1', b""), done("ROLLBACK"), ready()].concat();
    let outcome = run(&request, &[wrong.concat(), notice, undone]).2;
    let failure = outcome.unwrap().unwrap_err();
    assert_eq!(failure.to_string(), "the statement changed 0 rows instead of 1 (rows)");
    assert!(matches!(failure, DatabaseError::Miscounted(_)));
}

#[test]
fn counts_that_no_sum_can_hold_are_miscounts_like_others() {
    let request =
        request(&[(INSERT, 1, Expect::Anything), (UPDATE, 1, Expect::Anything), (UPDATE, 2, Expect::Changed(2))]);
    let most = format!("UPDATE {}", u64::MAX);
    let (inserted, updated) = (done(&format!("INSERT 0 {}", u64::MAX)), done(&most));
    let rolled_back = [message(b'1', b""), done("ROLLBACK"), ready()].concat();
    let outcome = run(&request, &[[inserted, updated.clone(), updated.clone(), updated].concat(), rolled_back]).2;
    let failure = outcome.unwrap().unwrap_err();
    assert!(failure.to_string().contains("rows instead of 2"), "{failure}");
}

#[test]
fn an_error_releases_the_sync_that_was_withheld() {
    let request = request(&[(INSERT, 1, Expect::Anything), (UPDATE, 1, Expect::Changed(1))]);
    assert_eq!(run(&request, &[error("23505")]), ("BEBEH".into(), "S".into(), None));
    let outcome = run(&request, &[error("23505"), ready()]).2;
    assert_eq!(outcome, Some(Err(DatabaseError::refused("23505", "no"))));
}

#[test]
fn an_update_of_too_many_rows_says_that_they_stay_changed() {
    let (sent, then, outcome) = run(&request(&[(UPDATE, 1, Expect::Changed(1))]), &[done("UPDATE 3"), ready()]);
    assert_eq!((sent.as_str(), then.as_str()), ("BES", ""));
    assert!(outcome.unwrap().unwrap_err().to_string().contains("3 rows instead of 1, and they stay changed"));
}

#[test]
fn the_first_error_counts_and_one_at_commit_too() {
    let request = request(&[(INSERT, 1, Expect::Anything)]);
    let outcome = run(&request, &[done("INSERT 0 1"), error("40001"), ready()]).2;
    assert_eq!(outcome, Some(Err(DatabaseError::refused("40001", "no"))));
    let outcome = run(&request, &[error("23505"), error("25P02"), ready()]).2;
    assert_eq!(outcome, Some(Err(DatabaseError::refused("23505", "no"))));
    let outcome = run(&request, &[message(b'E', b"SFATAL\0C57P01\0Mbye\0\0")]).2;
    assert_eq!(outcome, Some(Err(DatabaseError::Lost("bye (57P01)".into()))));
}

#[test]
fn a_value_that_does_not_fit_sends_nothing_of_its_request() {
    let mut request = request(&[(INSERT, 1, Expect::Anything), (INSERT, 1, Expect::Anything)]);
    request.cells.clear();
    request.cells.int(1);
    request.cells.int(1 << 40);
    let (sent, _, outcome) = run(&request, &[ready()]);
    assert_eq!(sent, "S");
    assert!(matches!(outcome, Some(Err(DatabaseError::Refused { code, .. })) if code == "22003"));
    request.steps[0].statement = 9;
    assert!(matches!(run(&request, &[ready()]).2, Some(Err(DatabaseError::Refused { .. }))));
}

#[test]
fn a_copy_without_data_is_ended() {
    let copy = [message(b'2', b""), message(b'G', &[0, 0, 0])];
    assert_eq!(run(&request(&[(UPDATE, 1, Expect::Anything)]), &copy).1, "fS");
}

#[test]
fn an_answer_that_ends_early_or_holds_too_much_is_a_loss() {
    let request = request(&[(SELECT, 1, Expect::Anything)]);
    for answers in [vec![ready()], vec![done("SELECT 0"), done("SELECT 0")], vec![message(b'R', &[0; 4])]] {
        assert!(matches!(run(&request, &answers).2, Some(Err(DatabaseError::Lost(_)))), "{answers:?}");
    }
}

#[test]
fn tags_of_commands_tell_the_rows_changed() {
    for (tag, changed) in [
        ("INSERT 0 12\0", 12),
        ("UPDATE 3\0", 3),
        ("COPY 1000\0", 1000),
        ("DELETE 0\0", 0),
        ("SELECT 5\0", 0),
        ("SET\0", 0),
        ("FETCH 2\0", 0),
        ("CREATE TABLE\0", 0),
        ("", 0),
        ("\0", 0),
        ("UPDATE 99999999999999999999999\0", changed_rows(b"UPDATE 99999999999999999999999\0")),
    ] {
        assert_eq!(changed_rows(tag.as_bytes()), changed, "{tag:?}");
    }
}

/// Generates messages of a server, likely and unlikely.
fn server_message() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(message(b'2', b"")),
        Just(message(b'C', b"INSERT 0 1\0")),
        Just(message(b'C', b"SELECT 1\0")),
        Just(message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 9])),
        Just(message(b'G', &[1, 0, 1, 0, 1])),
        Just(message(b'N', b"SNOTICE\0\0")),
        Just(error("23505")),
        Just(ready()),
        (any::<u8>(), proptest::collection::vec(any::<u8>(), 0..12)).prop_map(|(tag, body)| message(tag, &body)),
    ]
}

fn any_request() -> impl Strategy<Value = Request> {
    let expect = prop_oneof![Just(Expect::Anything), Just(Expect::Rows), Just(Expect::Changed(1))];
    let steps = proptest::collection::vec((0..3_u16, 0..6_u32, expect), 0..4);
    steps.prop_map(|steps| request(&steps))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(request in any_request(), bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
        let (mut wire, mut out) = (wire(), Vec::new());
        wire.start(&request, &mut out);
        let progress = wire.advance(&request, &bytes, &mut out);
        prop_assert!(progress.consumed <= bytes.len());
    }

    #[test]
    fn however_an_answer_is_cut_its_outcome_is_the_same(
        request in any_request(),
        messages in proptest::collection::vec(server_message(), 0..12),
        pieces in proptest::collection::vec(1..20_usize, 1..40),
    ) {
        let bytes = messages.concat();
        let (mut whole, mut whole_out) = (wire(), Vec::new());
        whole.start(&request, &mut whole_out);
        let at_once = whole.advance(&request, &bytes, &mut whole_out);

        let (mut cut, mut cut_out) = (wire(), Vec::new());
        cut.start(&request, &mut cut_out);
        let (mut given, mut consumed, mut outcome) = (0, 0, None);
        let mut pieces = pieces.into_iter().cycle();
        while outcome.is_none() && given < bytes.len() {
            given = bytes.len().min(given + pieces.next().unwrap());
            let progress = cut.advance(&request, &bytes[consumed..given], &mut cut_out);
            consumed += progress.consumed;
            outcome = progress.outcome;
        }
        prop_assert_eq!((consumed, outcome, cut_out), (at_once.consumed, at_once.outcome, whole_out));
    }
}

#[test]
fn between_requests_a_server_may_warn_notify_and_end_the_connection_and_nothing_else() {
    let warning = message(b'N', b"SWARNING\0VWARNING\0C57P02\0Mcrash\0\0");
    let setting = message(b'S', b"TimeZone\0UTC\0");
    let notice = message(b'A', b"\0\0\0\x01channel\0\0");
    let (mut wire, mut out) = (wire(), Vec::new());
    let all = [warning.clone(), setting, notice, vec![b'N', 0]].concat();
    assert_eq!(wire.unasked(&all, &mut out), Ok(all.len() - 2), "what is not whole is left");
    assert_eq!((wire.notices, out.len()), (1, 0));
    let ended = message(b'E', b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0");
    assert_eq!(wire.unasked(&[warning, ended].concat(), &mut out), Err(Unasked::Ended));
    for wrong in [done("SELECT 1"), error("22003"), ready(), vec![b'N', 0xff, 0xff, 0xff, 0xff]] {
        assert_eq!(wire.unasked(&wrong, &mut out), Err(Unasked::Wrong), "{wrong:?}");
    }
}
