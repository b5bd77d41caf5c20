//! The database's plans of a study's queries, and the text and the plan of its questions: `workload.explain`. Function: [`begin`].

use std::collections::BTreeMap;

use anyhow::Context;

use super::instrument::{Beginning, Ending, Instrument};
use crate::database::{DatabaseError, dialect};
use crate::measurement::Measurement;
use crate::operation::Operation;
use crate::statement::Request;

/// The plans by kind of operation, as lines.
struct Plans(BTreeMap<String, Vec<String>>);

/// Requests the plans before the load begins, over a new connection.
pub(super) fn begin(beginning: &Beginning<'_>) -> anyhow::Result<Option<Box<dyn Instrument>>> {
    if !beginning.settings.workload.explain {
        return Ok(None);
    }
    Ok(Some(Box::new(Plans(plans(beginning).context("workload.explain")?))))
}

impl Instrument for Plans {
    fn tell(self: Box<Self>, _: &Ending<'_>, measurement: &mut Measurement) -> anyhow::Result<()> {
        measurement.plans = self.0;
        Ok(())
    }
}

fn plans(beginning: &Beginning<'_>) -> Result<BTreeMap<String, Vec<String>>, DatabaseError> {
    let Beginning { settings, work, target, .. } = beginning;
    let mut plans = BTreeMap::new();
    let Some(database) = target.sql() else { return Ok(plans) };
    let mut session = database.connect()?;
    let dialect = database.dialect();
    let names = settings.workload.kind_names();
    let queries = (0..settings.workload.queries.len() as u16).map(|query| Operation::Query { query });
    let questions = 0..settings.workload.questions.len() as u16;
    for operation in queries.chain(questions.map(|question| Operation::Ask { question, draw: 0 })) {
        let mut request = Request::default();
        work.bind(&operation, &mut request);
        let mut lines = Vec::new();
        for step in &request.steps {
            let Some(statement) = work.program().statements.get(usize::from(step.statement)) else { continue };
            let first = step.first_cell as usize;
            let Some(text) = dialect::query_with_values(dialect, statement, &request.cells, first) else { continue };
            let rows = session.query(&dialect.explain(&text))?;
            lines.extend(rows.iter().map(|row| dialect.plan_line(row)));
            if matches!(operation, Operation::Ask { .. }) {
                lines.push(text);
            }
        }
        plans.insert(names.name(operation.kind()), lines);
    }
    Ok(plans)
}
