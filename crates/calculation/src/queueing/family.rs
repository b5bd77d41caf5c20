//! The registry of models: their names, their parameters, and how parameters become a model of an open system.
//!
//! Main type: [`Family`]. Invariant: every family that can be fitted says with which parameters a fit may begin.

use super::flush::Flush;
use super::load_dependent::LoadDependent;
use super::mg1::{Md1, Mg1, Sharing};
use super::mm1::{Mm1, Mm1Scaled, Mm1Workers};
use super::mmc::Mmc;
use super::queue::{Queue, Timer};

/// What is known about a system without fitting.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Surroundings {
    /// Number of workers in front of the system.
    pub workers: Option<u32>,
    /// Number of servers c, for M/M/c.
    pub servers: Option<u32>,
    /// The event at which times begin.
    pub timer: Timer,
}

/// A parameter of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Name, with its unit last.
    pub name: &'static str,
    /// Lowest allowed value.
    pub low: f64,
    /// Highest allowed value.
    pub high: f64,
    /// Whether the parameter is above 0 and varies over magnitudes, so that its logarithm is fitted.
    pub is_logarithmic: bool,
}

const MU: Parameter = Parameter { name: "mu_per_s", low: 1e-12, high: 1e15, is_logarithmic: true };
const DELTA: Parameter = Parameter { name: "delta_s", low: 0.0, high: 1e12, is_logarithmic: false };
const SERVICE: Parameter = Parameter { name: "x_s", low: 1e-15, high: 1e12, is_logarithmic: true };
const GROWTH: Parameter = Parameter { name: "p", low: 0.0, high: 1.0, is_logarithmic: false };
const CV2: Parameter = Parameter { name: "cv2", low: 0.0, high: 1e6, is_logarithmic: false };
const SCALE: Parameter = Parameter { name: "a", low: 1e-9, high: 1e9, is_logarithmic: true };
const STALL: Parameter = Parameter { name: "stall_per_s", low: 0.0, high: 1e12, is_logarithmic: false };
const RECOVERY: Parameter = Parameter { name: "recovery_per_s", low: 1e-12, high: 1e12, is_logarithmic: true };

/// A kind of model of an open system.
#[derive(Debug)]
pub struct Family {
    /// Name as on the command line and in JSON.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Its parameters; the constant delay, if any, is the last.
    pub parameters: &'static [Parameter],
    /// Whether `auto` fits the family.
    pub is_candidate: bool,
    /// Whether the family needs to know the workers, or the servers.
    pub needs: Needs,
    /// The reason why measured figures cannot identify its parameters; `None` when they can.
    pub not_fitted: Option<&'static str>,
    /// Builds the model with given parameters; `None` when the surroundings do not suffice.
    pub build: Build,
    /// Returns the shapes with which a fit may begin: all parameters but the constant delay, from the highest arrival rate and the
    /// lowest time seen.
    pub shapes: fn(f64, f64, &Surroundings) -> Vec<Vec<f64>>,
}

/// A function that turns parameters, in a family's order, into a model.
pub type Build = fn(&[f64], &Surroundings) -> Option<Box<dyn Queue>>;

/// The knowledge that a family needs besides its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing, unless times begin at sending: then the number of workers.
    Nothing,
    /// The number of servers, which a fit varies.
    Servers,
    /// The number of workers.
    Workers,
    /// Nothing, but times from sending cannot be derived for this family.
    TimesFromIntended,
}

