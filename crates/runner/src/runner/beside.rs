//! Activities next to a load, in their own thread: schema changes, the retiring of old readings, or events that happen to the server.
//!
//! Main functions: [`drive_beside`] and [`Happenings::tell`]. Invariant: the activity ends with the load.

use std::sync::{Arc, mpsc};

use anyhow::anyhow;

use super::attendant::Attendant;
use super::driving::drive_pinned;
use super::evolve::{Evolved, Evolver};
use super::happening::{Events, Happened, Happening};
use super::retire::{Retired, Retirer};
use super::stage::Current;
use super::unanswered::Counted;
use crate::load::{Changing, Group, Observed, Observer, Reconnect, ReconnectSession, no_thread};
use crate::measurement::{EvolutionMeasurement, Measurement};
use crate::trial::Trial;

/// An observer of a load with an attendant, which tells the activity next to it when the measured phase begins.
pub trait Attending: Observer + AsMut<Attendant> {}

impl<O: Observer + AsMut<Attendant>> Attending for O {}

/// An activity next to a load.
pub enum Beside<'a> {
    /// Schema changes.
    Schema(Box<Evolver<'a>>),
    /// Readings are retired.
    Retention(Box<Retirer<'a>>),
    /// Events that happen to the server.
    Server(Box<Happening>),
}

/// The result of an activity next to a load.
enum Done {
    Schema(Evolved),
    Retention(Box<Retired>),
    Server(Box<Happened>),
}

/// The results of all activities next to a load.
#[derive(Default)]
pub struct Happenings {
    /// The result of the schema changes, if there were any.
    pub evolved: Option<Evolved>,
    /// What was retired of the readings, if they do not all stay.
    pub retired: Option<Box<Retired>>,
    /// The events that happened to the server, if there were any.
    pub events: Option<Events>,
}

impl Happenings {
    /// Puts the results into a measurement. Returns the counts of stored records that are still to be judged: after events, losses are what the study is
    /// about, and there is nothing to judge.
    pub fn tell(self, measurement: &mut Measurement, observed: &Observed, counted: Counted) -> Option<(u64, u64)> {
        let names = measurement.trial.case.settings.workload.kind_names();
        measurement.evolution = self.evolved.map(|evolved| EvolutionMeasurement {
            changes: evolved.changes,
            intended: observed.tally.asides.parts(&names),
            silences_s: evolved.silences_s,
        });
        if let Some(retired) = self.retired {
            retired.tell(measurement, observed);
        }
        let is_eventful = self.events.is_some();
        measurement.events = self.events.map(|events| events.measured(measurement, observed, counted));
        counted.stored.filter(|_| !is_eventful)
    }
}

/// Drives the load and the activity next to it, if the study asks for one. A server with events is given back whatever becomes of the
/// load.
pub fn drive_beside(
    trial: &Trial,
    groups: Vec<Group<'_>>,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    attendant: &mut impl Attending,
    (beside, begins): (Option<Beside<'_>>, mpsc::Receiver<Arc<Changing>>),
    current: &mut Current,
) -> anyhow::Result<(Vec<Observed>, Happenings)> {
    let happening = Happening::take(trial, current)?;
    let beside = beside.or(happening.map(|happening| Beside::Server(Box::new(happening))));
    let (observed, done) = drive(trial, groups, reconnect, attendant, (beside, begins));
    let mut happenings = Happenings::default();
    match done? {
        Some(Done::Schema(evolved)) => happenings.evolved = Some(evolved),
        Some(Done::Retention(retired)) => happenings.retired = Some(retired),
        Some(Done::Server(happened)) => happenings.events = Some(happened.give_back(current)),
        None => {}
    }
    Ok((observed?, happenings))
}

/// Drives the load and returns its outcome and the result of the activity next to it.
fn drive(
    trial: &Trial,
    groups: Vec<Group<'_>>,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    attendant: &mut impl Attending,
    (beside, begins): (Option<Beside<'_>>, mpsc::Receiver<Arc<Changing>>),
) -> (anyhow::Result<Vec<Observed>>, anyhow::Result<Option<Done>>) {
    std::thread::scope(|scope| {
        let thread = || std::thread::Builder::new().name("beside".to_owned());
        let run = move |beside: Beside<'_>| match beside {
            Beside::Schema(evolver) => Done::Schema(evolver.run(&begins)),
            Beside::Retention(retirer) => Done::Retention(Box::new(retirer.run(&begins))),
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
        // A load that could not be driven has not reported its end.
        attendant.as_mut().evolving = None;
        let gone = |_| anyhow!("the thread beside the load panicked");
        (observed, running.map(|thread| thread.join().map_err(gone)).transpose())
    })
}
