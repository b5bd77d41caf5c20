//! What MariaDB needs to be a node of a Galera cluster: its library, programs and options.
//!
//! Main function: [`check`]. Invariant: a node listens on 127.0.0.1 only, or at the address of its own host, whatever the study's own options say.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::database::Member;
use crate::database::recipe::search_path;
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// The study's own options of the library, which are joined with loadline's.
const OPTIONS: &str = "wsrep_provider_options";
/// How a node that joins gets the data of another one, and its usual value.
const TRANSFER: &str = "wsrep_sst_method";
const RSYNC: &str = "rsync";
/// Places of the library: Debian's, and those of other distributions and of unpacked servers.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib64/galera/libgalera_smm.so",
    "/usr/lib/libgalera_smm.so",
];

/// The ports of a node besides that for clients: communication of the group, and two to receive what it has missed.
pub(super) const PORTS: usize = 3;

/// Checks that nodes of a cluster can be started here.
///
/// # Errors
/// What is missing, and the package that provides it.
pub(super) fn check(settings: &DatabaseSettings) -> Result<(), Fault> {
    if library(settings).is_none() {
        return Err(fault!(
            "database.nodes: there is no libgalera_smm.so in {}, with which servers become nodes", LIBRARIES[0];
            "install the Debian package galera-4 (apt-get install galera-4)"
        ));
    }
    let transfer = of_config(settings, TRANSFER).map_or(RSYNC, |(_, value)| value.as_str());
    if transfer != RSYNC {
        return Ok(());
    }
    for (programs, package) in [(&["rsync"][..], "rsync"), (&["lsof", "ss"][..], "lsof")] {
        if programs.iter().all(|program| search_path(program).is_empty()) {
            let names = programs.join(" or ");
            return Err(fault!(
                "database.nodes: there is no {names} on the PATH, with which a node gets the others' data";
                "install the Debian package {package} (apt-get install {package})"
            ));
        }
    }
    Ok(())
}

/// Returns the library that makes a server a node.
fn library(settings: &DatabaseSettings) -> Option<PathBuf> {
    let unpacked = settings.base.iter().map(|base| Path::new(base).join("lib/galera/libgalera_smm.so"));
    let mut places = unpacked.chain(LIBRARIES.iter().map(PathBuf::from));
    places.find(|place| place.is_file())
}

/// Returns an option of the study, however it is written.
fn of_config<'a>(settings: &'a DatabaseSettings, name: &str) -> Option<(&'a String, &'a String)> {
    settings.config.iter().find(|(known, _)| known.to_lowercase().replace('-', "_") == name)
}

/// Returns the settings without the options that are joined with loadline's.
pub(super) fn without_options(settings: &DatabaseSettings) -> DatabaseSettings {
    let mut rest = settings.clone();
    if let Some((name, _)) = of_config(settings, OPTIONS) {
        rest.config.remove(name);
    }
    rest
}

