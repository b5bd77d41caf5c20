//! The rows that both sides write. The main type is [`Rows`]; they are those that loadline's own write workload makes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use loadline::record::{Cell, ColumnKind};
use loadline::statement::{Request, Statement, TableColumn};
use loadline::trial::Settings;
use loadline::workload::{Client, Work};

/// Rows in each transaction.
pub const BATCH: u32 = 1000;
/// Seed of the records.
pub const SEED: u64 = 1;
/// The table that is written to.
pub const TABLE: &str = "qos";

/// The rows of a number of transactions.
pub struct Rows {
    /// Table and statement.
    pub work: Work,
    /// Number of transactions.
    pub batches: u32,
}

impl Rows {
    /// As many transactions as asked for.
    pub fn new(batches: u32) -> Self {
        let mut settings = Settings::default();
        settings.record.type_name = "qos".to_owned();
        settings.record.table = TABLE.to_owned();
        settings.record.seed = SEED;
        settings.record.per_measurement = u64::from(BATCH);
        settings.layout.name = "wide".to_owned();
        settings.workload.name = "write".to_owned();
        settings.workload.batch = BATCH;
        Rows { work: Work::new(&settings).expect("the settings are sound"), batches }
    }

    /// The statement that inserts them.
    pub fn insert(&self) -> &Statement {
        &self.work.program().statements[0]
    }

    fn columns(&self) -> &[TableColumn] {
        &self.work.program().tables[0].columns
    }

    /// The transactions, one after another.
    pub fn requests(&self) -> impl Iterator<Item = Request> {
        let mut workload = self.work.workload(Client { number: 0, of: 1, seed: SEED }).expect("as in new");
        (0..self.batches).map(move |_| {
            let mut request = Request::default();
            self.work.next(&mut *workload, &mut request);
            request
        })
    }

    /// What a table that holds them answers to [`CHECK`].
    pub fn check(&self) -> Vec<Option<String>> {
        let width = self.columns().len();
        let place = |name: &str| self.columns().iter().position(|column| column.name == name).expect("qos has it");
        let sums = ["record_id", "ul_volume"].map(|name| {
            let place = place(name);
            self.requests()
                .flat_map(|request| {
                    let rows: Vec<Cell> = request.cells.as_slice().chunks(width).map(|row| row[place]).collect();
                    rows
                })
                .map(|cell| if let Cell::Int(value) = cell { i128::from(value) } else { 0 })
                .sum::<i128>()
                .to_string()
        });
        let [numbers, volume] = sums;
        vec![Some((self.batches * BATCH).to_string()), Some(numbers), Some(volume)]
    }

    /// Writes the file that `rows.h` reads.
    pub fn write(&self, path: &Path) {
        let mut file = BufWriter::new(File::create(path).expect("the temporary directory can be written to"));
        let width = self.columns().len();
        let mut head = Vec::new();
        [width as u32, self.batches, BATCH, 0].iter().for_each(|number| head.extend_from_slice(&number.to_ne_bytes()));
        head.extend(self.columns().iter().map(|column| match column.kind {
            ColumnKind::Int16 => b's',
            ColumnKind::Int32 => b'i',
            ColumnKind::Int64 => b'l',
            ColumnKind::Float64 => b'd',
            other => panic!("qos has no column of {other:?}"),
        }));
        head.resize(head.len().next_multiple_of(8), 0);
        file.write_all(&head).expect("there is room for the rows");
        for request in self.requests() {
            for (place, column) in self.columns().iter().enumerate() {
                for row in request.cells.as_slice().chunks(width) {
                    write_value(&mut file, column.kind, row[place]).expect("there is room for the rows");
                }
            }
        }
        file.flush().expect("there is room for the rows");
    }
}

/// Asks a table what it holds.
pub const CHECK: &str = "SELECT COUNT(*), SUM(record_id), SUM(ul_volume) FROM qos";

fn write_value(file: &mut impl Write, kind: ColumnKind, cell: Cell) -> std::io::Result<()> {
    match (kind, cell) {
        (ColumnKind::Int16, Cell::Int(value)) => file.write_all(&(value as i16).to_ne_bytes()),
        (ColumnKind::Int32, Cell::Int(value)) => file.write_all(&(value as i32).to_ne_bytes()),
        (ColumnKind::Int64, Cell::Int(value)) => file.write_all(&value.to_ne_bytes()),
        (ColumnKind::Float64, Cell::Float(value)) => file.write_all(&value.to_ne_bytes()),
        (kind, cell) => panic!("{cell:?} in a column of {kind:?}"),
    }
}
