//! One trial from the empty database to the measurement: prepare, warm up, measure, drain, check.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};

use super::agents::{self, Agents, Together};
use super::asked::ask;
use super::attendant::Attendant;
use super::background;
use super::beside::{Beside, Happenings, drive_beside};
use super::conserve::recorded;
use super::driving::{Executed, Ready, connect_all, connect_session, connect_wire, measured, sources};
use super::evolve::{Evolver, load_of};
use super::filling::{fill, make_tables};
use super::freshness;
use super::front::{Front, on_the_way};
use super::instruments::{Beginning, Ending, begin_all};
use super::notes::sentence;
use super::options::{check_options, check_recorded, restrict};
use super::pinned::{self};
use super::retire::{Retired, Retirer};
use super::stage::Current;
use super::unanswered::{Counted, are_looked_for, unanswered};
use super::watch_all::WatchAll;
use crate::database::{DatabaseError, Target};
use crate::fault::Fault;
use crate::layout::gorilla::READINGS;
use crate::load::{
    Changing, Group, Observed, Reconnect, ReconnectSession, Recording, Share, Written, cpu_count, no_thread, validity,
};
use crate::measurement::{AgentMeasurement, Measurement, RecordedMeasurement, Starvation, starvation};
use crate::monitor;
use crate::reason::Reason;
use crate::server::{Cluster, interrupted};
use crate::store::{SampleHeader, SampleWriter, StoreError};
use crate::trial::{Arrivals, LoadSettings, Settings, Trial};
use crate::units::show_utc;
use crate::workload::{self, Work};

/// Executes a trial. A problem with the database makes an invalid measurement, never a missing one.
/// `filling` is called from time to time with the number of rows in the tables so far and in total.
pub fn execute(
    trial: &Trial,
    sequence: u64,
    stage: anyhow::Result<&mut Current>,
    filling: &dyn Fn(u64, u64),
) -> Executed {
    let begun = Instant::now();
    let started = now_utc();
    let mut executed = match stage {
        Ok(current) => attempt(&trial.driven(), current, filling),
        Err(error) => Executed::failed(trial, &error),
    };
    let measurement = &mut executed.measurement;
    (measurement.sequence, measurement.started) = (sequence, started);
    measurement.trial = trial.clone();
    measurement.total_s = begun.elapsed().as_secs_f64();
    executed
}

/// Returns the current time, in UTC as RFC 3339.
pub fn now_utc() -> String {
    show_utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// Checks that a trial's settings can be carried out, as far as this is known before anything is started.
///
/// # Errors
/// Fails with a sentence.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    if settings.recorded().is_some() {
        check_recorded(settings).map_err(anyhow::Error::msg)?;
        return Work::new(&on_the_way(settings)).map(|_| ()).map_err(anyhow::Error::msg);
    }
    Work::new(settings).and_then(|work| check_options(settings, &work)).map_err(anyhow::Error::msg)
}

/// Executes a trial on a database that is set up.
fn attempt(trial: &Trial, current: &mut Current, filling: &dyn Fn(u64, u64)) -> Executed {
    let ended_before = current.server.as_ref().map_or(0, Cluster::ended_for_memory);
    let mut executed = match set_up(trial, current, filling) {
        Ok(ready) => {
            measure_any(trial, ready, current, filling).unwrap_or_else(|error| Executed::failed(trial, &error))
        }
        Err(error) => {
            // A problem with foreign tables is no mistake of the study: it is recorded as a finding.
            let is_ours = !trial.case.settings.record.existing;
            let refused = (is_ours
                && (error.is::<Fault>() || error.downcast_ref().is_some_and(DatabaseError::is_refusal)))
            .then(|| sentence(&error));
            Executed { refused, ..Executed::failed(trial, &error) }
        }
    };
    if let Err(error) = clean_up(&trial.case.settings, current) {
        executed.measurement.invalid_because.push(Reason::NotCarriedOut { error: sentence(&error) });
    }
    let ended = current.server.as_ref().map_or(0, Cluster::ended_for_memory).saturating_sub(ended_before);
    if let (Some(limit_bytes), true) = (trial.case.settings.database.memory_bytes, ended > 0) {
        executed.measurement.invalid_because.insert(0, Reason::MemoryExceeded { ended, limit_bytes });
    }
    // Connections that are lost by an event say nothing of the server's end.
    let loses = executed.is_lost && trial.case.settings.events.is_empty();
    if !interrupted()
        && current.server.as_ref().is_some_and(|server| !server.is_running() || loses && server.ends_now())
        && let Some(why) = current.untold_end()
    {
        executed.measurement.invalid_because.insert(0, why);
    }
    executed
}

