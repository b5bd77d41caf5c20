//! Tests of the state machine with hand-made answers.

use super::*;
use crate::database::mysql::values::Bound;
use crate::statement::Step;
use proptest::prelude::*;
use std::os::unix::net::UnixStream;

const OK: &[u8] = &[7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0];
const DUPLICATE: &[u8] = b"\x0c\0\0\x01\xff\x26\x04#23000twi";

/// Returns a wire with two statements of one parameter; the first takes bulk executions.
fn wire(engine: Engine) -> MySqlWire {
    let (socket, _) = UnixStream::pair().unwrap();
    let abilities = Abilities { deprecates_eof: true, caches_metadata: true, has_bulk: true };
    let mut wire = MySqlWire::new(std::os::fd::OwnedFd::from(socket).into(), abilities, engine);
    for (id, bulk) in [(1, true), (2, false)] {
        let sizes = vec![Bound::new(id, 1, Vec::new(), [None].into_iter())];
        wire.statements.push(Prepared { name: "INSERT INTO t".into(), columns: 1, bulk, sizes, text: None });
    }
    wire
}

fn request(steps: &[(u16, u32)]) -> Request {
    let mut request = Request::default();
    for (statement, rows) in steps {
        let first_cell = request.cells.len() as u32;
        (0..*rows).for_each(|row| request.cells.int(i64::from(row)));
        let expect = Expect::Changed(1);
        request.steps.push(Step { statement: *statement, rows: *rows, first_cell, expect });
    }
    request
}

/// Returns the commands sent, by their first byte or as text.
fn commands(mut out: &[u8]) -> Vec<String> {
    let mut commands = Vec::new();
    while let Some(message) = Message::at_front_of(out) {
        commands.push(match message.first() {
            [3, text @ ..] => String::from_utf8_lossy(text).into_owned(),
            [code, id, ..] => format!("{code:x} {id}"),
            other => format!("{other:?}"),
        });
        out = &out[message.length()..];
    }
    commands
}

/// Starts a request and passes these answers one by one. Returns the commands sent after each, and the outcome.
fn converse(wire: &mut MySqlWire, request: &Request, answers: &[&[u8]]) -> (Vec<Vec<String>>, Option<Outcome>) {
    let mut out = Vec::new();
    wire.start(request, &mut out);
    let (mut sent, mut outcome) = (vec![commands(&out)], None);
    for answer in answers {
        assert_eq!(outcome, None, "done before all answers were given");
        out.clear();
        let progress = wire.advance(request, answer, &mut out);
        assert_eq!(progress.consumed, answer.len());
        sent.push(commands(&out));
        outcome = progress.outcome;
    }
    (sent, outcome)
}

#[test]
fn one_command_commits_by_itself() {
    let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &request(&[(1, 1)]), &[OK]);
    assert_eq!(sent, [vec!["17 2"], vec![]]);
    assert_eq!(outcome, Some(Ok(Answer { changed: 1, ..Answer::default() })));
    let (sent, _) = converse(&mut wire(Engine::InnoDb), &request(&[(0, 9)]), &[]);
    assert_eq!(sent, [["fa 1"]]);
}

#[test]
fn several_steps_are_a_transaction_and_wait_for_each_other() {
    let request = request(&[(0, 1), (1, 1)]);
    let both = Some(Ok(Answer { changed: 2, ..Answer::default() }));
    let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &request, &[OK, OK, OK, OK]);
    assert_eq!(sent, [vec!["BEGIN"], vec!["17 1"], vec!["17 2"], vec!["COMMIT"], vec![]]);
    assert_eq!(outcome, both);
    let mut pipelining = MySqlWire { pipelines: true, ..wire(Engine::InnoDb) };
    let (sent, outcome) = converse(&mut pipelining, &request, &[OK, OK, OK, OK]);
    assert_eq!(sent, [vec!["BEGIN", "17 1"], vec![], vec!["17 2"], vec!["COMMIT"], vec![]]);
    assert_eq!(outcome, both);
    let (sent, _) = converse(&mut wire(Engine::Aria), &request, &[OK, OK]);
    assert_eq!(sent, [vec!["17 1"], vec!["17 2"], vec![]], "no transaction where the engine has none");
}

