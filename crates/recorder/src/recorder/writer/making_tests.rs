//! Tests of two recorders that create the same tables and columns: one creates all of it between two statements of the other, at each place in turn.

use std::path::PathBuf;

use super::super::catalogue::Shape;
use super::*;
use crate::database::{Answer, Dialect, TargetSession, Wire, find};
use crate::record::Cells;
use crate::statement::{Program, Request};
use crate::trial::DatabaseSettings;

/// A database of its own, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadline-making-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn database(&self) -> Box<dyn Database> {
        let path = Some(self.0.join("db").to_str().unwrap().to_owned());
        let settings = DatabaseSettings { name: "sqlite".to_owned(), path, ..DatabaseSettings::default() };
        find("sqlite").unwrap().open_sql(&settings, None).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It holds nothing that is needed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A session in which something happens before the statement with this number.
struct Between {
    inner: Box<dyn Session>,
    left: usize,
    act: Option<Box<dyn FnOnce() + Send>>,
}

impl Between {
    fn count(&mut self) {
        if self.left == 0
            && let Some(act) = self.act.take()
        {
            act();
        }
        self.left = self.left.saturating_sub(1);
    }
}

impl TargetSession for Between {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.inner.prepare(program)
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        self.inner.execute(request, rows)
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.inner.version()
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        Some(self)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

impl Session for Between {
    fn dialect(&self) -> &dyn Dialect {
        self.inner.dialect()
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.count();
        self.inner.run(sql)
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.count();
        self.inner.query(sql)
    }
}

fn registry() -> Registry {
    Registry::new(Shape::Star, Vec::new(), true, 100)
}

fn column(role: Role, name: &str, kind: FieldKind) -> Need {
    Need::Column { measurement: "m".to_owned(), role, name: name.to_owned(), kind }
}

/// Returns the needs of the recorder with this number: a tag and a field like the other's, and one of its own each.
fn needs(number: usize) -> Vec<Need> {
    let (tag, field) = (format!("t{number}"), format!("f{number}"));
    vec![
        Need::Measurement("m".to_owned()),
        column(Role::Tag, "t", FieldKind::Text),
        column(Role::Tag, &tag, FieldKind::Text),
        column(Role::Field, "f", if number == 0 { FieldKind::Float } else { FieldKind::Int }),
        column(Role::Field, &field, FieldKind::Float),
    ]
}

/// Creates what is needed until nothing is, as a writer does.
fn make_all(registry: &Registry, number: usize, database: &dyn Database, session: &mut dyn Session) -> Arc<Catalogue> {
    for _ in 0..5 {
        let catalogue = registry.extend(&needs(number), database, session).unwrap();
        let has = |need: &Need| match need {
            Need::Column { role, name, .. } => catalogue
                .find("m")
                .is_some_and(|place| catalogue.measurements()[place].columns(*role).find(name).is_some()),
            _ => catalogue.find("m").is_some(),
        };
        if needs(number).iter().all(has) {
            return catalogue;
        }
    }
    panic!("a writer would make the same again and again");
}

/// Returns what a catalogue says of the measurement, in any order.
fn told(catalogue: &Catalogue) -> (String, Vec<(String, String, FieldKind)>) {
    let measurement = &catalogue.measurements()[catalogue.find("m").unwrap()];
    let columns = [Role::Tag, Role::Field].map(|role| measurement.columns(role).as_slice().to_vec()).concat();
    let mut told: Vec<_> = columns.into_iter().map(|column| (column.name, column.column, column.kind)).collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    (measurement.table.clone(), told)
}

/// Lets one recorder create all of it before this statement of the other, where the measurement is new or has tables without their columns; returns false if
/// the other has fewer statements.
fn interleave(place: usize, is_new: bool) -> bool {
    let at = format!("before statement {place} of a measurement that is {}", if is_new { "new" } else { "known" });
    let scratch = Scratch::new(&format!("{place}-{is_new}"));
    let (own, database, other) = (registry(), scratch.database(), scratch.database());
    let mut fresh = database.connect().unwrap();
    own.catalogue(&*database, &mut *fresh).unwrap();
    if !is_new {
        own.extend(&needs(0)[..1], &*database, &mut *fresh).unwrap();
    }
    let made = Arc::new(std::sync::Mutex::new(None));
    let act = {
        let made = Arc::clone(&made);
        move || *made.lock().unwrap() = Some(make_all(&registry(), 1, &*other, &mut *other.connect().unwrap()))
    };
    let mut session = Between { inner: database.connect().unwrap(), left: place, act: Some(Box::new(act)) };
    let ours = make_all(&own, 0, &*database, &mut session);
    let Some(theirs) = made.lock().unwrap().take() else { return false };
    // As a recorder that starts now reads it.
    let (table, columns) = told(&registry().catalogue(&*database, &mut *fresh).unwrap());
    let names: Vec<_> = columns.iter().map(|(name, column, _)| (name.as_str(), column.as_str())).collect();
    assert_eq!(names, ["f", "f0", "f1", "t", "t0", "t1"].map(|name| (name, name)), "{at}");
    assert_eq!(table, "m", "{at}");
    for catalogue in [&ours, &theirs] {
        let (own_table, own_columns) = told(catalogue);
        assert_eq!(own_table, table, "{at}");
        assert!(own_columns.iter().all(|own| columns.contains(own)), "{at}: {own_columns:?}");
    }
    true
}

#[test]
fn whatever_another_recorder_makes_in_between_both_write_the_same_tables_and_columns() {
    for is_new in [true, false] {
        let statements = (0..).take_while(|place| interleave(*place, is_new)).count();
        assert!(statements > 20, "{statements}");
    }
}
