//! Checks what `load.agents` and readers on the hosts of agents can be combined with.
//!
//! Main functions: [`check_agents`], [`agents_wanted`]. Invariant: what agents do not do yet, or cannot do, is refused and never left out in silence.

use super::clash::Clash;
use crate::fault::fault;
use crate::trial::{Arrivals, FreshnessSettings, RunAs, Settings};
use crate::workload::ycsb;

/// The database that each agent may have for itself: it is there for trying things, and stores nothing.
const SIMULATED: &str = "simulated";

/// Returns the number of agents that a case needs: those that drive its load, or one for each group of readers. `None` if it needs none.
pub fn agents_wanted(settings: &Settings) -> Option<u32> {
    settings.load.agents.or_else(|| reads_elsewhere(settings).map(FreshnessSettings::groups_in_all))
}

fn reads_elsewhere(settings: &Settings) -> Option<&FreshnessSettings> {
    settings.freshness.as_ref().filter(|freshness| freshness.run_as == RunAs::Agents)
}

/// Returns the settings that cannot be combined with readers on the hosts of agents.
pub fn check_readers(settings: &Settings) -> Vec<Clash> {
    let Some(freshness) = reads_elsewhere(settings) else { return Vec::new() };
    let mut found: Vec<Clash> = Vec::new();
    if settings.database.url.is_none() {
        let (name, remedy) = (&settings.database.name, "name a server that all agents reach with database.url");
        let message =
            fault!("freshness.run_as is \"agents\" and {name} is started here, for this machine only"; "{remedy}");
        found.push((&["freshness.run_as", "database.url"], message));
    }
    if freshness.path.publishes() {
        let remedy = "take the path \"database\" or \"notify\"";
        let message = fault!("freshness.run_as is \"agents\" and events are published by a NATS server of this machine only"; "{remedy}");
        found.push((&["freshness.run_as", "freshness.path"], message));
    }
    found
}

/// Returns the settings that cannot be combined with `load.agents`.
pub fn check_agents(settings: &Settings, has_server: bool) -> Vec<Clash> {
    let load = &settings.load;
    let Some(agents) = load.agents else { return Vec::new() };
    let mut found: Vec<Clash> = Vec::new();
    let mut refuse = |keys: &'static [&'static str], message| found.push((keys, message));
    if agents > load.clients {
        let remedy = "each agent needs a connection of its own, as in clients = 64";
        let message = fault!("load.agents is {agents} and load.clients is {}", load.clients; "{remedy}");
        refuse(&["load.agents", "load.clients"], message);
    }
    let name = &settings.database.name;
    if !has_server && name != SIMULATED {
        let remedy = "leave it out, or take a database with a server";
        let message =
            fault!("load.agents is {agents} and {name} has no server that several processes could share"; "{remedy}");
        refuse(&["load.agents", "database.name"], message);
    }
    let clashes: [(bool, &'static [&'static str], &str); 9] = [
        (load.samples, &["load.samples"], "load.samples is true, and raw times do not travel"),
        (
            load.count_connecting,
            &["load.count_connecting"],
            "load.count_connecting is true, and each agent connects at its own time",
        ),
        (
            load.arrivals == Arrivals::Replay,
            &["workload.name"],
            "workload.name is \"replay\", whose sessions belong together",
        ),
        (settings.background.is_some(), &["background"], "[background] is given, which one process drives"),
        (
            settings.freshness.is_some(),
            &["workload.name"],
            "workload.name is \"freshness\", whose stamps are those of one process",
        ),
        (settings.recorder.is_some(), &["recorder"], "[recorder] is given, whose records are followed by one process"),
        (!settings.events.is_empty(), &["events"], "[[events]] are given, whose losses are counted by one process"),
        (
            settings.workload.evolve_s.is_some(),
            &["workload.evolve"],
            "workload.evolve is given, whose load ends with the changes",
        ),
        (
            ycsb::inserts(settings),
            &["workload.name", "workload.ycsb"],
            "its clients read records that others have just inserted, and know of them only within one process",
        ),
    ];
    for (is_so, keys, what) in clashes {
        if is_so {
            refuse(keys, fault!("load.agents is {agents} and {what}"; "leave one of them out"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl Fn(&mut Settings), has_server: bool) -> Vec<String> {
        let mut settings = Settings::default();
        (settings.load.agents, settings.load.clients) = (Some(4), 8);
        "postgres".clone_into(&mut settings.database.name);
        change(&mut settings);
        check_agents(&settings, has_server).iter().map(|(_, fault)| fault.to_string()).collect()
    }

    #[test]
    fn what_agents_do_not_do_is_refused() {
        assert_eq!(refused(|_| (), true), Vec::<String>::new());
        let few = refused(|settings| settings.load.clients = 3, true);
        assert!(few[0].starts_with("load.agents is 4 and load.clients is 3; each agent needs"), "{few:?}");
        let alone = refused(|settings| "sqlite".clone_into(&mut settings.database.name), false);
        assert!(alone[0].contains("sqlite has no server"), "{alone:?}");
        assert_eq!(
            refused(|settings| "simulated".clone_into(&mut settings.database.name), false),
            Vec::<String>::new()
        );
        let samples = refused(|settings| settings.load.samples = true, true);
        assert!(samples[0].contains("raw times do not travel; leave one of them out"), "{samples:?}");
        assert_eq!(refused(|settings| settings.load.agents = None, false), Vec::<String>::new());
    }
}
