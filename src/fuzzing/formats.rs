//! Files that people write or get from others: configurations, studies, outputs of other tools, figures.

use crate::fuzzed::{Target, assert_short, texts};
use crate::import::{Naming, Options, SourceFile, Tool};
use crate::queueing::points::Points;
use crate::recorder::config;
use crate::study::{Names, StudyErrors};

/// Configurations of the recorder.
pub(super) static CONFIG: Target = Target {
    name: "config",
    run: |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        if let Err(errors) = config::read(text, "c.toml") {
            assert_places(&errors, "c.toml:", text);
        }
    },
    seeds: || {
        texts(&[
            "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\ntokens = [\"0123456789abcdef\"]\n[[access]]\nname = \"a\"\nsources = [\"n-*\"]\nrate = 5e3\nbytes = \"2MiB\"\n",
            "[database]\nname = \"mariadb\"\nurl = \"mysql://me:pass@localhost/m?socket=/s\"\n[intake.nats]\nurl = \"tls://h:4222\"\nstream = \"s\"\nconsumer = \"c\"\n[writer]\nbatch = 5000\nwithin = \"5ms\"\nkeep = \"10s\"\n",
            "[inbox]\npath = \"i\"\n[intake.ftp]\nlisten = \"127.0.0.1:0\"\npassive_ports = [50000, 50010]\n[intake.blocks]\nrate = \"10MB\"\n[forward]\nurl = \"nats://h\"\nbucket = \"b\"\n",
            "[layout]\nname = \"star-hot\"\nhot = [\"a\"]\n[limits]\ntags = 0\n[schema]\nnew_columns = 'json'\n[office]\nlisten = \"[::1]:0\"\nreaders = \"r\"\n[admission]\nquantile = 1.5\n",
        ])
    },
    words: &[
        "[[access]]\n",
        "[intake.tcp]\n",
        "token_hash = ",
        "\"sha256:",
        "listen = ",
        " = \"",
        "'''",
        "\\u0000",
        "1e999",
        "[spool]\n",
        "bound = ",
    ],
    memory: (1 << 20, 1024),
    is_linear: false,
};

/// Studies.
pub(super) static STUDY: Target = Target {
    name: "study",
    run: |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        match crate::study::load_text("s.toml", text, &[], None, text.len() % 2 == 1, &names()) {
            Ok((study, _)) => assert!(!study.cases.is_empty()),
            Err(errors) => assert_places(&errors, "s.toml:", text),
        }
    },
    seeds: || {
        let mut seeds = texts(&[
            "name = \"a\"\nquestion = \"Which?\"\n[workload]\nname = \"write\"\n[load]\nduration = \"1s\"\n[factors]\n\"load.clients\" = [1, 2]\n\"layout.name\" = [\"wide\", \"star\"]\n",
            "name = \"b\"\nquestion = \"q\"\n[database]\nname = \"postgres\"\n[workload]\nname = \"sql\"\nstatements = [ { sql = \"SELECT ?\", params = [ { uniform = [1, 9] } ] } ]\n",
            "name = \"c\"\nquestion = \"q\"\n[record]\ntype = \"custom\"\nidentity = [ { name = \"p\", kind = \"int\", fill = { zipf = [1, 9, 0.9] } } ]\nvalues = [ { name = \"v\", kind = \"text\", fill = { random_text = 4 } } ]\n[goal]\nquantile = 0.9\nbelow = \"100ms\"\nwithin = 0.05\n[repeat]\nrule = \"fixed\"\nleast = 2\n",
        ]);
        seeds.extend(
            crate::study::BUNDLED.iter().map(|study| study.text.as_bytes().to_vec()).filter(|text| text.len() < 1_500),
        );
        seeds
    },
    words: &[
        "[factors]\n",
        "\"load.clients\" = [",
        "[[claims]]\n",
        "where = \"",
        "[background]\n",
        "duration = ",
        "9223372036854775807",
        "1e308",
        "nan",
        "\"99999999h\"",
    ],
    memory: (4 << 20, 16 << 10),
    is_linear: false,
};

