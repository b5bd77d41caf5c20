//! `loadline predict`: the figures a model predicts at an arrival rate, and the highest arrival rate for a bound.
//!
//! Main function: [`run`]. Invariant: a figure that a model cannot give is null in JSON and `-` on the terminal.

use serde::Serialize;

use super::fit::{read_quantile, read_timer, unknown_model};
use super::output::{print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::{PredictArguments, SpecialParameters};
use crate::fault::fault;
use crate::queueing::family::Needs;
use crate::queueing::repairman::Repairman;
use crate::queueing::usl::Usl;
use crate::queueing::{Family, Queue, Surroundings, Target, Timer};
use crate::said::said;
use crate::units::{parse_duration, show_number, show_seconds};

/// The prediction of a model; every time in seconds, every rate per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Prediction {
    model: String,
    stable: bool,
    utilisation: Option<f64>,
    mean_s: Option<f64>,
    p50_s: Option<f64>,
    p90_s: Option<f64>,
    p99_s: Option<f64>,
    /// The requested quantile.
    quantile_s: Option<f64>,
    /// The highest arrival rate at which the requested quantile, or the mean, keeps the bound.
    arrival_rate_limit_per_s: Option<f64>,
    /// The highest arrival rate for the quantile, from the mean alone by Markov's inequality: it holds for every distribution.
    arrival_rate_limit_by_mean_alone_per_s: Option<f64>,
    /// The largest number of clients of a closed loop that keeps the bound.
    clients_limit: Option<u32>,
    throughput_per_s: Option<f64>,
    capacity_per_s: Option<f64>,
    notes: Vec<PredictNote>,
}

