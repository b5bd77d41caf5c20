//! The files in `containers/`: the commands in them are those of the program, and the study in them can be planned.

use crate::program::Scratch;

/// The commands of the program in a file: lists that begin with one of its commands.
fn commands_in(text: &str) -> Vec<Vec<String>> {
    let lists = text.lines().filter_map(|line| {
        let line = line.trim();
        let list = line.strip_prefix("command: ").or_else(|| line.strip_prefix("args: "))?;
        serde_json::from_str::<Vec<String>>(list).ok()
    });
    lists.filter(|words| ["agent", "run"].contains(&words[0].as_str())).collect()
}

#[test]
fn the_commands_in_container_files_are_those_of_the_program() {
    let scratch = Scratch::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/containers");
    let mut tried = 0;
    for name in ["compose.yaml", "kubernetes.yaml"] {
        for mut words in commands_in(&std::fs::read_to_string(format!("{folder}/{name}")).unwrap()) {
            for word in &mut words {
                if word.starts_with("nats://") {
                    // Nobody listens there.
                    *word = "nats://token@127.0.0.1:1".to_owned();
                }
                if word == "/study/shop.toml" {
                    *word = format!("{folder}/shop.toml");
                }
                if word == "/data/shop" {
                    "shop".clone_into(word);
                }
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            scratch.run(&words).refused(&["the NATS server at nats://***@127.0.0.1:1"]);
            tried += 1;
        }
    }
    assert_eq!(tried, 4, "an agent and a run in each file");
    scratch.run(&["plan", &format!("{folder}/shop.toml")]).expect(0);
}
