//! The load engine uploads: an open loop over many connections, in every way, and every block that it counts as done is there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use loadline::database::station::{Camera, Content, StationDatabase, StationSettings, UploadWay};
use loadline::database::{DatabaseError, Target};
use loadline::load::{Connections, Observer, Source, drive};
use loadline::operation::Operation;
use loadline::recorder::inbox::Faults;
use loadline::statement::{Expect, Request, Step};
use loadline::trial::{Arrivals, Length, LoadSettings};

use crate::client::{CAMERA, PASSWORD, TLS, Try, block, tls};

/// A block at a time.
struct Inserts;

impl Source for Inserts {
    fn next(&mut self, request: &mut Request) -> Operation {
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
        Operation::Insert { first: 0, records: 1 }
    }
}

struct Quiet;

impl Observer for Quiet {
    fn measure(&mut self) {}
    fn drained(&mut self) {}
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

fn settings(tried: &Try, way: UploadWay, content: Content) -> StationSettings {
    let intake = match way {
        UploadWay::Ftp | UploadWay::FtpTls => "ftp",
        UploadWay::FtpImplicit => "ftps",
        UploadWay::Put | UploadWay::PutTls => "put",
    };
    let camera = |name: &str| Camera { name: name.to_owned(), password: PASSWORD.to_owned() };
    StationSettings {
        way,
        host: "localhost".to_owned(),
        port: tried.address(intake).port(),
        cameras: vec![camera(CAMERA), camera("GDA-018")],
        networks: Vec::new(),
        certificate: Some(PathBuf::from(format!("{TLS}/certificate.pem"))),
        content,
        connects_for_each: false,
    }
}

/// Blocks completed and failed of an open loop over six connections.
fn load(database: &StationDatabase, operations: u64) -> (u64, u64) {
    let settings = LoadSettings {
        clients: 6,
        length: Length::Operations(operations),
        arrivals: Arrivals::Poisson,
        rate_per_s: Some(400.0),
        drain_s: 60.0,
        ..LoadSettings::default()
    };
    let sessions = (0..settings.clients).map(|_| database.open().unwrap()).collect();
    let sources = (0..settings.clients).map(|_| Box::new(Inserts) as Box<dyn Source>).collect();
    let wire = |_| Err(DatabaseError::Unavailable("no wire".to_owned()));
    let session = |_| database.open();
    let observed =
        drive(&settings, 1, Connections::Sessions(sessions), sources, (&wire, &session), &mut Quiet).unwrap();
    let inserts = &observed.tally.operations(&loadline::operation::KindNames::default())["insert"];
    assert_eq!(inserts.scheduled, inserts.completed + inserts.failed + inserts.abandoned);
    (inserts.completed, inserts.failed)
}

#[test]
fn an_open_loop_uploads_in_every_way_and_what_it_counts_is_there() {
    let certificate = tls().split_once('\n').unwrap().1.to_owned();
    for way in [UploadWay::Ftp, UploadWay::FtpTls, UploadWay::FtpImplicit, UploadWay::Put, UploadWay::PutTls] {
        let is_plain = matches!(way, UploadWay::Ftp | UploadWay::Put);
        let (ftp, put) = if is_plain { (String::new(), "") } else { (tls(), certificate.as_str()) };
        let tried = Try::with("", "", &ftp, put, Faults::default());
        let database = StationDatabase::new(settings(&tried, way, Content::random(30_000, 1))).unwrap();
        let step = Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) };
        let request = Request { steps: vec![step], ..Request::default() };
        let mut both = [database.open().unwrap(), database.open().unwrap()];
        both.iter_mut().for_each(|session| assert_eq!(session.execute(&request, None).unwrap().changed, 1));
        drop(both);
        let count = || [tried.names(CAMERA).len(), tried.names("GDA-018").len()];
        assert_eq!(count(), [1, 1], "{way:?}: connections are dealt out among the cameras");
        assert_eq!(load(&database, 60), (60, 0), "{way:?}");
        let stored = [tried.received(CAMERA), tried.received("GDA-018")];
        let contents: BTreeSet<_> = stored.iter().flatten().map(|(_, bytes)| bytes).collect();
        assert_eq!(contents.len(), 62, "{way:?}: no block is another");
        assert!(contents.iter().all(|bytes| bytes.len() == 30_000));
    }
}

#[test]
fn refusals_are_failures_with_their_code_and_the_session_goes_on() {
    let tried = Try::new("blocks_per_s_per_camera = 0.01", "");
    for way in [UploadWay::Ftp, UploadWay::Put] {
        let mut one = settings(&tried, way, Content::Blocks(vec![block(1, 900).into()]));
        one.cameras.truncate(1);
        let database = StationDatabase::new(one).unwrap();
        let mut session = database.open().unwrap();
        let step = Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) };
        let request = Request { steps: vec![step], ..Request::default() };
        let outcomes: Vec<_> = (0..4).map(|_| session.execute(&request, None).err()).collect();
        let code = if way == UploadWay::Ftp { "450" } else { "429" };
        let refused =
            |error: &DatabaseError| matches!(error, DatabaseError::Refused { code: found, .. } if found == code);
        // Two are let in at once, over both ways together.
        let let_in = outcomes.iter().filter(|outcome| outcome.is_none()).count();
        assert_eq!(let_in, if way == UploadWay::Ftp { 2 } else { 0 }, "{outcomes:?}");
        assert!(outcomes.iter().flatten().all(refused), "{outcomes:?}");
    }
    let mut wrong = settings(&tried, UploadWay::Ftp, Content::random(16, 1));
    wrong.cameras = vec![Camera { name: CAMERA.to_owned(), password: "wrong".to_owned() }];
    let refused = StationDatabase::new(wrong).unwrap().open().err().unwrap().to_string();
    assert!(refused.contains("530"), "{refused}");
}
