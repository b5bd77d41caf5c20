//! Small symmetric matrices: solving and inverting by Cholesky's decomposition.
//!
//! Main functions: [`solve`], [`inverse`]. Invariant: rows are scaled by the diagonal first, so that parameters of any
//! magnitude can be combined; a matrix that is singular to the precision of `f64` has no solution.

/// Rows of equal length.
pub type Matrix = Vec<Vec<f64>>;

/// Returns the lower factor of the matrix scaled to a diagonal of 1, and the scales; `None` when it is not positive definite.
fn factor(matrix: &Matrix) -> Option<(Matrix, Vec<f64>)> {
    let size = matrix.len();
    let scales: Vec<f64> = (0..size).map(|index| matrix[index][index].sqrt()).collect();
    if scales.iter().any(|scale| !(*scale > 0.0 && scale.is_finite())) {
        return None;
    }
    let mut lower = vec![vec![0.0; size]; size];
    for row in 0..size {
        for column in 0..=row {
            let scaled = matrix[row][column] / (scales[row] * scales[column]);
            let known: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = scaled - known;
            if row == column {
                if rest < 1e-14 {
                    return None;
                }
                lower[row][row] = rest.sqrt();
            } else {
                lower[row][column] = rest / lower[column][column];
            }
        }
    }
    Some((lower, scales))
}

/// Returns the x with `matrix` x = `right`; `None` when the matrix is not positive definite.
pub fn solve(matrix: &Matrix, right: &[f64]) -> Option<Vec<f64>> {
    let (lower, scales) = factor(matrix)?;
    let size = right.len();
    let mut x: Vec<f64> = right.iter().zip(&scales).map(|(value, scale)| value / scale).collect();
    for row in 0..size {
        let known: f64 = (0..row).map(|k| lower[row][k] * x[k]).sum();
        x[row] = (x[row] - known) / lower[row][row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| lower[k][row] * x[k]).sum();
        x[row] = (x[row] - known) / lower[row][row];
    }
    x.iter_mut().zip(scales).for_each(|(value, scale)| *value /= scale);
    Some(x)
}

/// Returns the inverse; `None` when the matrix is not positive definite. The inverse of an empty matrix is empty.
pub fn inverse(matrix: &Matrix) -> Option<Matrix> {
    let size = matrix.len();
    (0..size)
        .map(|column| {
            let unit: Vec<f64> = (0..size).map(|row| f64::from(u8::from(row == column))).collect();
            solve(matrix, &unit)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_that_differ_by_far_are_solved() {
        let matrix = vec![vec![4e20, 2e5], vec![2e5, 5e-10]];
        let x = solve(&matrix, &[6e20, 5.5e5 - 5e4]).unwrap();
        let back: Vec<f64> = matrix.iter().map(|row| row[0] * x[0] + row[1] * x[1]).collect();
        assert!((back[0] / 6e20 - 1.0).abs() < 1e-12 && (back[1] / 5e5 - 1.0).abs() < 1e-12, "{back:?}");
    }

    #[test]
    fn the_inverse_times_the_matrix_is_the_unit() {
        let matrix = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, 0.2], vec![0.5, 0.2, 2.0]];
        let inverse = inverse(&matrix).unwrap();
        for (row, line) in matrix.iter().enumerate() {
            let product = |column: usize| line.iter().zip(&inverse).map(|(a, b)| a * b[column]).sum::<f64>();
            let is_unit = |column: usize| (product(column) - f64::from(u8::from(row == column))).abs() < 1e-12;
            assert!((0..3).all(is_unit));
        }
    }

    #[test]
    fn singular_matrices_have_no_answer() {
        assert_eq!(solve(&vec![vec![1.0, 1.0], vec![1.0, 1.0]], &[1.0, 1.0]), None);
        assert_eq!(inverse(&vec![vec![0.0]]), None);
        assert_eq!(inverse(&Vec::new()), Some(Vec::new()));
    }
}
