//! Outcomes of the search for a load line. Main type: [`Outcome`].

use schemars::JsonSchema;
use serde::Serialize;

use crate::said::{said, with_says};
use crate::units::{show_number, show_seconds};

/// A cliff is reported where the quantile is below this share of the bound and a refuted rate is at most `CLIFF_BESIDE` times as high.
const CLIFF: f64 = 0.5;
const CLIFF_BESIDE: f64 = 1.5;
/// Ratio of the refuted rate to the line above which the line may be anywhere between the two.
const UNDECIDED: f64 = 1.25;

/// The outcome of a search, with its figures. As JSON it is an object with `kind`, figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
#[schemars(transform = with_says)]
pub enum Outcome {
    /// The search is not finished.
    #[error("{}not finished: the next trial is at {}", .seen.as_ref().map_or(String::new(), |seen| format!("{seen}; ")), rate(*next_per_s))]
    NotFinished {
        /// Figures at the line so far, where a line was confirmed.
        seen: Option<Seen>,
        /// The rate of the next trial.
        next_per_s: f64,
    },
    /// The line lies between a confirmed and a refuted rate.
    #[error("found{}", .seen.as_ref().map_or(String::new(), |seen| format!(": {seen}")))]
    Found {
        /// Figures at the line and above it.
        seen: Option<Seen>,
    },
    /// The bound is lost at every rate that was tried.
    #[error(
        "not reached: {} is {} even at {}, and the bound is {}",
        p(*quantile),
        quantile_s.map_or("out of bounds".to_owned(), show_seconds),
        rate(*at_per_s),
        show_seconds(*below_s)
    )]
    NotReached {
        /// Quantile of response time, 0..1.
        quantile: f64,
        /// Its value; null where it is longer than can be measured.
        quantile_s: Option<f64>,
        /// The lowest rate tried.
        at_per_s: f64,
        /// The bound on the quantile.
        below_s: f64,
    },
    /// The client's CPU was used up first.
    #[error(
        "above what this client can drive: {} is still below {} at {}, and above it a load thread used up its CPU; set load.loops, or drive \
         the load from a larger machine",
        p(*quantile),
        show_seconds(*below_s),
        rate(*at_per_s)
    )]
    AboveClient {
        /// Quantile of response time, 0..1.
        quantile: f64,
        /// The highest rate that was driven.
        at_per_s: f64,
        /// The bound on the quantile.
        below_s: f64,
    },
    /// The load could not be sent as planned although the client had idle CPU time.
    #[error(
        "disturbed: {} is still below {} at {}, and at {} the load could not be sent as planned although the load threads had CPU left; \
         find what else takes the CPUs, and run it again",
        p(*quantile),
        show_seconds(*below_s),
        rate(*at_per_s),
        rate(*above_per_s)
    )]
    NotDriven {
        /// Quantile of response time, 0..1.
        quantile: f64,
        /// The highest rate that was driven.
        at_per_s: f64,
        /// The rate that was not driven as planned.
        above_per_s: f64,
        /// The bound on the quantile.
        below_s: f64,
    },
    /// No rate that was tried was high enough to lose the bound.
    #[error(
        "not bounded: {} is still below {} at {} after the trials allowed; set a higher load.rate",
        p(*quantile),
        show_seconds(*below_s),
        rate(*at_per_s)
    )]
    Unbounded {
        /// Quantile of response time, 0..1.
        quantile: f64,
        /// The highest rate tried.
        at_per_s: f64,
        /// The bound on the quantile.
        below_s: f64,
    },
    /// The search ended because of other work on the machine, a hypervisor, or a client that sent late.
    #[error("{}", show_disturbed(.seen.as_ref(), [*by_others, *by_hypervisor, *by_client], *stolen_share_most))]
    Disturbed {
        /// Number of trials disturbed by other work.
        by_others: usize,
        /// Number of trials disturbed by a hypervisor.
        by_hypervisor: usize,
        /// Number of trials whose client sent late.
        by_client: usize,
        /// Share of the CPU time that a hypervisor may take.
        stolen_share_most: f64,
        /// Figures at the line, where there is one.
        seen: Option<Seen>,
    },
    /// Trials were invalid again and again.
    #[error("{}", match seen {
        Some(seen) => format!("not bounded: {seen}; above it {UNUSABLE}"),
        None => format!("no line: {UNUSABLE}"),
    })]
    Unusable {
        /// Figures at the line, where there is one.
        seen: Option<Seen>,
    },
    /// Trials are too short for the quantile.
    #[error(
        "not confirmed: at {} a trial shows ten operations above the bound only after {}, which is more than ten times load.duration; set a \
         longer one",
        rate(*at_per_s),
        show_seconds(*needed_s)
    )]
    TooShort {
        /// The arrival rate.
        at_per_s: f64,
        /// Length that a trial needs at this rate.
        needed_s: f64,
    },
    /// The trials allowed were used up.
    #[error("{}", match seen {
        Some(seen) => format!("not bounded: {seen}; the trials allowed were used up before a higher rate was refuted"),
        None => "not confirmed: the trials allowed were used up before the bound was kept for certain".to_owned(),
    })]
    Unsettled {
        /// Figures at the line, where there is one.
        seen: Option<Seen>,
    },
}

