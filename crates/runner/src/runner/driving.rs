//! The parts that every kind of trial uses to drive its load: connections, clients' workloads, and observations. Main type: [`Executed`].

use std::ops::Range;
use std::sync::Arc;

use anyhow::Context;

use super::attendant::Attended;
use super::front::Front;
use super::lost::AgentLost;
use super::notes::sentence;
use super::options::restrict;
use super::pinned::Pinned;
use super::stage::Current;
use crate::database::{DatabaseError, Target, TargetSession, Wire};
use crate::load::{Connections, Group, Observed, Observer, Reconnect, ReconnectSession, Share, Source, drive_groups};
use crate::measurement::{ConflictsMeasurement, Measurement, ResourceSample};
use crate::operation::{Operation, OperationKind};
use crate::reason::Reason;
use crate::record::Cells;
use crate::statement::Request;
use crate::trial::{Arrivals, LoadSettings, Settings, Trial};
use crate::workload::{Work, Workload};

/// A measurement and the resource samples that belong to it.
pub struct Executed {
    /// The measurement.
    pub measurement: Measurement,
    /// Resource samples over time.
    pub samples: Vec<ResourceSample>,
    /// Why the database refused the tables or the statements, which means that the request is wrong; `None` otherwise.
    pub refused: Option<String>,
    /// Whether connections to the database were lost.
    pub is_lost: bool,
}

impl Executed {
    /// Returns the result of a trial that could not be carried out.
    pub fn failed(trial: &Trial, error: &anyhow::Error) -> Self {
        let mut measurement = Measurement::unmeasured(trial);
        let lost = error.downcast_ref::<AgentLost>().map(AgentLost::reason);
        let why = lost.clone().unwrap_or_else(|| Reason::NotCarriedOut { error: sentence(error) });
        measurement.invalid_because.push(why);
        // An agent may have been lost because the server was.
        let is_lost =
            lost.is_some() || error.chain().any(|cause| matches!(cause.downcast_ref(), Some(DatabaseError::Lost(_))));
        Executed { measurement, samples: Vec::new(), refused: None, is_lost }
    }
}

/// A trial that is set up: its tables are made or reused, and are filled next.
pub(super) struct Ready {
    pub work: Arc<Work>,
    /// A connection to the database with the statements prepared; `None` if there is a front.
    pub session: Option<Box<dyn TargetSession>>,
    /// The front of the database, if there is one.
    pub front: Option<Front>,
}

/// One client's workload, as statements.
struct WorkSource {
    work: Arc<Work>,
    workload: Box<dyn Workload>,
    /// The running operation, where its answer is checked.
    running: Option<Operation>,
}

impl Source for WorkSource {
    fn next(&mut self, request: &mut Request) -> Operation {
        let operation = self.work.next(&mut *self.workload, request);
        self.running = matches!(operation, Operation::Ask { .. }).then_some(operation);
        operation
    }

    fn checks_answers(&self) -> bool {
        self.running.is_some()
    }

    fn works_long(&self) -> bool {
        self.workload.works_long()
    }

    fn unpack(&mut self, rows: &mut Cells) -> Result<Option<u64>, String> {
        self.running.as_ref().map_or(Ok(None), |operation| self.work.unpack(operation, rows))
    }

    fn check(&mut self, rows: &Cells) -> Result<(), String> {
        self.running.as_ref().map_or(Ok(()), |operation| self.work.check(operation, rows))
    }

    fn compound(&self) -> Option<OperationKind> {
        self.workload.compound()
    }

    fn done(&mut self, succeeded: bool, request: &mut Request) -> Option<Operation> {
        self.work.done(&mut *self.workload, succeeded, request)
    }

    fn due_ns(&self) -> Option<i64> {
        self.workload.due_ns()
    }

    fn is_inside(&self) -> bool {
        self.workload.is_inside()
    }

    fn pass_over(&mut self) -> Option<OperationKind> {
        self.workload.pass_over().map(|operation| operation.kind())
    }
}

