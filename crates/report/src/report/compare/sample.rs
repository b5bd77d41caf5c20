//! The data on one alternative in one case: the values of its trials, or a published summary.
//!
//! Main type: [`Sample`]. Invariant: a sample has at least two values, or a summary of at least two.

use crate::metric::Metric;
use crate::statistics::TrialValue;
use crate::statistics::noise::CaseError;
use crate::statistics::rounding::Printed;
use crate::statistics::t_test::Summary;

/// One alternative in one case on one machine.
#[derive(Clone)]
pub struct Sample {
    /// The machine or run of the measurement, for people.
    pub machine: String,
    /// The case: what the alternatives have in common, for people.
    pub case: String,
    /// The alternative: a level of the factor, or a run.
    pub variant: String,
    /// The setting in which the alternatives differ, `run`, or empty for summaries.
    pub factor: String,
    /// The metric that is compared.
    pub metric: &'static Metric,
    /// The kind of operation, by which cases are drawn together; empty for all kinds together.
    pub operation: String,
    /// The figures.
    pub figures: Figures,
    /// The error by the noise of its own run, if it is compared with another run; `None` if rounds give a better one.
    pub noise: Option<CaseError>,
}

/// Figures of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Figures {
    /// One value per valid trial, in the order of rounds.
    Trials(Vec<TrialValue>),
    /// The printed mean, standard deviation and number of values.
    Summary(Printed),
}

impl Sample {
    /// Returns the mean, standard deviation and number of values.
    pub fn summary(&self) -> Summary {
        match &self.figures {
            Figures::Trials(_) => {
                Summary::of(&self.values()).expect("a sample has at least two values; they are made so")
            }
            Figures::Summary(printed) => printed.summary,
        }
    }

    /// Returns the summary with the uncertainty from rounding, which is zero for values of trials.
    pub fn printed(&self) -> Printed {
        match &self.figures {
            Figures::Trials(_) => Printed::exact(self.summary()),
            Figures::Summary(printed) => *printed,
        }
    }

    /// Returns the values of the trials; empty for a summary.
    pub fn values(&self) -> Vec<f64> {
        match &self.figures {
            Figures::Trials(trials) => trials.iter().map(|trial| trial.value).collect(),
            Figures::Summary(_) => Vec::new(),
        }
    }

    /// Returns the sample with trials that are never paired with others, and with the error by the noise of its own run.
    pub fn without_rounds(mut self, noise: Option<CaseError>) -> Self {
        self.noise = noise;
        if let Figures::Trials(trials) = &mut self.figures {
            trials.iter_mut().for_each(|trial| trial.place = None);
        }
        self
    }

    /// Returns what alternatives have in common: machine, case, factor and metric.
    pub fn question(&self) -> (&str, &str, &str, &'static str) {
        (&self.machine, &self.case, &self.factor, self.metric.name)
    }

    /// Returns whether another sample is an alternative to this one: everything except the variant is the same.
    pub fn is_alternative_to(&self, other: &Sample) -> bool {
        self.question() == other.question()
    }
}
