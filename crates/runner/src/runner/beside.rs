//! What happens beside a load, in a thread of its own: changes of the schema, or events that happen to the server.
//!
//! Main functions: [`drive_beside`] and [`Happenings::tell`]. Invariant: what happens ends with the load.

use std::sync::{Arc, mpsc};

use anyhow::anyhow;

use super::attendant::Attendant;
use super::driving::drive_pinned;
use super::evolve::{Evolved, Evolver};
use super::happening::{Events, Happened, Happening};
use super::stage::Current;
use super::unanswered::Counted;
use crate::load::{Changing, Group, Observed, Reconnect, ReconnectSession, no_thread};
use crate::measurement::{EvolutionMeasurement, Measurement};
use crate::trial::Trial;

/// What happens beside a load.
enum Beside<'a> {
    /// The schema is changed.
    Schema(Box<Evolver<'a>>),
    /// Something happens to the server.
    Server(Box<Happening>),
}

/// What has happened beside a load.
enum Done {
    Schema(Evolved),
    Server(Box<Happened>),
}

/// What has happened beside a load, of whichever kind.
pub struct Happenings {
    /// How the schema was changed.
    pub evolved: Option<Evolved>,
    /// What happened to the server.
    pub events: Option<Events>,
}

impl Happenings {
    /// Puts all of it into a measurement. Gives back what is left to be judged of the records that are stored: what events have lost is what the study asks
    /// about.
    pub fn tell(self, measurement: &mut Measurement, observed: &Observed, counted: Counted) -> Option<(u64, u64)> {
        let names = measurement.trial.case.settings.workload.kind_names();
        measurement.evolution = self.evolved.map(|evolved| EvolutionMeasurement {
            changes: evolved.changes,
            intended: observed.tally.asides.parts(&names),
            silences_s: evolved.silences_s,
        });
        let is_eventful = self.events.is_some();
        measurement.events = self.events.map(|events| events.measured(measurement, observed, counted));
        counted.stored.filter(|_| !is_eventful)
    }
}

/// Drives the load, while something happens beside it where the study asks for it. A server that something happens to is given back whatever becomes of the
/// load.
pub fn drive_beside(
    trial: &Trial,
    groups: Vec<Group<'_>>,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    attendant: &mut Attendant,
    (evolver, begins): (Option<Evolver<'_>>, mpsc::Receiver<Arc<Changing>>),
    current: &mut Current,
) -> anyhow::Result<(Vec<Observed>, Happenings)> {
    let happening = Happening::take(trial, current)?;
    let beside = evolver
        .map(|evolver| Beside::Schema(Box::new(evolver)))
        .or(happening.map(|happening| Beside::Server(Box::new(happening))));
    let (observed, done) = drive(trial, groups, reconnect, attendant, (beside, begins));
    let (evolved, events) = match done? {
        Some(Done::Schema(evolved)) => (Some(evolved), None),
        Some(Done::Server(happened)) => (None, Some(happened.give_back(current))),
        None => (None, None),
    };
    Ok((observed?, Happenings { evolved, events }))
}

/// Drives the load; what became of it, and what has happened beside it.
fn drive(
    trial: &Trial,
    groups: Vec<Group<'_>>,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    attendant: &mut Attendant,
    (beside, begins): (Option<Beside<'_>>, mpsc::Receiver<Arc<Changing>>),
) -> (anyhow::Result<Vec<Observed>>, anyhow::Result<Option<Done>>) {
    std::thread::scope(|scope| {
        let thread = || std::thread::Builder::new().name("beside".to_owned());
        let run = move |beside: Beside<'_>| match beside {
            Beside::Schema(evolver) => Done::Schema(evolver.run(&begins)),
            Beside::Server(happening) => Done::Server(Box::new(happening.run(&begins))),
        };
        let running = match beside.map(|beside| thread().spawn_scoped(scope, move || run(beside))).transpose() {
            Ok(running) => running,
            Err(error) => {
                let why = || anyhow!(no_thread("what happens beside the load", &error));
                return (Err(why()), Err(why()));
            }
        };
        let observed = drive_pinned(trial, groups, reconnect, attendant);
        // A load that could not be driven never told that it ended.
        attendant.evolving = None;
        let gone = |_| anyhow!("the thread beside the load panicked");
        (observed, running.map(|thread| thread.join().map_err(gone)).transpose())
    })
}