#[test]
fn rows_that_need_several_commands_are_a_transaction() {
    let mut wire = wire(Engine::InnoDb);
    wire.set_packet_bytes_max(0);
    let mut request = request(&[(0, 300)]);
    request.steps[0].expect = Expect::Changed(3);
    let (sent, outcome) = converse(&mut wire, &request, &[OK, OK, OK, OK, OK]);
    assert_eq!(sent, [vec!["BEGIN"], vec!["fa 1"], vec!["fa 1"], vec!["fa 1"], vec!["COMMIT"], vec![]]);
    assert_eq!(outcome, Some(Ok(Answer { changed: 3, ..Answer::default() })));
}

#[test]
fn counts_that_no_sum_can_hold_are_miscounts_like_others() {
    let most: &[u8] = &[15, 0, 0, 1, 0, 0xfe, 255, 255, 255, 255, 255, 255, 255, 255, 0, 2, 0, 0, 0];
    let mut wire = wire(Engine::InnoDb);
    wire.set_packet_bytes_max(0);
    let mut request = request(&[(0, 300)]);
    request.steps[0].expect = Expect::Changed(3);
    let (_, outcome) = converse(&mut wire, &request, &[OK, most, most, most, OK]);
    assert!(outcome.unwrap().unwrap_err().to_string().contains("rows instead of 3"));
}

#[test]
fn a_failure_is_rolled_back_and_the_first_error_reported() {
    let refused = Some(Err(DatabaseError::refused("1062", "twi")));
    let request = request(&[(0, 1), (1, 1)]);
    for answers in [&[OK, DUPLICATE, OK][..], &[OK, OK, DUPLICATE, OK], &[OK, OK, OK, DUPLICATE, OK]] {
        let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &request, answers);
        assert_eq!(sent[sent.len() - 2], ["ROLLBACK"]);
        assert_eq!(outcome, refused);
    }
    let (_, outcome) = converse(&mut wire(Engine::InnoDb), &request, &[DUPLICATE]);
    assert!(matches!(outcome, Some(Err(DatabaseError::Lost(_)))), "a refused BEGIN leaves the state unknown");
    let (_, outcome) = converse(&mut wire(Engine::InnoDb), &request, &[OK, DUPLICATE, DUPLICATE]);
    assert!(matches!(outcome, Some(Err(DatabaseError::Lost(_)))), "and so does a refused ROLLBACK");
}

#[test]
fn a_request_without_steps_takes_a_round_trip() {
    let (sent, outcome) = converse(&mut wire(Engine::InnoDb), &Request::default(), &[&OK[..3], OK][1..]);
    assert_eq!(sent.len(), 2);
    assert_eq!(outcome, Some(Ok(Answer::default())));
}

#[test]
fn a_message_that_nobody_asked_for_is_a_loss() {
    let mut wire = wire(Engine::InnoDb);
    let progress = wire.advance(&request(&[(0, 1)]), OK, &mut Vec::new());
    assert!(matches!(progress.outcome, Some(Err(DatabaseError::Lost(_)))));
}

proptest! {
    #[test]
    fn arbitrary_answers_never_panic(
        payloads in proptest::collection::vec(
            (prop_oneof![Just(0u8), Just(0xfe), Just(0xff), any::<u8>()], proptest::collection::vec(any::<u8>(), 0..20)),
            0..12,
        ),
        steps in proptest::collection::vec((0u16..2, 0u32..5), 0..4),
        keeps in any::<bool>(),
        caches_metadata in any::<bool>(),
        deprecates_eof in any::<bool>(),
    ) {
        let mut wire = wire(Engine::InnoDb);
        wire.abilities = Abilities { caches_metadata, deprecates_eof, has_bulk: true };
        wire.keep_rows(keeps.then(Cells::new));
        let request = request(&steps);
        let mut out = Vec::new();
        wire.start(&request, &mut out);
        let mut input = Vec::new();
        for (first, rest) in &payloads {
            let at = packet::begin(&mut input);
            input.push(*first);
            input.extend_from_slice(rest);
            packet::end(&mut input, at, 1);
        }
        let mut consumed = 0;
        while consumed < input.len() {
            let progress = wire.advance(&request, &input[consumed..], &mut out);
            prop_assert!(progress.consumed > 0);
            consumed += progress.consumed;
        }
    }
}