/// Makes the tables, unless those of an earlier trial can be used again, and prepares the statements once.
fn set_up(trial: &Trial, current: &mut Current, filling: &dyn Fn(u64, u64)) -> anyhow::Result<Ready> {
    let settings = &trial.case.settings;
    if let Some(recorder) = settings.recorded() {
        let mut front = Front::start(settings, recorder, current)?;
        let work = Arc::new(Work::new(&on_the_way(settings)).map_err(anyhow::Error::msg)?);
        let mut session = front.target.open()?;
        session.prepare(work.program())?;
        front.opened = Some(session);
        return Ok(Ready { work, session: None, front: Some(front) });
    }
    let work = Arc::new(Work::new(settings).map_err(anyhow::Error::msg)?);
    let mut session = make_tables(settings, &work, current, filling)?;
    if let Some(session) = session.sql() {
        settings.workload.set_up.iter().try_for_each(|sql| session.run_change(sql)).context("workload.set_up")?;
    }
    let place = match &settings.workload.replay {
        Some(_) => "workload.trace",
        None if workload::has_statements(settings) => "workload.statements",
        None => "preparing the statements",
    };
    if let Some(session) = session.sql() {
        restrict(session, settings)?;
    }
    session.prepare(work.program()).context(place)?;
    work.count_rows()?;
    let work = ask(settings, work, &*current.target, settings.record.rows == 0)?;
    Ok(Ready { work, session: Some(session), front: None })
}

/// Runs the study's clean-up statements after a trial, over a new connection: that of the trial may be lost.
fn clean_up(settings: &Settings, current: &Current) -> anyhow::Result<()> {
    if settings.workload.clean_up.is_empty() {
        return Ok(());
    }
    let mut session = current.database()?.connect().context("workload.clean_up")?;
    settings.workload.clean_up.iter().try_for_each(|sql| session.run_change(sql)).context("workload.clean_up")
}

/// Measures a trial in the way that its workload requires.
fn measure_any(
    trial: &Trial,
    ready: Ready,
    current: &mut Current,
    filling: &dyn Fn(u64, u64),
) -> anyhow::Result<Executed> {
    match trial.case.settings.freshness {
        Some(_) => freshness::measure(trial, ready, current, filling),
        None => measure(trial, ready, current, filling),
    }
}

