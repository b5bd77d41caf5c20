//! Student's t and the normal distribution: probabilities and quantiles.
//!
//! Probabilities come from `statrs`; quantiles are refined with them, because its inverse has few correct digits.
//! Invariant: above [`DF_NORMAL`] degrees of freedom t is the normal distribution, where `statrs`' beta function fails.

use std::f64::consts::SQRT_2;

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};
use statrs::function::erf::{erfc, erfc_inv};

/// Degrees of freedom from which t is indistinguishable from the normal distribution: the quantiles differ by less than 1e-6.
pub const DF_NORMAL: f64 = 1e6;

/// Returns the probability that a standard normal value is at most `z`.
pub fn normal_probability(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// Returns the standard normal quantile of a probability in (0, 1); infinite at 0 and 1.
pub fn normal_quantile(probability: f64) -> f64 {
    let mut z = -SQRT_2 * erfc_inv(2.0 * probability);
    if z.is_finite() {
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        z -= (normal_probability(z) - probability) / density;
    }
    z
}

/// Returns the two-sided p of a t statistic: the probability of a value at least as far from 0. Not a number without degrees of
/// freedom.
pub fn two_sided_p(t: f64, df: f64) -> f64 {
    if df >= DF_NORMAL {
        return (2.0 * normal_probability(-t.abs())).min(1.0);
    }
    match StudentsT::new(0.0, 1.0, df) {
        Ok(distribution) => (2.0 * distribution.cdf(-t.abs())).min(1.0),
        Err(_) => f64::NAN,
    }
}

/// Returns the t quantile of a probability in (0, 1) with `df` > 0 degrees of freedom; not a number otherwise.
pub fn t_quantile(probability: f64, df: f64) -> f64 {
    if !(probability > 0.0 && probability < 1.0) {
        return f64::NAN;
    }
    if df >= DF_NORMAL {
        return normal_quantile(probability);
    }
    let Ok(distribution) = StudentsT::new(0.0, 1.0, df) else { return f64::NAN };
    if probability > 0.5 {
        return -t_quantile(1.0 - probability, df);
    }
    let mut t = distribution.inverse_cdf(probability);
    for _ in 0..4 {
        let step = (distribution.cdf(t) - probability) / distribution.pdf(t);
        if !step.is_finite() {
            break;
        }
        t -= step;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.975 quantiles from tables computed to ten digits elsewhere.
    const TABLE: [(f64, f64); 9] = [
        (1.0, 12.706_204_736_4),
        (2.0, 4.302_652_729_7),
        (3.0, 3.182_446_305_3),
        (4.0, 2.776_445_105_2),
        (9.0, 2.262_157_162_9),
        (10.0, 2.228_138_852_0),
        (30.0, 2.042_272_456_3),
        (100.0, 1.983_971_518_5),
        (1000.0, 1.962_339_080_8),
    ];

    #[test]
    fn t_quantiles_agree_with_tables() {
        for (df, expected) in TABLE {
            let quantile = t_quantile(0.975, df);
            assert!((quantile / expected - 1.0).abs() < 1e-9, "df {df}: {quantile} instead of {expected}");
        }
    }

    #[test]
    fn quantile_and_probability_are_inverses_for_every_df_up_to_1000() {
        for df in 1..=1000 {
            for probability in [0.0005, 0.025, 0.4, 0.95, 0.9995] {
                let t = t_quantile(probability, f64::from(df));
                let tail = two_sided_p(t, f64::from(df)) / 2.0;
                let expected = f64::min(probability, 1.0 - probability);
                assert!((tail / expected - 1.0).abs() < 1e-9, "df {df}, p {probability}: {tail}");
            }
        }
    }

    #[test]
    fn quantiles_fall_towards_the_normal_ones_as_df_grows() {
        let quantiles: Vec<f64> = (1..=1000).map(|df| t_quantile(0.975, f64::from(df))).collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] > pair[1]));
        assert!((t_quantile(0.975, 1e9) - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((normal_quantile(0.025) + 1.959_963_984_540_054).abs() < 1e-9);
    }

    #[test]
    fn probabilities_hold_for_many_degrees_of_freedom() {
        for df in [500.0_f64, 1e3, 5e3, 1e4, 5e4, 1e5, 5e5, 9.9e5, 1.1e6, 1e8] {
            for t in [0.1_f64, 1.0, 1.96, 3.0, 6.0] {
                // Abramowitz and Stegun 26.7.8: good to about 1 / df squared.
                let z = t * (1.0 - 1.0 / (4.0 * df)) / (1.0 + t * t / (2.0 * df)).sqrt();
                let (found, expected) = (two_sided_p(t, df), 2.0 * normal_probability(-z));
                assert!(
                    (found / expected - 1.0).abs() < (50.0 / df).max(1e-3),
                    "df {df}, t {t}: {found} instead of {expected}"
                );
            }
        }
        assert_eq!((two_sided_p(0.0, 78.0), two_sided_p(f64::INFINITY, 78.0)), (1.0, 0.0));
        // The first term of the series of the incomplete beta function: x^39 / (39 B(39, 1/2)) with x = 78 / 3678.
        let far = two_sided_p(60.0, 78.0).log10();
        assert!((far + 66.31).abs() < 0.05, "{far}");
    }

    #[test]
    fn impossible_arguments_are_not_numbers() {
        assert!(t_quantile(0.975, 0.0).is_nan());
        assert!(t_quantile(1.0, 5.0).is_nan());
        assert!(two_sided_p(1.0, -1.0).is_nan());
    }
}
