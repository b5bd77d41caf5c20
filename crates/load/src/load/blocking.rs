//! Blocking clients: one thread each, for databases without a lean codec. Clients and tallies are the same as in the event loop.

use super::client::{Client, Next};
use super::clock::minimise_timer_slack;
use super::{LoopContext, LoopResult, ReconnectSession};
use crate::database::TargetSession;
use crate::record::Cells;

/// Pause before a lost connection is made again, in nanoseconds.
const RECONNECT_PAUSE_NS: u64 = 100_000_000;
/// Longest sleep in nanoseconds; bounded so that a stopped trial is noticed.
const WAIT_NS_MAX: u64 = 50_000_000;

/// Drives one client over a blocking session until the trial is over. Without a session, each operation opens a
/// connection, is answered and closes it, and opening it is also counted as a part.
pub fn run(
    mut client: Client,
    mut session: Option<Box<dyn TargetSession>>,
    mut context: LoopContext<'_>,
    reconnect: &ReconnectSession<'_>,
) -> LoopResult {
    minimise_timer_slack();
    let clock = context.clock;
    let connects_each_time = session.is_none();
    let mut last_answer_ns = clock.now_ns();
    let mut rows = Cells::new();
    loop {
        let now_ns = clock.now_ns();
        context.cpu.observe(now_ns);
        if now_ns >= context.phases.last_ns().saturating_add(context.phases.drain_ns) {
            break;
        }
        match client.next(now_ns, context.phases) {
            Next::Over => break,
            Next::Wait(until_ns) => {
                clock.sleep_until_ns(until_ns.min(now_ns + WAIT_NS_MAX));
                continue;
            }
            Next::Send => {}
        }
        client.sent(clock.now_ns());
        rows.clear();
        let checks = client.checks_answers();
        let outcome = match &mut session {
            Some(session) => session.execute(&client.request, checks.then_some(&mut rows)),
            None => reconnect(client.number).and_then(|fresh| {
                if connects_each_time {
                    client.connected(clock.now_ns(), &mut context.tally);
                }
                session.insert(fresh).execute(&client.request, checks.then_some(&mut rows))
            }),
        };
        if connects_each_time {
            session = None;
        }
        let outcome = if checks { client.unpacked(outcome, &mut rows).0 } else { outcome };
        let done_ns = clock.now_ns();
        let outcome = if checks { client.checked(outcome, &rows, &mut context.tally) } else { outcome };
        if checks {
            // Otherwise the check would be a part of the next response time.
            client.postpone(clock.now_ns());
        }
        client.done(done_ns, &outcome, &mut context.tally);
        match outcome {
            Err(error) if error.is_lost() => {
                session = None;
                client.postpone(done_ns + RECONNECT_PAUSE_NS);
                if done_ns - last_answer_ns > context.phases.drain_ns {
                    context.phases.stop();
                }
            }
            _ => last_answer_ns = done_ns,
        }
    }
    client.give_up(clock.now_ns(), context.phases.ends_ns(), &mut context.tally);
    context.finish("blocking", vec![client.finish()])
}
