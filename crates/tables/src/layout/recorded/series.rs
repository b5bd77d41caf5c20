//! Hashes that represent texts of any length in keys. Main function: [`hash_hex`].

use ring::digest::{Context, SHA256};

/// Returns the first 32 hexadecimal digits of the SHA-256 of texts, each with its length, which represent texts of any length in keys.
pub fn hash_hex(parts: &[&str]) -> String {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    context.finish().as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_each_part_counts() {
        assert_eq!(
            hash_hex(&[]),
            "e3b0c44298fc1c149afbf4c8996fb924",
            "SHA-256 of nothing, as in FIPS 180-4's examples"
        );
        assert_ne!(hash_hex(&["ab", "c"]), hash_hex(&["a", "bc"]));
        assert_eq!(hash_hex(&["ab", "c"]).len(), 32);
    }
}