said!(Outcome);

/// Words for trials that were invalid again and again.
pub const UNUSABLE: &str = "trials were invalid again and again";

impl Default for Outcome {
    fn default() -> Self {
        Outcome::Found { seen: None }
    }
}

/// Figures at a line and above it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Seen {
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound on it.
    pub below_s: f64,
    /// The rate of the line.
    pub at_per_s: f64,
    /// The quantile at the line; null where it is not known.
    pub quantile_s: Option<f64>,
    /// Number of trials at the line.
    pub trials: usize,
    /// Measured seconds of these trials together: stalls that are rarer are not in them.
    pub seconds: f64,
    /// Trials at the line that lost the bound by themselves although the database did not fall behind.
    pub stalled: usize,
    /// Trials at the line in which something else took CPU time, or whose client sent late.
    pub disturbed: usize,
    /// Trials between this rate and the refuted one in which something else took CPU time, or whose client sent late.
    pub disturbed_above: usize,
    /// The lowest rate above that was refuted.
    pub refuted: Option<RefutedSeen>,
    /// A lower rate that was refuted; null where there is none.
    pub slow_below_per_s: Option<f64>,
    /// A rate above the refuted one at which trials kept the bound; null where there is none.
    pub kept_again_per_s: Option<f64>,
}

/// Figures at a refuted rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RefutedSeen {
    /// The refuted rate.
    pub at_per_s: f64,
    /// The quantile at that rate; null where it is not known.
    pub quantile_s: Option<f64>,
    /// Number of trials at that rate.
    pub trials: usize,
    /// Trials at that rate in which the database fell behind.
    pub fallen_behind: usize,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let here = self.quantile_s.map_or("unknown".to_owned(), show_seconds);
        let (trials, seconds) = (self.trials, show_seconds(self.seconds));
        write!(f, "{} is {here} over {trials} trials, {seconds} in all", p(self.quantile))?;
        if self.stalled > 0 {
            let stalled = self.stalled;
            write!(
                f,
                " (the bound was lost in {stalled} of them, as where the database stalls now and then; all together keep it)"
            )?;
        }
        if self.disturbed > 0 {
            write!(
                f,
                " (in {} of them something else took CPU time, or loadline sent late, which only makes response times longer: \
                 without it the line may be higher)",
                self.disturbed
            )?;
        }
        if let Some(RefutedSeen { at_per_s, quantile_s, trials, fallen_behind }) = self.refuted {
            let is_beside = at_per_s <= CLIFF_BESIDE * self.at_per_s;
            let is_cliff = is_beside && self.quantile_s.is_some_and(|here_s| here_s < CLIFF * self.below_s);
            write!(f, "{} {} ", if is_cliff { "; a cliff follows: at" } else { "; at" }, rate(at_per_s))?;
            match (fallen_behind, quantile_s.map(show_seconds)) {
                (0, Some(above)) => write!(f, "it is {above} (n = {trials})")?,
                _ => write!(f, "the database falls behind in {fallen_behind} of {trials} trials")?,
            }
            if self.disturbed_above > 0 && at_per_s > UNDECIDED * self.at_per_s {
                write!(
                    f,
                    "; between the two something else took CPU time in {} trials, or loadline sent late, so that the line may be anywhere \
                     between them: run it again on a quiet machine",
                    self.disturbed_above
                )?;
            }
        }
        if let Some(slow) = self.slow_below_per_s {
            write!(f, "; at {} and below the bound is lost too: the database is slower when it is idle", rate(slow))?;
        }
        if let Some(again) = self.kept_again_per_s {
            write!(f, "; at {} trials kept the bound again, so that the curve is not monotone", rate(again))?;
        }
        Ok(())
    }
}

fn rate(rate_per_s: f64) -> String {
    format!("{}/s", show_number(rate_per_s))
}

/// Shows a quantile as `p99.9`.
fn p(quantile: f64) -> String {
    format!("p{}", (quantile * 1e8).round() / 1e6)
}

/// Shows the causes of disturbed trials, and the remedy.
fn show_disturbed(
    seen: Option<&Seen>,
    [by_others, by_hypervisor, by_client]: [usize; 3],
    stolen_share_most: f64,
) -> String {
    let why = if by_client > by_others.max(by_hypervisor) {
        format!(
            "loadline sent operations later than a tenth of the bound in {by_client} trials, which is a part of their response times; give \
             it CPUs of its own (load.cpus, database.cpus), or drive the load from another machine"
        )
    } else if by_others > by_hypervisor {
        format!(
            "other processes kept more than a quarter of a CPU busy in {by_others} trials, while less than half of the machine was idle; stop \
             them, and run it again"
        )
    } else {
        format!(
            "the hypervisor gave more than {} % of the CPU time to other machines in {by_hypervisor} trials; take a machine whose CPUs are \
             its own, or another hour, or permit it with LOADLINE_STOLEN",
            (1000.0 * stolen_share_most).round() / 10.0
        )
    };
    match seen {
        Some(seen) => format!("not bounded: {seen}; what is lost above it cannot be told: {why}"),
        None => format!("disturbed: {why}"),
    }
}
