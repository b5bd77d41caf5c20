//! What the recorder takes from a run: the load line of the model that fits it best, and what it expects below that line.
//!
//! Main function: [`model_line`].

use std::path::Path;

use super::Failure;
use super::output::note;
use crate::queueing::fit::{Request, fit};
use crate::queueing::{Target, Timer};
use crate::recorder::admission::ModelLine;
use crate::recorder::config::AdmissionConfig;
use crate::report::analyse::group;
use crate::report::points::curves;
use crate::store::Run;

/// The line of a run of one combination of settings, at several arrival rates.
///
/// # Errors
/// [`Failure::Usage`] when the run cannot be read, or no model gives a line for the quantile and bound.
pub fn model_line(path: &Path, config: &AdmissionConfig) -> Result<ModelLine, Failure> {
    let place = format!("admission.model \"{}\"", path.display());
    let wrong = |what: String| Failure::Usage(format!("{place}: {what}"));
    let run = Run::open(path).map_err(|error| wrong(error.to_string()))?;
    run.notes.iter().for_each(|line| note(&format!("note: {line}")));
    let groups = group(&run.file.study, &run.measurements);
    let mut found = curves(&groups, Timer::Intended, Some(config.quantile), &Default::default());
    let remedy = "name a run whose only factor is load.rate, with load.arrivals = \"poisson\"";
    if found.is_empty() {
        return Err(wrong(format!("it has no valid trial at a rate of arrivals; loadline report says why; {remedy}")));
    }
    if found.len() > 1 {
        return Err(wrong(format!(
            "it has {} combinations of settings besides the arrival rate; {remedy}",
            found.len()
        )));
    }
    let curve = found.remove(0);
    let batch = run.file.study.base.workload.batch;
    let report = fit(&curve.points, &Request::default()).map_err(|error| wrong(format!("{error}; {remedy}")))?;
    let best = report.best.and_then(|best| report.fits.iter().find(|fit| fit.model == best));
    let Some(best) = best else {
        return Err(wrong(format!("{}; measure again, or leave admission.model out", report.verdict)));
    };
    let around = Request::default().around;
    let queue = best.queue(&around).ok_or_else(|| wrong(format!("model {} needs to know its workers", best.model)))?;
    let target = if queue.has_quantiles() { Target::Quantile(config.quantile) } else { Target::Mean };
    let bound_s = config.below.as_secs_f64();
    let limit = queue.limit_per_s(target, bound_s).filter(|limit| *limit > 0.0);
    let Some(limit) = limit else {
        let shown = crate::units::show_seconds(bound_s);
        return Err(wrong(format!(
            "model {} says that no arrival rate stays below {shown}; raise admission.below",
            best.model
        )));
    };
    let batch_rows = batch.max(1);
    let rows_per_operation = f64::from(batch_rows);
    Ok(ModelLine {
        batch_rows,
        rows_per_s: limit * rows_per_operation,
        mean_s: Box::new(move |rows_per_s| queue.mean_s(rows_per_s / rows_per_operation).unwrap_or(f64::INFINITY)),
    })
}
