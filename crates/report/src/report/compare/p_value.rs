//! Formats p-values. Main function: [`show_p`].

/// Formats a probability as the source prints it: `57.82 %`; `< 0.01 %` if it would print as zero, `-` if there is none.
pub fn show_p(p: Option<f64>) -> String {
    match p {
        None => "-".to_owned(),
        Some(p) if p < 0.000_05 => "< 0.01 %".to_owned(),
        Some(p) => format!("{:.2} %", 100.0 * p),
    }
}