/// All models of open systems.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "mm1",
        title: "M/M/1 + delay",
        parameters: &[MU, DELTA],
        is_candidate: true,
        needs: Needs::Nothing,
        not_fitted: None,
        build: |values, around| {
            let (mu_per_s, delta_s) = (values[0], values[1]);
            match around.timer {
                Timer::Intended => Some(Box::new(Mm1 { mu_per_s, delta_s })),
                Timer::Sent => Some(Box::new(Mm1Workers { mu_per_s, delta_s, workers: around.workers? })),
            }
        },
        shapes: |rate, _, _| capacities(rate).map(|mu| vec![mu]).collect(),
    },
    Family {
        name: "md1",
        title: "M/D/1 + delay",
        parameters: &[MU, DELTA],
        is_candidate: true,
        needs: Needs::TimesFromIntended,
        not_fitted: None,
        build: |values, around| only_intended(around, Md1 { mu_per_s: values[0], delta_s: values[1] }),
        shapes: |rate, _, _| capacities(rate).map(|mu| vec![mu]).collect(),
    },
    Family {
        name: "mg1",
        title: "M/G/1 + delay",
        parameters: &[MU, CV2, DELTA],
        is_candidate: true,
        needs: Needs::TimesFromIntended,
        not_fitted: None,
        build: |values, around| only_intended(around, Mg1 { mu_per_s: values[0], cv2: values[1], delta_s: values[2] }),
        shapes: |rate, _, _| {
            capacities(rate).flat_map(|mu| [0.0, 0.5, 1.0, 4.0, 20.0, 200.0].map(|cv2| vec![mu, cv2])).collect()
        },
    },
    Family {
        name: "mm1-scaled",
        title: "M/M/1 scaled + delay",
        parameters: &[MU, SCALE, DELTA],
        is_candidate: true,
        needs: Needs::TimesFromIntended,
        not_fitted: None,
        build: |values, around| {
            only_intended(around, Mm1Scaled { mu_per_s: values[0], scale: values[1], delta_s: values[2] })
        },
        shapes: |rate, _, _| {
            capacities(rate).flat_map(|mu| [0.1, 0.5, 1.0, 3.0, 10.0, 100.0].map(|scale| vec![mu, scale])).collect()
        },
    },
    Family {
        name: "mmc",
        title: "M/M/c + delay",
        parameters: &[MU, DELTA],
        is_candidate: true,
        needs: Needs::Servers,
        not_fitted: None,
        build: build_mmc,
        shapes: |rate, _, around| {
            let servers = f64::from(around.servers.unwrap_or(1));
            capacities(rate).map(|capacity| vec![capacity / servers]).collect()
        },
    },
    Family {
        name: "load-dependent",
        title: "load-dependent server",
        parameters: &[SERVICE, GROWTH, DELTA],
        is_candidate: true,
        needs: Needs::Workers,
        not_fitted: None,
        build: |values, around| build_load_dependent(values, around, false),
        shapes: |rate, lowest_s, _| load_dependent_shapes(rate, lowest_s),
    },
    Family {
        name: "load-dependent-parallel",
        title: "load-dependent servers in parallel",
        parameters: &[SERVICE, GROWTH, DELTA],
        is_candidate: true,
        needs: Needs::Workers,
        not_fitted: None,
        build: |values, around| build_load_dependent(values, around, true),
        shapes: |rate, lowest_s, _| load_dependent_shapes(rate, lowest_s),
    },
    Family {
        name: "ps",
        title: "processor sharing + delay",
        parameters: &[MU, DELTA],
        is_candidate: false,
        needs: Needs::TimesFromIntended,
        not_fitted: None,
        build: |values, around| only_intended(around, Sharing { mu_per_s: values[0], delta_s: values[1] }),
        shapes: |rate, _, _| capacities(rate).map(|mu| vec![mu]).collect(),
    },
    Family {
        name: "mm1-flush",
        title: "M/M/1 that stalls + delay",
        parameters: &[MU, STALL, RECOVERY, DELTA],
        is_candidate: false,
        needs: Needs::TimesFromIntended,
        not_fitted: Some(
            "times against arrival rates identify only the capacity mu beta / (alpha + beta) and the scale \
             a = 1 + alpha mu / (alpha + beta)² of a server that stalls; fit mm1-scaled, which gives both",
        ),
        build: |values, around| {
            let (mu_per_s, stall_per_s, recovery_per_s, delta_s) = (values[0], values[1], values[2], values[3]);
            only_intended(around, Flush { mu_per_s, delta_s, stall_per_s, recovery_per_s })
        },
        shapes: |_, _, _| Vec::new(),
    },
];

