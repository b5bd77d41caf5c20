//! Checks, before anything is measured, that a server and this process can hold as many connections as a case opens.
//!
//! Main functions: [`check`], [`check_server`]. Invariant: a refusal names the setting that helps.

use anyhow::bail;

use crate::database::recipe::connections_of;
use crate::server::raise_descriptors;
use crate::trial::Settings;

/// Number of loadline's own connections besides the clients': to make and count tables, and to query statistics.
const OWN: u32 = 5;
/// Number of loadline's own open files besides connections: the run directory, the monitor, event loops.
const OWN_FILES: u64 = 64;

/// Checks a case against the limits of this process and of its future private server.
///
/// # Errors
/// Fails with a sentence that names the limit and the remedy.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    let (wanted, allowed) = (u64::from(wanted(settings)) + OWN_FILES, raise_descriptors());
    if wanted > allowed {
        bail!(
            "load.clients is {}, which takes {wanted} open files, and this process may have {allowed}; raise the limit with \
             ulimit -n {wanted}, or let fewer clients connect",
            settings.load.clients
        );
    }
    let has_limit = ["mariadb", "mysql", "postgres"].contains(&settings.database.name.as_str());
    if has_limit && settings.database.url.is_none() && settings.recorded().is_none() {
        refuse_above(settings, connections_of(&settings.database))?;
    }
    Ok(())
}

/// Checks an agent's share of the clients against the limits of this process.
///
/// # Errors
/// Fails with a sentence that names the limit and the remedy.
pub fn check_share(clients: usize) -> anyhow::Result<()> {
    let (wanted, allowed) = (clients as u64 + u64::from(OWN) + OWN_FILES, raise_descriptors());
    if wanted > allowed {
        bail!(
            "its {clients} clients take {wanted} open files, and its process may have {allowed}; raise the limit there with ulimit -n {wanted}, or \
             take more agents"
        );
    }
    Ok(())
}

/// Checks a case against the limits that its server reported.
///
/// # Errors
/// Fails with a sentence that names the limit and the remedy.
pub fn check_server(settings: &Settings, facts: &[(String, String)]) -> anyhow::Result<()> {
    let told = facts.iter().find(|(name, _)| name == "max_connections").and_then(|(_, value)| value.parse().ok());
    if settings.recorded().is_some() { Ok(()) } else { refuse_above(settings, told) }
}

fn refuse_above(settings: &Settings, most: Option<u32>) -> anyhow::Result<()> {
    let wanted = wanted(settings);
    let Some(most) = most.filter(|most| wanted > *most) else { return Ok(()) };
    let remedy = match settings.database.url {
        Some(_) => format!("raise max_connections of that server to {wanted}"),
        None => format!("write database.config.max_connections = {wanted}"),
    };
    bail!(
        "load.clients is {}, which takes {wanted} connections with those of loadline's own, and the server accepts {most}; \
         {remedy}, or let fewer clients connect",
        settings.load.clients
    )
}

/// Returns the number of connections that a case opens at once.
fn wanted(settings: &Settings) -> u32 {
    let beside = settings.background.as_ref().map_or(0, |background| background.clients);
    let readers = settings.freshness.as_ref().map_or(0, |freshness| freshness.groups.saturating_mul(freshness.readers));
    [beside, readers, OWN].into_iter().fold(settings.load.clients, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_clients_than_a_server_accepts_are_refused_with_the_setting_that_helps() {
        let mut settings = Settings::default();
        settings.database.name = "postgres".to_owned();
        settings.load.clients = 295;
        assert!(check(&settings).is_ok());
        settings.load.clients = 296;
        let refused = check(&settings).unwrap_err().to_string();
        assert!(refused.contains("takes 301 connections") && refused.contains("accepts 300"), "{refused}");
        assert!(refused.contains("write database.config.max_connections = 301"), "{refused}");
        settings.database.config.insert("max_connections".to_owned(), "400".to_owned());
        assert!(check(&settings).is_ok());
        let told = [("max_connections".to_owned(), "151".to_owned())];
        assert!(check_server(&settings, &told).is_err());
        assert!(check_server(&settings, &[]).is_ok(), "an unknown limit refuses nothing");
    }
}
