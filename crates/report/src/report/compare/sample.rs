//! What is known about one alternative in one case: the values of its trials, or a published summary.
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
    /// Where it was measured, for people.
    pub machine: String,
    /// What else was the same, for people.
    pub case: String,
    /// The alternative: a level of the factor, or a run.
    pub variant: String,
    /// What distinguishes the alternatives: a setting, `run`, or empty for summaries.
    pub factor: String,
    /// What was measured.
    pub metric: &'static Metric,
    /// What cases are drawn together: the kind of operation; empty where that is all of them.
    pub operation: String,
    /// The figures.
    pub figures: Figures,
    /// What the other cases of its run say of its noise, where it is compared with another run; none where rounds say more.
    pub noise: Option<CaseError>,
}

/// Figures of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum Figures {
    /// A value per valid trial, in the order of rounds.
    Trials(Vec<TrialValue>),
    /// Mean, standard deviation and number of values, as printed.
    Summary(Printed),
}

impl Sample {
    /// Mean, standard deviation and number of values.
    pub fn summary(&self) -> Summary {
        match &self.figures {
            Figures::Trials(_) => {
                Summary::of(&self.values()).expect("a sample has at least two values; they are made so")
            }
            Figures::Summary(printed) => printed.summary,
        }
    }

    /// The summary with what rounding leaves open: nothing for values of trials.
    pub fn printed(&self) -> Printed {
        match &self.figures {
            Figures::Trials(_) => Printed::exact(self.summary()),
            Figures::Summary(printed) => *printed,
        }
    }

    /// The values of the trials; empty for a summary.
    pub fn values(&self) -> Vec<f64> {
        match &self.figures {
            Figures::Trials(trials) => trials.iter().map(|trial| trial.value).collect(),
            Figures::Summary(_) => Vec::new(),
        }
    }

    /// The sample with trials that are never paired with others, and with the error that its own run's noise gives.
    pub fn without_rounds(mut self, noise: Option<CaseError>) -> Self {
        self.noise = noise;
        if let Figures::Trials(trials) = &mut self.figures {
            trials.iter_mut().for_each(|trial| trial.place = None);
        }
        self
    }

    /// What alternatives have in common: machine, case, factor and metric.
    pub fn question(&self) -> (&str, &str, &str, &'static str) {
        (&self.machine, &self.case, &self.factor, self.metric.name)
    }

    /// Whether another sample is an alternative to this one: all but the variant is the same.
    pub fn is_alternative_to(&self, other: &Sample) -> bool {
        self.question() == other.question()
    }
}