impl Family {
    /// Returns the family with a name, with `-` or `_` between its words.
    pub fn find(name: &str) -> Option<&'static Family> {
        let name = name.replace('_', "-");
        FAMILIES.iter().find(|family| family.name == name)
    }
}

fn only_intended(around: &Surroundings, queue: impl Queue + 'static) -> Option<Box<dyn Queue>> {
    match around.timer {
        Timer::Intended => Some(Box::new(queue)),
        Timer::Sent => None,
    }
}

/// Behind workers, M/M/c is a load-dependent server with p = 0 that serves c at a time.
fn build_mmc(values: &[f64], around: &Surroundings) -> Option<Box<dyn Queue>> {
    let (mu_per_s, delta_s, servers) = (values[0], values[1], around.servers?);
    if around.timer == Timer::Intended {
        return Some(Box::new(Mmc { mu_per_s, servers, delta_s }));
    }
    let workers = around.workers?;
    let parallel = servers.min(workers);
    let (service_s, timer) = (1.0 / mu_per_s, around.timer);
    Some(Box::new(LoadDependent { service_s, growth: 0.0, workers, parallel, delta_s, timer }))
}

fn build_load_dependent(values: &[f64], around: &Surroundings, is_parallel: bool) -> Option<Box<dyn Queue>> {
    let workers = around.workers?;
    let parallel = if is_parallel { workers } else { 1 };
    let (service_s, growth, delta_s, timer) = (values[0], values[1], values[2], around.timer);
    Some(Box::new(LoadDependent { service_s, growth, workers, parallel, delta_s, timer }))
}

/// Returns capacities above the highest arrival rate seen, from slightly above it to far above it.
fn capacities(rate_max_per_s: f64) -> impl Iterator<Item = f64> {
    [0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 100.0]
        .into_iter()
        .map(move |above| rate_max_per_s * (1.0 + above))
}

fn load_dependent_shapes(rate_max_per_s: f64, lowest_s: f64) -> Vec<Vec<f64>> {
    let services = [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95].map(|share| share * lowest_s);
    let from_rate = [0.5, 0.8, 0.95].map(|utilisation| utilisation / rate_max_per_s);
    let growths = [0.0, 0.002, 0.006, 0.02, 0.06, 0.2];
    services.into_iter().chain(from_rate).flat_map(|service| growths.map(|growth| vec![service, growth])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_either_dash() {
        assert_eq!(Family::find("mm1_scaled").map(|family| family.name), Some("mm1-scaled"));
        assert!(Family::find("mm2").is_none());
    }

    #[test]
    fn every_family_has_the_delay_last_and_shapes_for_the_rest() {
        let around = Surroundings { workers: Some(8), servers: Some(2), timer: Timer::Intended };
        for family in FAMILIES {
            assert_eq!(family.parameters.last(), Some(&DELTA), "{}", family.name);
            let shapes = (family.shapes)(100.0, 0.001, &around);
            assert_eq!(shapes.is_empty(), family.not_fitted.is_some(), "{}", family.name);
            for mut values in shapes {
                values.push(0.25);
                assert_eq!(values.len(), family.parameters.len(), "{}", family.name);
                let queue = (family.build)(&values, &around).unwrap();
                assert_eq!(queue.delay_s(), 0.25, "{}", family.name);
            }
        }
    }

    #[test]
    fn times_from_sending_need_the_workers() {
        let around = Surroundings { timer: Timer::Sent, ..Surroundings::default() };
        for family in FAMILIES {
            let values = vec![0.5; family.parameters.len()];
            assert!((family.build)(&values, &around).is_none(), "{}", family.name);
        }
    }
}
