//! Reads `[limits]`: the bounds of a line.

use crate::recorder::line::LineBounds;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

/// `[limits]`
pub static LIMITS: Part = Part {
    name: "limits",
    help: "Limits of one line. A line beyond a limit is refused with status 400, its place and the setting.",
    settings: &[
        Setting::new("tags", Kind::Whole(1, 10_000), Absent::Whole(256), "Tags."),
        Setting::new("fields", Kind::Whole(1, 100_000), Absent::Whole(4_096), "Fields."),
        Setting::new("name", Kind::Bytes(1, 64 << 10), Absent::Text("512B"), "Bytes of a name."),
        Setting::new(
            "series",
            Kind::Bytes(1, 1 << 20),
            Absent::Text("64KiB"),
            "Bytes of the measurement with its tags.",
        ),
    ],
};

pub(super) fn read_limits(root: &Table, errors: &mut Errors) -> LineBounds {
    let section = Section::open(root, &LIMITS, errors);
    LineBounds {
        tags: section.read("tags", errors),
        fields: section.read("fields", errors),
        name_bytes: section.read("name", errors),
        series_bytes: section.read("series", errors),
        ..LineBounds::default()
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
