//! Every command of the contract is understood, and wrong usage is told.

use clap::CommandFactory;

use super::*;

fn read(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_of_the_contract_is_read() {
    for line in [
        "loadline list databases --json",
        "loadline --json list",
        "loadline plan qos-write --set load.clients=4 --set layout.name=[wide,star]",
        "loadline run qos-write --quick --seed 7 --out runs/x",
        "loadline run qos-write --resume runs/x --strict",
        "loadline report runs/a runs/b",
        "loadline compare runs/a runs/b --factor layout.name --metric throughput",
        "loadline compare --summaries f.csv --metric response_time_mean --alpha 0.01 --margin 0.1 --adjust bh --html x.html",
        "loadline fit runs/a --model mm1",
        "loadline fit --points f.csv --timer sent --workers 10 --quantile 0.99",
        "loadline predict --model mm1 --mu 1000 --delta 1.6ms --arrival-rate 800 --quantile 0.9 --below 10ms",
        "loadline predict --model repairman --mu 1000 --clients 20 --think 10ms",
        "loadline size --block 2MB --blocks 2 --every 5s --server-link 1Gbit/s --sources 100",
        "loadline size --block 2MB --run runs/a --where layout.name=star",
        "loadline score runs/a runs/b",
        "loadline score --writes w.csv --reads r.csv --write-weight 2",
        "loadline data qos --rows 10 --seed 2 --format line",
        "loadline import pgbench a b --out runs/x",
        "loadline import ycsb a --out runs/x --level layout.name=json --pattern {load.clients}.txt --discard-first",
        "loadline export runs/a --format parquet --out dir",
        "loadline record recorder.toml",
        "loadline record recorder.toml --quarantine list",
        "loadline password GDA-017 --stdin",
        "loadline schema study",
        "loadline help run",
        "loadline help load.clients --json",
        "loadline schema results",
        "loadline agent --nats nats://127.0.0.1:4222",
    ] {
        let cli = read(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let word = line.split(' ').skip(1).find(|word| !word.starts_with("--")).unwrap();
        let command = format!("{:?}", cli.command).to_lowercase();
        assert!(command.starts_with(word), "{line}: {command}");
    }
}

#[test]
fn the_help_and_the_readme_name_the_same_commands() {
    let readme = include_str!("../../README.md");
    let command = Cli::command();
    let shown: Vec<&str> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name).collect();
    for name in &shown {
        assert!(
            readme.contains(&format!("loadline {name} ")) || readme.contains(&format!("loadline {name}`")),
            "{name}"
        );
    }
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `loadline "));
    let named: Vec<&str> = rows.map(|row| row.split([' ', '`']).next().unwrap()).collect();
    assert!(named.len() > 10 && named.iter().all(|name| shown.contains(name)), "{named:?}");
}

#[test]
fn wrong_usage_exits_with_2() {
    for line in ["loadline", "loadline ruun", "loadline report", "loadline data qos", "loadline list tables"] {
        assert_eq!(read(line).unwrap_err().exit_code(), 2, "{line}");
    }
}