/// Returns the sources of the clients with these numbers; `workload` returns the workload of a number.
pub(super) fn sources(
    work: &Arc<Work>,
    clients: Range<u32>,
    workload: impl Fn(u32) -> Result<Box<dyn Workload>, String>,
) -> anyhow::Result<Vec<Box<dyn Source>>> {
    let source = |number| -> anyhow::Result<Box<dyn Source>> {
        let workload = workload(number).map_err(anyhow::Error::msg)?;
        Ok(Box::new(WorkSource { work: Arc::clone(work), workload, running: None }))
    };
    clients.map(source).collect()
}

/// Drives the load on the CPUs that the settings name, and returns the observations of each group.
pub(super) fn drive_pinned(
    trial: &Trial,
    groups: Vec<Group<'_>>,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    attendant: &mut dyn Observer,
) -> anyhow::Result<Vec<Observed>> {
    let _pinned = groups.first().map(|first| Pinned::for_load(&trial.case.settings, &first.connections)).transpose()?;
    drive_groups(groups, trial.seed, reconnect, attendant).map_err(anyhow::Error::msg)
}

/// Opens a connection for a client and prepares its statements.
pub(super) fn connect_session(
    target: &dyn Target,
    client: u32,
    work: &Work,
    settings: &Settings,
) -> Result<Box<dyn TargetSession>, DatabaseError> {
    let mut session = target.open_for(client)?;
    if let Some(session) = session.sql() {
        restrict(session, settings)?;
    }
    session.prepare(work.program_of(client))?;
    Ok(session)
}

pub(super) fn connect_wire(
    target: &dyn Target,
    client: u32,
    work: &Work,
    settings: &Settings,
) -> Result<Box<dyn Wire>, DatabaseError> {
    let no_codec = |_| DatabaseError::Unavailable("the database has no lean codec any more".to_owned());
    connect_session(target, client, work, settings)?.into_wire().map_err(no_codec)
}

/// Connects the clients of a share of the load, before any clock starts.
pub(super) fn connect_all(
    target: &dyn Target,
    work: &Work,
    settings: &Settings,
    (load, share): (&LoadSettings, Share),
) -> anyhow::Result<Connections> {
    let (mut wires, mut sessions) = (Vec::new(), Vec::new());
    let all = load.clients;
    for client in share.clients(all) {
        let session = connect_session(target, client, work, settings);
        let session = session.with_context(|| format!("connecting client {} of {all}", client + 1))?;
        // Opening a connection waits for the server, which an event loop must not.
        let into_wire = if load.connects_each_time { Err(session) } else { session.into_wire() };
        match into_wire {
            Ok(wire) => wires.push(wire),
            Err(session) => sessions.push(session),
        }
    }
    Ok(if wires.is_empty() { Connections::Sessions(sessions) } else { Connections::Wires(wires) })
}

pub(super) fn measured(
    trial: &Trial,
    observed: &Observed,
    attended: Option<Attended>,
    current: &Current,
) -> (Measurement, Vec<ResourceSample>) {
    let attended = attended.map(|Attended { samples, resources, timeline }| (samples, (Some(resources), timeline)));
    let (samples, (resources, timeline)) = attended.unwrap_or_default();
    let names = trial.case.settings.workload.kind_names();
    let measurement = Measurement {
        measured_s: observed.measured_s,
        carried: (trial.case.settings.load.arrivals != Arrivals::Closed).then_some(observed.tally.carried),
        operations: observed.tally.operations(&names),
        parts: observed.tally.parts(&names),
        clients: observed.clients.clone(),
        generator_late: observed.tally.generator_late.clone(),
        loops: observed.loops.clone(),
        series: observed.tally.series(observed.measured_s),
        client_cpu_s: observed.loops.iter().map(|each| each.cpu_s).sum(),
        resources,
        timeline,
        database_version: current.facts.first().map(|(_, version)| version.clone()).unwrap_or_default(),
        errors: current.explained(&observed.tally.errors),
        conflicts: (!observed.tally.sent_again.is_empty()).then(|| ConflictsMeasurement {
            sent_again: current.explained(&observed.tally.sent_again),
            between_nodes: None,
        }),
        link: current.link.as_ref().map(|link| link.seen.clone()),
        ..Measurement::unmeasured(trial)
    };
    (measurement, samples)
}