/// Returns the options of a node, which stand in front of the study's own. `begins` is true for the node that makes a new cluster.
pub(super) fn options(number: u32, members: &[Member], begins: bool, settings: &DatabaseSettings) -> Vec<String> {
    let place = number.saturating_sub(1) as usize;
    let port =
        |of: usize, which: usize| members.get(of).and_then(|member| member.ports.get(which)).copied().unwrap_or(0);
    let address = |of: usize| members.get(of).map_or(Ipv4Addr::LOCALHOST, Member::address);
    let (own_address, group, missed, whole) = (address(place), port(place, 0), port(place, 1), port(place, 2));
    let others = (0..members.len()).filter(|other| *other != place && !begins);
    let others: Vec<String> = others.map(|other| format!("{}:{}", address(other), port(other, 0))).collect();
    let own =
        of_config(settings, OPTIONS).map(|(_, value)| format!("{};", value.trim_end_matches(';'))).unwrap_or_default();
    let library = library(settings).unwrap_or_else(|| LIBRARIES[0].into());
    let mut options = vec![
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={}", library.display()),
        // The last of several values counts: the study's own options cannot open a port elsewhere.
        format!(
            "--wsrep-provider-options=gcache.size=64M;{own}gmcast.listen_addr=tcp://{own_address}:{group};ist.recv_addr={own_address}:{missed}"
        ),
        "--wsrep-cluster-name=loadline".to_owned(),
        format!("--wsrep-cluster-address=gcomm://{}", others.join(",")),
        format!("--wsrep-node-name=node-{number}"),
        format!("--wsrep-node-address={own_address}:{group}"),
        format!("--wsrep-sst-method={RSYNC}"),
        format!("--wsrep-sst-receive-address={own_address}:{whole}"),
        "--binlog-format=ROW".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
    ];
    if begins {
        options.push("--wsrep-new-cluster".to_owned());
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Vec<Member> {
        (1..=3)
            .map(|number| Member { ports: vec![number * 10, number * 10 + 1, number * 10 + 2], ..Member::default() })
            .collect()
    }

    #[test]
    fn the_first_node_begins_a_cluster_and_the_others_join_it() {
        let settings = DatabaseSettings::default();
        let has = |options: &[String], option: &str| options.iter().any(|known| known == option);
        let first = options(1, &members(), true, &settings);
        assert!(has(&first, "--wsrep-cluster-address=gcomm://") && has(&first, "--wsrep-new-cluster"), "{first:?}");
        let second = options(2, &members(), false, &settings);
        assert!(has(&second, "--wsrep-cluster-address=gcomm://127.0.0.1:10,127.0.0.1:30"), "{second:?}");
        assert!(has(&second, "--wsrep-sst-receive-address=127.0.0.1:22") && !has(&second, "--wsrep-new-cluster"));
    }

    #[test]
    fn nodes_on_hosts_of_their_own_reach_each_other_there_alone() {
        let mut members = members();
        for (member, last) in members.iter_mut().zip(1..) {
            member.host = Some(Ipv4Addr::new(192, 0, 2, last));
        }
        let options = options(2, &members, false, &DatabaseSettings::default());
        assert!(options.iter().any(|option| option.ends_with("=gcomm://192.0.2.1:10,192.0.2.3:30")), "{options:?}");
        assert!(options.iter().any(|option| option.ends_with("=tcp://192.0.2.2:20;ist.recv_addr=192.0.2.2:21")));
        assert!(options.iter().any(|option| option == "--wsrep-sst-receive-address=192.0.2.2:22"), "{options:?}");
        assert!(!options.iter().any(|option| option.contains("127.0.0.1")), "{options:?}");
    }

    #[test]
    fn options_of_the_study_are_joined_and_cannot_open_a_port() {
        let mut settings = DatabaseSettings::default();
        settings.config.insert(
            "wsrep-provider-options".to_owned(),
            "evs.suspect_timeout=PT1S;gmcast.listen_addr=tcp://0.0.0.0:1".to_owned(),
        );
        let joined =
            options(1, &members(), true, &settings).into_iter().find(|option| option.contains("provider-options"));
        let joined = joined.unwrap();
        assert!(
            joined.contains("evs.suspect_timeout=PT1S;")
                && joined.ends_with("gmcast.listen_addr=tcp://127.0.0.1:10;ist.recv_addr=127.0.0.1:11"),
            "{joined}"
        );
        assert_eq!(without_options(&settings).config.len(), 0);
    }

    #[test]
    fn what_is_missing_is_reported_with_its_package() {
        let mut settings = DatabaseSettings::default();
        settings.config.insert("wsrep_sst_method".to_owned(), "mariabackup".to_owned());
        match (library(&settings), check(&settings)) {
            (Some(_), told) => assert_eq!(told, Ok(())),
            (None, told) => assert!(told.unwrap_err().to_string().contains("apt-get install galera-4")),
        }
    }
}
