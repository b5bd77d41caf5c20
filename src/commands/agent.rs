//! `loadline agent`, and the agents of `loadline run`.
//!
//! Main functions: [`run`] and [`muster`]. Invariant: a run that needs agents begins only if enough of them are there.

use std::sync::Arc;

use super::{Failure, Status};
use crate::cli::{AgentsLost, NatsArguments, NatsFiles, RunArguments};
use crate::fault::fault;
use crate::load::monotonic;
use crate::monitor::{WatchAddress, read_address};
use crate::runner::agents::{self, Bus, BusAddress, Credentials, Lacking, Muster, check_address};
use crate::server;
use crate::study::Study;
use crate::study::agents::agents_wanted;
use crate::trial::Case;
use crate::written::section::masked_url;

/// Waits for work until loadline is told to end.
///
/// # Errors
/// Fails if the NATS server cannot be reached.
pub fn run(arguments: &NatsArguments) -> Result<Status, Failure> {
    check_address(&arguments.nats).map_err(Failure::usage)?;
    server::install_signal_handlers();
    let address = address_of(&arguments.nats, &arguments.files);
    agents::serve(&address).map(|()| Status::Valid).map_err(Failure::usage)
}

/// Returns the address of a NATS server with the files that it asks for.
pub(super) fn address_of(url: &str, files: &NatsFiles) -> BusAddress {
    let creds = files.nats_creds.clone().map(Credentials::Creds);
    let credentials = creds.or(files.nats_nkey.clone().map(Credentials::Nkey));
    BusAddress { url: url.to_owned(), authority: files.nats_ca.clone(), credentials }
}

/// Turns `--agents` into the setting that it is short for.
pub fn with_agents(mut arguments: RunArguments) -> RunArguments {
    if let Some(agents) = arguments.agents {
        arguments.study.sets.push(format!("load.agents={agents}"));
    }
    arguments
}

/// Returns the words of the command that name the NATS server, without user, password and token.
pub fn words_of(arguments: &RunArguments) -> Vec<String> {
    let Some(url) = &arguments.nats else { return Vec::new() };
    let mut words = vec!["--nats".to_owned(), masked_url(url)];
    if arguments.agents_lost == AgentsLost::Fewer {
        words.push("--agents-lost=fewer".to_owned());
    }
    let NatsFiles { nats_ca, nats_creds, nats_nkey } = &arguments.nats_files;
    for (name, path) in [("--nats-ca", nats_ca), ("--nats-creds", nats_creds), ("--nats-nkey", nats_nkey)] {
        words.extend(path.iter().flat_map(|path| [name.to_owned(), path.display().to_string()]));
    }
    words
}

/// Connects to the NATS server and waits until there are as many agents as the study's cases need; `None` if agents are processes of this machine and
/// no machine is watched over NATS.
///
/// # Errors
/// Fails if there is no such server, if too few agents are there, or if a case cannot be driven from other machines.
pub fn muster(arguments: &RunArguments, study: &Study) -> Result<Option<Arc<Muster>>, Failure> {
    let most = study.cases.iter().filter_map(|case| agents_wanted(&case.settings)).max();
    let is_watched = |case: &Case| {
        let watch = case.settings.database.watch.as_deref().map(read_address);
        matches!(watch, Some(Ok(WatchAddress::Named(_))))
    };
    let is_watched = study.cases.iter().any(is_watched);
    let Some(url) = &arguments.nats else {
        if is_watched {
            return Err(Failure::refused(
                fault!("database.watch names a watcher at a NATS server, and no server is named"; "add --nats URL"),
            ));
        }
        let is_elsewhere = |case: &Case| case.settings.load.agents.is_none() && agents_wanted(&case.settings).is_some();
        let remedy = "add --nats URL, where as many agents wait";
        return match study.cases.iter().any(is_elsewhere) {
            true => Err(Failure::refused(fault!("freshness.run_as is \"agents\" and no agents are named"; "{remedy}"))),
            false => Ok(None),
        };
    };
    check_address(url).map_err(Failure::usage)?;
    if most.is_none() && !is_watched {
        let remedy = "add --agents N, or write load.agents, or freshness.run_as = \"agents\"";
        return Err(Failure::refused(fault!("--nats is given and no load has agents"; "{remedy}")));
    }
    let is_private =
        |settings: &crate::trial::Settings| settings.database.url.is_none() && settings.load.agents.is_some();
    if let Some(case) = study.cases.iter().find(|case| is_private(&case.settings)) {
        let name = &case.settings.database.name;
        if name != "simulated" {
            let remedy =
                "name a server that all agents reach with database.url, or leave out --nats for agents on this machine";
            return Err(Failure::refused(
                fault!("--nats is given and {name} is started here, for this machine only"; "{remedy}"),
            ));
        }
    }
    let is_factor = study.factors.iter().any(|factor| factor.setting == "load.agents" && factor.levels.len() > 1);
    if arguments.agents_lost == AgentsLost::Fewer && is_factor {
        let remedy = "leave one of them out";
        return Err(Failure::refused(
            fault!("--agents-lost=fewer is given and load.agents has several levels, which would not be those that are named"; "{remedy}"),
        ));
    }
    server::install_signal_handlers();
    let address = address_of(url, &arguments.nats_files);
    let own = format!("{:x}-{:x}", std::process::id(), monotonic::now_ns());
    let bus = Bus::connect(&address, &own).map_err(Failure::usage)?;
    let lacking = match arguments.agents_lost {
        AgentsLost::Wait => Lacking::Wait,
        AgentsLost::Fewer => Lacking::Fewer,
    };
    let muster = Muster::new(Arc::new(bus), lacking);
    if let Some(most) = most {
        muster.wait_for(most as usize).map_err(Failure::usage)?;
    }
    Ok(Some(Arc::new(muster)))
}