/// Outputs of YCSB, sysbench and pgbench. The first byte selects the tool; a line of `====` separates files.
pub(super) static IMPORT: Target = Target {
    name: "import",
    run: |input| {
        let (first, rest) = input.split_first().unwrap_or((&0, &[]));
        let text = String::from_utf8_lossy(rest);
        let (tool, names) = match first % 3 {
            0 => (Tool::Ycsb, ["a.txt", "a-READ.hdr", "b.txt"]),
            1 => (Tool::Sysbench, ["a.txt", "b.txt", "c.txt"]),
            _ => (Tool::Pgbench, ["a.txt", "a.123", "a.123.1"]),
        };
        let files: Vec<_> = text
            .split("====\n")
            .zip(names)
            .map(|(text, name)| SourceFile { name: name.to_owned(), text: text.to_owned() })
            .collect();
        if let Err(error) = crate::import::read(tool, &files, &Naming::default(), &Options::default()) {
            let files = names.iter().any(|name| error.place.starts_with(name));
            assert!(files, "{error} names no file");
            error.to_string().lines().for_each(|line| assert_short(line, 1_000));
        }
    },
    seeds: || {
        let of_tools: [(u8, &[&str]); 5] = [
            (0, &[include_str!("../../tests/import/ycsb/target.txt"), include_str!("hdr.txt")]),
            (0, &[include_str!("../../tests/import/ycsb/json-a-1.txt")]),
            (1, &[include_str!("../../tests/import/sysbench/rate.txt")]),
            (
                2,
                &[
                    include_str!("../../tests/import/pgbench/rate.txt"),
                    "0 1 1000 0 1700000000 5 20\n0 2 1100 0 1700000001 6 25\n",
                ],
            ),
            (2, &[include_str!("../../tests/import/pgbench/aggregated.txt"), "1700000000 10 5000 3000000 400 600\n"]),
        ];
        let file = |text: &&str| text.chars().take(4_000).collect::<String>();
        of_tools
            .map(|(tool, parts)| {
                [&[tool][..], parts.iter().map(file).collect::<Vec<_>>().join("====\n").as_bytes()].concat()
            })
            .to_vec()
    },
    words: &[
        "====\n",
        "[READ], Operations, ",
        "HISTFAAA",
        "NaN",
        "-1",
        "18446744073709551615",
        "1e308",
        "tps = ",
        "queries:",
    ],
    // A log that spans days has at most 100,000 seconds, each with its figures.
    memory: (32 << 20, 4 << 10),
    is_linear: true,
};

/// Figures for scores and for fits.
pub(super) static FIGURES: Target = Target {
    name: "figures",
    run: |input| {
        let text = String::from_utf8_lossy(input);
        if let Err(error) = Points::from_csv("p.csv", &text) {
            let error = error.to_string();
            assert!(error.starts_with("p.csv"), "{error} names no file");
            error.lines().for_each(|line| assert_short(line, 1_000));
        }
        let (writes, reads) = text.split_once("====\n").unwrap_or((&text, ""));
        if let Err(error) = crate::scoring::evidence_from_csv(("w.csv", writes), ("r.csv", reads)) {
            error.lines().for_each(|line| assert_short(line, 1_000));
        }
    },
    seeds: || {
        texts(&[
            "arrival_rate,mean_s\n100,0.002\n200,0.003\n300,0.008\n",
            "arrival_rate,time_s\n100,0.002\n100,0.0021\n200,0.003\n200,0.0031\n",
            "alternative,case,value\na,1,100\nb,1,200\n====\nalternative,case,value\na,q,1.5\nb,q,2.5\n",
        ])
    },
    words: &["arrival_rate", "mean_s", "time_s", "====\n", "nan", "inf", "-0", "1e-320", "1e308", "\""],
    memory: (1 << 20, 512),
    is_linear: true,
};

/// Returns the names that studies may use.
pub fn names() -> Names {
    let list = crate::study::NameList::new;
    Names {
        databases: list("database", &["sqlite", "postgres", "mariadb"]),
        database_facts: Vec::new(),
        records: list("record type", &["qos", "sensor", "custom"]),
        layouts: list("layout", &["wide", "star"]),
        workloads: list("workload", &["write", "read", "sql", "query"]),
        arrivals: list("arrivals", &["closed", "poisson", "constant"]),
        try_build: |_| Ok(()),
        cannot: |_| None,
    }
}

/// Asserts that every error has a place and a line of its own.
fn assert_places(errors: &StudyErrors, file: &str, text: &str) {
    assert!(!errors.all.is_empty());
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    for line in &errors.lines() {
        assert_short(line, 7_000);
        let number =
            line.strip_prefix(file).and_then(|rest| rest.split(':').next()).and_then(|number| number.parse().ok());
        assert!(
            number.is_some_and(|number: usize| (1..=lines).contains(&number)),
            "{line} has no place of {lines} lines"
        );
    }
}
