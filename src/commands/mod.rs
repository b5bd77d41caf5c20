//! The commands: the only place that knows every part and connects the parts.
//!
//! Main function: [`execute_command`]. Invariant: a wrong request is refused before anything is started.

mod agent;
mod block;
mod block_erase;
mod block_keys;
mod budget;
mod capture;
mod compare;
mod course;
pub mod data;
mod draft;
mod durability;
mod export;
mod fetch;
mod fetch_begun;
mod fetch_built;
mod fit;
mod help;
mod import;
mod init;
mod known;
pub mod list;
pub mod output;
mod password;
pub mod plan;
mod predict;
mod progress;
mod record;
mod record_config;
mod record_model;
mod record_parts;
mod record_reload;
mod record_supervised;
mod refusal;
mod report;
mod rerun;
mod run;
pub mod schema;
mod score;
mod screen;
mod size;
mod size_run;
mod stored;
mod watcher;

use std::path::PathBuf;

use crate::cli::{Cli, Command, DataArguments, DataFormat, RunArguments, StudyArguments, WorkKind};
use crate::database;
use crate::fault::fault;
use crate::runner::{agents, freshness, options};
use crate::store::Run;
use crate::study::{self, Names, Passwords, Study};
use crate::workload::Work;

use budget::Budget;
use list::{Catalogue, Member};
use run::Destination;
use stored::{open_run, status_of_files};

pub use refusal::Refusal;

/// The outcome of a command that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The result is valid.
    Valid,
    /// Something in the result is invalid, or a stated bar was missed.
    Invalid,
}

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request is wrong; nothing was started.
    #[error("{0}")]
    Usage(Box<Refusal>),
    /// The command could not go on.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    fn refused(refusal: impl Into<Refusal>) -> Self {
        Failure::Usage(Box::new(refusal.into()))
    }

    fn usage(error: impl Into<anyhow::Error>) -> Self {
        Failure::refused(Refusal::of(&error.into()))
    }

    fn broken(error: impl Into<anyhow::Error>) -> Self {
        Failure::Broken(output::sentence(&error.into()))
    }
}

/// Executes the command of the command line.
///
/// # Errors
/// Fails with sentences that name place, value and remedy.
pub fn execute_command(cli: Cli) -> Result<Status, Failure> {
    match cli.command {
        Command::Work { what: WorkKind::Readers } => {
            freshness::work_as_readers().map(|()| Status::Valid).map_err(Failure::broken)
        }
        Command::Work { what: WorkKind::Historian } => {
            freshness::work_as_historian().map(|()| Status::Valid).map_err(Failure::broken)
        }
        Command::Work { what: WorkKind::Writers } => {
            durability::work_as_writers().map(|()| Status::Valid).map_err(Failure::broken)
        }
        Command::List { what } => list::run(what, cli.json, &catalogue(), &find_server).map(|()| Status::Valid),
        Command::Plan { study } => plan::run(&study, cli.json, &names()).map(|()| Status::Valid),
        Command::Init(arguments) => init::run(&arguments, cli.json, &names()),
        Command::Durability(arguments) => durability::run(&arguments, cli.json, &names()),
        Command::Fetch(arguments) => fetch::run(&arguments, cli.json),
        Command::Watch(arguments) => watcher::run(&arguments, cli.json),
        Command::Capture(arguments) => capture::run(&arguments, cli.json),
        Command::Draft(arguments) => draft::run(&arguments, cli.json, &names()),
        Command::Work { what: WorkKind::Load } => {
            agents::work_as_load().map(|()| Status::Valid).map_err(Failure::broken)
        }
        Command::Run(arguments) => {
            let arguments = agent::with_agents(arguments);
            let (study, passwords) = read_study(&arguments.study, &names())?;
            if let Some(plan) = study.durability.clone() {
                return durability::run_study(&study, plan, &arguments, cli.json);
            }
            let mut words = rerun::words_of(&arguments.study, &study);
            words.extend(arguments.budget.iter().flat_map(|time| ["--budget".to_owned(), time.clone()]));
            words.extend(agent::words_of(&arguments));
            let (budget, flags) = (Budget::read(arguments.budget.as_deref())?, (cli.json, arguments.strict));
            let muster = agent::muster(&arguments, &study)?;
            run::run(&study, (passwords, muster), &destination(&arguments), (words, budget), flags)
        }
        Command::Report { runs, strict } => report_on(&runs, cli.json, strict),
        Command::Compare(arguments) => compare::run(&arguments, cli.json),
        Command::Fit(arguments) => fit::run(&arguments, cli.json),
        Command::Predict(arguments) => predict::run(&arguments, cli.json),
        Command::Size(arguments) => size::run(&arguments, cli.json),
        Command::Import(arguments) => import::run(&arguments, cli.json),
        Command::Score(arguments) => score::run(&arguments, cli.json),
        Command::Record(arguments) => record::run(&arguments, cli.json),
        Command::Block { action } => block::run(&action, cli.json),
        Command::Schema { what } => schema::run(what),
        Command::Help { what } => help::run(&what, cli.json),
        Command::Password(arguments) => password::run(&arguments, cli.json),
        Command::Export { run, format, out } => export::run(&run, format, &out, cli.json),
        Command::Data(arguments) => {
            let DataArguments { record, rows, seed, format } = arguments;
            let format = match (cli.json, format) {
                (true, Some(_)) => {
                    let remedy = "leave one of them out";
                    return Err(Failure::refused(fault!(
                        "--json prints one document and --format chooses another form"; "{remedy}"
                    )));
                }
                (true, None) => DataFormat::Json,
                (false, format) => format.unwrap_or(DataFormat::Csv),
            };
            data::data(&record, rows, seed, format, &mut std::io::stdout().lock())?;
            Ok(Status::Valid)
        }
        Command::Agent(arguments) => agent::run(&arguments),
    }
}

