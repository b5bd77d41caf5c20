//! Reads `[limits]`: how large a line may be.

use super::read::read_bytes;
use crate::recorder::line::LineBounds;
use crate::study::place::Errors;
use crate::study::section::Section;
use crate::study::tree::Table;

const KEYS: &[&str] = &["tags", "fields", "name", "series"];

pub(super) fn read_limits(root: &Table, errors: &mut Errors) -> LineBounds {
    let usual = LineBounds::default();
    let section = Section::open(root, "limits", KEYS, errors);
    let count = |key: &str, most: u32, usual: usize, errors: &mut Errors| {
        section.count(key, 1, most, errors).map_or(usual, |count| count as usize)
    };
    let bytes = |key: &str, most: u64, usual: usize, errors: &mut Errors| {
        read_bytes(&section, key, 1, most, errors).and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usual)
    };
    LineBounds {
        tags: count("tags", 10_000, usual.tags, errors),
        fields: count("fields", 100_000, usual.fields, errors),
        name_bytes: bytes("name", 64 << 10, usual.name_bytes, errors),
        series_bytes: bytes("series", 1 << 20, usual.series_bytes, errors),
        ..usual
    }
}

#[cfg(test)]
mod tests {
    use crate::recorder::config::read;
    use crate::recorder::line::LineBounds;

    fn said(limits: &str) -> Result<LineBounds, String> {
        let intake = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
        read(&format!("[limits]\n{limits}\n{intake}"), "c.toml")
            .map(|config| config.limits)
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn what_one_line_may_have_is_read_and_what_is_wrong_is_said() {
        assert_eq!(said("tags = 256\nfields = 4096\nname = \"512B\"\nseries = \"64KiB\""), Ok(LineBounds::default()));
        let bounds = said("tags = 3\nname = 16\nseries = \"1KiB\"").unwrap();
        assert_eq!((bounds.tags, bounds.fields, bounds.name_bytes, bounds.series_bytes), (3, 4_096, 16, 1_024));
        for (limits, says) in [
            ("tags = 0", "c.toml:2: limits.tags is 0; it must be a whole number from 1 to 10,000"),
            ("fields = 100001", "c.toml:2: limits.fields is 100001; it must be"),
            ("name = \"65KiB\"", "c.toml:2: limits.name is \"65KiB\"; it must be a size from"),
            ("series = \"2MiB\"", "c.toml:2: limits.series is \"2MiB\"; it must be a size from"),
            ("tags_max = 5", "c.toml:2: unknown key \"tags_max\" in limits; known: tags, fields, name, series"),
        ] {
            let sentence = said(limits).unwrap_err();
            assert!(sentence.contains(says), "{limits}: {sentence}");
        }
    }
}
