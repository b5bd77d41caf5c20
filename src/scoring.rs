//! Scoring of alternatives.