fn measure(trial: &Trial, ready: Ready, current: &mut Current, filling: &dyn Fn(u64, u64)) -> anyhow::Result<Executed> {
    let settings = &trial.case.settings;
    let Ready { work, session, front } = ready;
    if let Some(session) = session {
        fill(settings, &work, current, session, filling)?;
    }
    let work = ask(settings, work, &*current.target, settings.record.rows > 0)?;
    let own = current.target_of_clients(settings)?;
    let target: &dyn Target = front.as_ref().map_or(&*own, |front| &*front.target);
    let load = load_of(settings);
    let beside_load = background::load_settings(settings, &load);
    let by_agents = Agents::start(trial, current.reach(), current.muster.as_deref())?;
    let (groups, connecting_s) = connect_groups(trial, (&load, beside_load.as_ref()), &work, target)?;
    let (sender, receiver) = mpsc::channel();
    let beside = if front.is_none() { activity(settings, &work, target)? } else { None };
    let is_told = beside.is_some() || !settings.events.is_empty();
    let mut attendant = Attendant::new(current, front.as_ref(), settings, is_told.then_some(sender))?;
    attendant.watch_agents(by_agents.as_ref().map(Agents::pids).unwrap_or_default());
    // The disk is tested before the load begins, so that the test takes nothing from the load.
    let disk_bytes_per_s = settings.uploaded().and_then(|_| monitor::disk_speed(current.directory()));
    let watch = front.as_ref().map(|front| WatchAll::start(front, settings.workload.batch)).transpose()?;
    attendant.recording = start_recording(trial, current)?;
    attendant.instruments = begin_all(&Beginning { settings, work: &work, target, current })?;
    let wire = |client| connect_wire(target, client, &work, settings);
    let session = |client| connect_session(target, client, &work, settings);
    let by = (by_agents, groups);
    let Driven { mut observed, agents: (agents, against), happenings } =
        drive_any(trial, by, (&wire, &session), &mut attendant, (beside, receiver), current)?;
    let beside = beside_load.as_ref().and_then(|load| Some((load, observed.pop()?)));
    let observed = observed.pop().context("nothing was driven")?;
    let written = attendant.recording.take().map(Recording::finish);
    let instruments = std::mem::take(&mut attendant.instruments);
    let begun = attendant.begun.unwrap_or_else(Instant::now);
    let attended = attendant.finish(observed.measured_s);
    let kept = match settings.recorder {
        Some(_) => Some(recorded(settings, &work, &observed, begun, front.as_ref().zip(watch), current)?),
        None => None,
    };
    note_changes(settings, &happenings, current);
    let is_in_front = front.is_some();
    let seen: Vec<_> = std::iter::once(&observed).chain(beside.as_ref().map(|(_, seen)| seen)).collect();
    let stored = if is_in_front { None } else { counted(settings, &work, (&seen, &happenings), target, current)? };
    let (mut measurement, samples) = measured(trial, &observed, attended, current);
    let found = stored.map(|(_, found)| found);
    let ending = Ending { settings, work: &work, current, found };
    instruments.into_iter().try_for_each(|instrument| instrument.tell(&ending, &mut measurement))?;
    let unanswered = if stored.is_some() { unanswered(settings, &observed, current)? } else { None };
    let stored = happenings.tell(&mut measurement, &observed, Counted { stored, unanswered });
    measurement.connecting_s = connecting_s;
    measurement.agents = agents;
    judge(&mut measurement, settings, &observed, current.target.is_embedded() && !is_in_front, stored);
    agents::judge(&mut measurement, settings, against);
    if let Some(kept) = kept {
        take_in_records(&mut measurement, RecordedMeasurement { disk_bytes_per_s, ..kept });
    }
    measurement.invalid_because.extend(front.and_then(end_front));
    if let Some((load, seen)) = &beside {
        background::take_in(&mut measurement, load, seen, current.target.is_embedded());
    }
    if let Some(written) = written {
        judge_samples(&mut measurement, written, current.samples.as_deref());
    }
    let is_lost = observed.tally.has_lost || beside.as_ref().is_some_and(|(_, seen)| seen.tally.has_lost);
    Ok(Executed { measurement, samples, refused: None, is_lost })
}

/// Returns what the study asks for beside the load, apart from events of the server.
fn activity<'a>(settings: &Settings, work: &'a Work, target: &'a dyn Target) -> anyhow::Result<Option<Beside<'a>>> {
    if let Some(evolver) = Evolver::new(settings, work, target) {
        return Ok(Some(Beside::Schema(Box::new(evolver))));
    }
    Ok(Retirer::new(work, target)?.map(|retirer| Beside::Retention(Box::new(retirer))))
}

/// What drove a load, and what was observed.
struct Driven {
    /// The observations of each group; those of agents are one.
    observed: Vec<Observed>,
    /// The agents, if these drove it, and what speaks against the trial because of them.
    agents: (Vec<AgentMeasurement>, Vec<Reason>),
    happenings: Happenings,
}