/// Reports the findings of runs, or of a durability test, again.
fn report_on(paths: &[PathBuf], is_json: bool, is_strict: bool) -> Result<Status, Failure> {
    let runs: Vec<Run> = paths.iter().map(|path| open_run(path)).collect::<Result<_, _>>()?;
    match (runs.iter().find(|run| run.file.study.durability.is_some()), runs.len()) {
        (None, _) => report::publish(&runs, is_json, is_strict),
        (Some(test), 1) => durability::report_again(test, is_json),
        (Some(test), _) => {
            let path = test.path.display();
            Err(Failure::refused(fault!("{path} holds a durability test, which has no trials"; "report it by itself")))
        }
    }
}

fn destination(arguments: &RunArguments) -> Destination {
    match (&arguments.out, &arguments.resume) {
        (_, Some(path)) => Destination::Resume(path.clone()),
        (Some(path), None) => Destination::Out(path.clone()),
        (None, None) => Destination::New,
    }
}

/// Returns the study that the arguments name, the study of a run, or the study that a property file of YCSB describes.
fn read_study(arguments: &StudyArguments, names: &Names) -> Result<(Study, Passwords), Failure> {
    if let Some(study) = rerun::study_of_run(arguments, names) {
        return Ok((study?, Passwords::default()));
    }
    let StudyArguments { study, ycsb, sets, quick, seed } = arguments;
    if study.is_none() && ycsb.is_none() {
        return Err(Failure::refused(fault!(
            "no study is named";
            "try qos-write, which takes a minute and needs no server; see the others with: loadline list studies; or name a file of your own, or with --ycsb one of YCSB"
        )));
    }
    let usage = |errors: study::StudyErrors| Failure::refused(errors);
    match ycsb {
        Some(path) => {
            let (study, passwords, notes) = study::load_ycsb(path, sets, *seed, *quick, names).map_err(usage)?;
            notes.iter().for_each(|line| output::note(&format!("note: {line}")));
            Ok((study, passwords))
        }
        None => study::load(study.as_deref().unwrap_or_default(), sets, *seed, *quick, names).map_err(usage),
    }
}

/// Returns all names that studies may use, and the check whether a case can be built.
fn names() -> Names {
    let try_build = |settings: &_| Work::new(settings).and_then(|work| options::check_options(settings, &work));
    Names { try_build, cannot: options::cannot, ..catalogue().names() }
}

/// Returns the catalogue of all registries.
fn catalogue() -> Catalogue<'static> {
    let members = |entries: Vec<(&'static str, &'static str)>| {
        entries.into_iter().map(|(name, summary)| Member { name, summary }).collect()
    };
    Catalogue {
        records: members(crate::data::REGISTRY.iter().map(|entry| (entry.name, entry.summary)).collect()),
        layouts: members(crate::layout::REGISTRY.iter().map(|entry| (entry.name, entry.summary)).collect()),
        databases: database::REGISTRY,
        workloads: members(crate::workload::REGISTRY.iter().map(|entry| (entry.name, entry.summary)).collect()),
    }
}

/// Returns where the server of a database is installed.
fn find_server(entry: &database::Entry) -> Result<std::path::PathBuf, String> {
    match entry.recipe {
        Some(recipe) => recipe.find_binary(&Default::default()).map_err(String::from),
        None => Err("no private server of it can be started; use database.url".to_owned()),
    }
}