/// A note on a prediction for its reader. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
enum PredictNote {
    #[error("{model} has no quantiles; only what follows from the mean is said")]
    NoQuantiles { model: &'static str },
    #[error("the bound is not reached: the {target} is above it even without load")]
    NotReached { target: String },
    #[error("throughput lies between {}/s and {}/s", show_number(*low_per_s), show_number(*high_per_s))]
    Between { low_per_s: f64, high_per_s: f64 },
    #[error("above {} clients they queue", show_number(*clients))]
    QueueAbove { clients: f64 },
    #[error("throughput is highest with {} clients", show_number(*clients))]
    HighestWith { clients: f64 },
}

said!(PredictNote);

/// Predicts the figures of a model.
///
/// # Errors
/// [`Failure::Usage`] if an option is missing or out of range.
pub fn run(arguments: &PredictArguments, is_json: bool) -> Result<Status, Failure> {
    positive("--mu", Some(arguments.mu))?;
    let quantile = arguments.quantile.map(read_quantile).transpose()?;
    let bound_s = arguments.below.as_deref().map(|text| seconds("--below", text)).transpose()?;
    let prediction = match arguments.model.as_str() {
        "usl" => predict_usl(arguments)?,
        "repairman" => predict_closed(arguments, quantile, bound_s)?,
        name => predict_open(name, arguments, quantile, bound_s)?,
    };
    if is_json {
        print_json(&prediction)?;
    } else {
        print(&text_of(&prediction, quantile, bound_s))?;
    }
    Ok(Status::Valid)
}

fn predict_open(
    name: &str,
    arguments: &PredictArguments,
    quantile: Option<f64>,
    bound_s: Option<f64>,
) -> Result<Prediction, Failure> {
    let family = Family::find(name).ok_or_else(|| Failure::refused(unknown_model(name)))?;
    let Some(rate) = arguments.arrival_rate.filter(|rate| *rate >= 0.0 && rate.is_finite()) else {
        return Err(Failure::refused(fault!(
            "--arrival-rate is missing or below 0"; "write arrivals per second, as in 800"
        )));
    };
    let queue = queue(family, arguments)?;
    let target = quantile.map_or(Target::Mean, Target::Quantile);
    let mut notes = Vec::new();
    if !queue.has_quantiles() {
        notes.push(PredictNote::NoQuantiles { model: family.title });
    }
    let can_limit = queue.has_quantiles() || quantile.is_none();
    let limit = bound_s.filter(|_| can_limit).and_then(|bound_s| queue.limit_per_s(target, bound_s));
    if bound_s.is_some() && can_limit && limit.is_none() {
        notes.push(PredictNote::NotReached { target: target.to_string() });
    }
    let by_mean =
        quantile.zip(bound_s).and_then(|(quantile, bound_s)| queue.limit_by_mean_alone_per_s(quantile, bound_s));
    let at = |quantile: f64| queue.quantile_s(rate, quantile);
    Ok(Prediction {
        model: family.name.to_owned(),
        stable: queue.is_stable(rate),
        utilisation: Some(queue.utilisation(rate)),
        mean_s: queue.mean_s(rate),
        p50_s: at(0.5),
        p90_s: at(0.9),
        p99_s: at(0.99),
        quantile_s: quantile.and_then(at),
        arrival_rate_limit_per_s: limit,
        arrival_rate_limit_by_mean_alone_per_s: by_mean,
        clients_limit: None,
        throughput_per_s: Some(queue.throughput_per_s(rate)),
        capacity_per_s: Some(queue.capacity_per_s()),
        notes,
    })
}

/// Returns the model with the parameters of the command line, in the family's order.
fn queue(family: &Family, arguments: &PredictArguments) -> Result<Box<dyn Queue>, Failure> {
    let special = &arguments.special;
    let mut values = Vec::new();
    for parameter in family.parameters {
        values.push(match parameter.name {
            "mu_per_s" => arguments.mu,
            "x_s" => 1.0 / arguments.mu,
            "delta_s" => seconds("--delta", &arguments.delta)?,
            "p" => not_negative("--p", special.p)?,
            "a" => positive("--a", special.a)?,
            "cv2" => not_negative("--cv2", special.cv2)?,
            "stall_per_s" => 1.0 / positive("--stall-every", time(special, "--stall-every")?)?,
            _ => 1.0 / positive("--stall", time(special, "--stall")?)?,
        });
    }
    let timer = read_timer(&special.timer)?;
    if timer == Timer::Sent || family.needs == Needs::Workers {
        count("--workers", special.workers)?;
    }
    if family.needs == Needs::Servers {
        count("--servers", special.servers)?;
    }
    let around = Surroundings { workers: special.workers, servers: special.servers, timer };
    let refusal = || {
        Failure::refused(Refusal::about("--timer", format!("times from sending are not derived for {}", family.name)))
    };
    (family.build)(&values, &around).ok_or_else(refusal)
}

/// Predicts a closed loop: response time R and throughput X for a number of clients.
fn predict_closed(
    arguments: &PredictArguments,
    quantile: Option<f64>,
    bound_s: Option<f64>,
) -> Result<Prediction, Failure> {
    let special = &arguments.special;
    let clients = clients(special)?;
    let think_s = special.think.as_deref().map_or(Ok(0.0), |text| seconds("--think", text))?;
    let repairman = Repairman { clients, think_s, service_s: 1.0 / arguments.mu };
    let state = repairman.state();
    let (low_per_s, high_per_s) = repairman.bounds_per_s();
    let bounds = PredictNote::Between { low_per_s, high_per_s };
    let knee = PredictNote::QueueAbove { clients: repairman.knee() };
    Ok(Prediction {
        model: "repairman".to_owned(),
        stable: true,
        utilisation: Some(state.throughput_per_s / arguments.mu),
        mean_s: Some(state.response_s),
        p50_s: repairman.quantile_s(0.5),
        p90_s: repairman.quantile_s(0.9),
        p99_s: repairman.quantile_s(0.99),
        quantile_s: quantile.and_then(|quantile| repairman.quantile_s(quantile)),
        clients_limit: bound_s.filter(|_| quantile.is_none()).and_then(|bound_s| repairman.clients_limit(bound_s)),
        throughput_per_s: Some(state.throughput_per_s),
        capacity_per_s: Some(arguments.mu),
        notes: vec![bounds, knee],
        ..Prediction::default()
    })
}

fn predict_usl(arguments: &PredictArguments) -> Result<Prediction, Failure> {
    let special = &arguments.special;
    let count = f64::from(clients(special)?);
    let (alpha, beta) = (not_negative("--alpha", special.alpha)?, not_negative("--beta", special.beta)?);
    let usl = Usl { gamma_per_s: arguments.mu, alpha, beta };
    let peak = usl.clients_at_peak();
    let capacity_per_s = peak.map(|peak| usl.throughput_per_s(peak));
    let throughput_per_s = usl.throughput_per_s(count);
    Ok(Prediction {
        model: "usl".to_owned(),
        stable: true,
        utilisation: capacity_per_s.map(|capacity| throughput_per_s / capacity),
        mean_s: Some(usl.response_s(count)),
        throughput_per_s: Some(throughput_per_s),
        capacity_per_s,
        notes: peak.map(|clients| PredictNote::HighestWith { clients }).into_iter().collect(),
        ..Prediction::default()
    })
}

fn clients(special: &SpecialParameters) -> Result<u32, Failure> {
    count("--clients", special.clients)
}

fn time(special: &SpecialParameters, option: &str) -> Result<Option<f64>, Failure> {
    let text = if option == "--stall" { &special.stall } else { &special.stall_every };
    text.as_deref().map(|text| seconds(option, text)).transpose()
}

fn seconds(option: &str, text: &str) -> Result<f64, Failure> {
    let duration = parse_duration(text).map_err(|what| Failure::refused(Refusal::about(option, what)))?;
    Ok(duration.as_secs_f64())
}

/// Range of the figures that a model accepts; beyond it sums overflow.
const FIGURES: std::ops::RangeInclusive<f64> = 1e-9..=1e12;

fn positive(option: &str, value: Option<f64>) -> Result<f64, Failure> {
    let refusal = || Failure::refused(fault!("{option} is missing or not above 0"; "this model needs it"));
    let value = value.filter(|value| *value > 0.0 && value.is_finite()).ok_or_else(refusal)?;
    if !FIGURES.contains(&value) {
        let (least, most) = (FIGURES.start(), FIGURES.end());
        let remedy = format!("write a number from {least:e} to {most:e}, or take another unit");
        return Err(Failure::refused(fault!("{option} is {value:e}"; "{remedy}")));
    }
    Ok(value)
}

/// Checks a number of clients, workers or servers, which is bounded because figures are summed over all states.
fn count(option: &str, value: Option<u32>) -> Result<u32, Failure> {
    const MOST: u32 = 1_000_000;
    let missing = || Failure::refused(fault!("{option} is missing or not above 0"; "this model needs it"));
    let value = value.filter(|value| *value > 0).ok_or_else(missing)?;
    if value > MOST {
        return Err(Failure::refused(fault!("{option} is {value}"; "write a number from 1 to 1,000,000")));
    }
    Ok(value)
}

fn not_negative(option: &str, value: Option<f64>) -> Result<f64, Failure> {
    let refusal = || Failure::refused(fault!("{option} is missing or below 0"; "this model needs it"));
    value.filter(|value| *value >= 0.0 && value.is_finite()).ok_or_else(refusal)
}

fn text_of(prediction: &Prediction, quantile: Option<f64>, bound_s: Option<f64>) -> String {
    let mut out = String::new();
    let mut push = |name: &str, value: String| out.push_str(&format!("{name:<14} {value}\n"));
    let time = |time_s: Option<f64>| time_s.map_or("-".to_owned(), show_seconds);
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{}/s", show_number(rate)));
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    push("model", prediction.model.clone());
    push("stable", if prediction.stable { "yes" } else { "no: response time grows without end" }.to_owned());
    push("utilisation", prediction.utilisation.map_or("-".to_owned(), percent));
    push("capacity", rate(prediction.capacity_per_s));
    push("throughput", rate(prediction.throughput_per_s));
    push("mean", time(prediction.mean_s));
    for (name, value) in [("p50", prediction.p50_s), ("p90", prediction.p90_s), ("p99", prediction.p99_s)] {
        push(name, time(value));
    }
    let figure = quantile.map_or(Target::Mean, Target::Quantile).to_string();
    if quantile.is_some_and(|quantile| ![0.5, 0.9, 0.99].contains(&quantile)) {
        push(&figure, time(prediction.quantile_s));
    }
    if let Some(bound_s) = bound_s {
        let bound = show_seconds(bound_s);
        let limit = match (prediction.clients_limit, prediction.arrival_rate_limit_per_s) {
            (Some(clients), _) => format!("{clients} clients keep the {figure} at or below {bound}"),
            (None, Some(limit)) => {
                format!("{} is the highest arrival rate that keeps the {figure} at or below {bound}", rate(Some(limit)))
            }
            (None, None) => format!("- (the model names none that keeps the {figure} at or below {bound})"),
        };
        push("limit", limit);
        if prediction.arrival_rate_limit_by_mean_alone_per_s.is_some() {
            let limit = rate(prediction.arrival_rate_limit_by_mean_alone_per_s);
            push("", format!("{limit} keeps it whatever the distribution (Markov's inequality)"));
        }
    }
    prediction.notes.iter().for_each(|note| push("note", note.to_string()));
    out
}