/// Lets the agents drive the load if there are any; otherwise drives the groups of clients, with the activity beside them.
fn drive_any(
    trial: &Trial,
    (by_agents, groups): (Option<Agents>, Vec<Group<'_>>),
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    attendant: &mut Attendant,
    beside: (Option<Beside<'_>>, mpsc::Receiver<Arc<Changing>>),
    current: &mut Current,
) -> anyhow::Result<Driven> {
    if let Some(by_agents) = by_agents {
        let Together { observed, agents, against } = by_agents.drive(&trial.case.settings, attendant)?;
        return Ok(Driven { observed: vec![observed], agents: (agents, against), happenings: Happenings::default() });
    }
    let (observed, happenings) = drive_beside(trial, groups, reconnect, attendant, beside, current)?;
    Ok(Driven { observed, agents: Default::default(), happenings })
}

/// Puts the fate of the records into a measurement, with the reasons that make it invalid.
fn take_in_records(measurement: &mut Measurement, kept: RecordedMeasurement) {
    measurement.invalid_because.extend(kept.reasons());
    measurement.recorded = Some(kept);
}

/// Notes whether the tables have changed since they were filled.
fn note_changes(settings: &Settings, happenings: &Happenings, current: &mut Current) {
    if let Some(fixture) = &mut current.fixture {
        let is_undone = happenings.evolved.as_ref().is_none_or(|evolved| evolved.is_undone);
        fixture.is_changed |= !workload::keeps_records(settings) || !is_undone || happenings.retired.is_some();
    }
}

/// Connects the load under study and the one in the background, and returns them, with the time of connecting if that counts. Nothing is
/// connected if agents drive the load.
fn connect_groups<'a>(
    trial: &Trial,
    (load, beside): (&'a LoadSettings, Option<&'a LoadSettings>),
    work: &Arc<Work>,
    target: &dyn Target,
) -> anyhow::Result<(Vec<Group<'a>>, Option<f64>)> {
    let settings = &trial.case.settings;
    if settings.load.agents.is_some() {
        return Ok((Vec::new(), None));
    }
    let (connecting, share) = (Instant::now(), Share::WHOLE);
    let connections = connect_all(target, work, settings, (&settings.load, share))?;
    let connecting_s = settings.load.count_connecting.then(|| connecting.elapsed().as_secs_f64());
    let of = |number| workload::Client { number, of: settings.load.clients, seed: trial.seed };
    let sources = sources(work, 0..settings.load.clients, |number| work.workload(of(number)))?;
    let keeps_acknowledged = settings.recorder.is_some() || are_looked_for(settings) || work.retirement().is_some();
    let pins_loops = pinned::may_pin_loops(settings);
    let mut groups = vec![Group { settings: load, share, connections, sources, keeps_acknowledged, pins_loops }];
    if let Some(beside) = beside {
        let connections = connect_all(target, work, settings, (beside, share))?;
        groups.push(background::group(beside, trial, work, connections)?);
    }
    Ok((groups, connecting_s))
}

/// Stops the recorder. Returns why the trial is invalid if the recorder ended early or does not stop in order.
fn end_front(front: Front) -> Option<Reason> {
    let failure = front.failure();
    let stopped = front.stop();
    failure.or_else(|| (!stopped).then_some(Reason::RecorderNotStopped {}))
}

/// Starts recording raw times, if the study asks for them.
fn start_recording(trial: &Trial, current: &Current) -> anyhow::Result<Option<Recording>> {
    let Some(path) = current.samples.as_ref().filter(|_| trial.case.settings.load.samples) else { return Ok(None) };
    let file = SampleWriter::create(path, &SampleHeader::new(trial, &now_utc())).context("load.samples")?;
    let recording = Recording::start(file, trial.case.settings.workload.kind_names());
    recording.map(Some).map_err(|error| anyhow!(no_thread("the recording of raw times", &error)))
}

/// Adds the result of recording raw times. If some are missing, or load threads had to wait for the disk, the trial is
/// invalid.
fn judge_samples(measurement: &mut Measurement, written: Result<Written, StoreError>, path: Option<&Path>) {
    match written {
        Ok(written) => {
            measurement.samples = Some(written.samples);
            if written.waited_s > 0.0 {
                measurement.invalid_because.push(Reason::SamplesHeldUp { waited_s: written.waited_s });
            }
        }
        Err(error) => {
            let removed = error.is_full() && path.is_some_and(|path| std::fs::remove_file(path).is_ok());
            let error = error.to_string();
            measurement.invalid_because.push(Reason::SamplesNotWritten { error, removed });
        }
    }
}

/// Returns the number of acknowledged records that must be in the tables after a load, and of those that are there; `None` where they cannot be counted.
fn counted(
    settings: &Settings,
    work: &Work,
    (seen, happenings): (&[&Observed], &Happenings),
    target: &dyn Target,
    current: &Current,
) -> anyhow::Result<Option<(u64, u64)>> {
    // A server that did not come back cannot be queried.
    if current.server.as_ref().is_some_and(|server| !server.is_running()) {
        return Ok(None);
    }
    let settle = |retired: &Retired| retired.settle(work, (settings.record.rows, seen), target);
    let gone = happenings.retired.as_deref().map_or(Ok(Some(0)), settle)?;
    let acknowledged = seen.iter().map(|seen| seen.tally.acknowledged_records).sum();
    check_stored(settings, work, (acknowledged, gone), current)
}

/// Returns the number of acknowledged records that must be there and of records in the tables, for workloads that insert and do not delete. `gone` is the number of those that
/// were retired, if it is known.
fn check_stored(
    settings: &Settings,
    work: &Work,
    (acknowledged, gone): (u64, Option<u64>),
    current: &Current,
) -> anyhow::Result<Option<(u64, u64)>> {
    let is_counted = workload::only_adds(settings) && !settings.record.existing;
    let tables = work.record_tables();
    let (true, false, Some(gone)) = (is_counted, tables.is_empty(), gone) else { return Ok(None) };
    current.await_even_writers()?;
    let mut session = current.target.open()?;
    let mut count = Some(0_u64);
    for table in tables {
        let rows = if work.packs() { session.sum_column(table, READINGS)? } else { session.count_rows(table)? };
        count = count.zip(rows).map(|(sum, rows)| sum + rows);
    }
    let found = |rows: u64| rows / work.rows_per_record().max(1);
    let left = (settings.record.rows + acknowledged).saturating_sub(gone);
    Ok(count.map(|rows| (left, found(rows))))
}

fn judge(
    measurement: &mut Measurement,
    settings: &Settings,
    observed: &Observed,
    is_embedded: bool,
    stored: Option<(u64, u64)>,
) {
    let is_closed = settings.load.arrivals == Arrivals::Closed && settings.load.think_s == 0.0;
    let circumstances = validity::Circumstances {
        tolerated_failures: if settings.events.is_empty() { settings.load.tolerated_failures } else { 1.0 },
        is_embedded,
        is_cut_short: observed.is_cut_short,
        // Clients pause before they connect again.
        always_busy_clients: (is_closed && settings.events.is_empty()).then_some(settings.load.clients),
        offered_per_s: settings.load.rate_per_s.filter(|_| settings.load.arrivals != Arrivals::Closed),
        late_share: match settings.load.arrivals {
            // Sources wait next to a recorder and a server that take every CPU they can get, and nothing waits for a source's thread.
            Arrivals::Sources => background::LATE_SHARE,
            // The same holds for a load next to a writer that keeps a CPU and the disk busy.
            _ if settings.disk.is_some() => background::LATE_SHARE,
            _ => validity::LATE_SHARE,
        },
        is_sought: measurement.trial.sought.is_some(),
        stored,
    };
    measurement.invalid_because = validity::reasons(measurement, circumstances);
    if !is_embedded {
        let found = starvation(measurement, cpu_count() as f64).into_iter();
        let reasons =
            found.filter_map(|found| if let Starvation::Reason(reason) = found { Some(reason) } else { None });
        measurement.invalid_because.extend(reasons);
    }
}
