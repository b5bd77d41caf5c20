//! Bounds on the size of a line. Main type: [`LineBounds`].

/// The bounds of a line. Lines beyond them are refused at the door, because each name is work for the writer and for the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineBounds {
    /// The most tags.
    pub tags: usize,
    /// The most fields.
    pub fields: usize,
    /// The most bytes of the name of the measurement, of a tag or of a field.
    pub name_bytes: usize,
    /// The most bytes of the measurement and all its tags.
    pub series_bytes: usize,
    /// The largest whole number that can be stored.
    pub whole_max: u64,
}

impl LineBounds {
    /// No bounds, for lines that were accepted before.
    pub const NONE: LineBounds = LineBounds {
        tags: usize::MAX,
        fields: usize::MAX,
        name_bytes: usize::MAX,
        series_bytes: usize::MAX,
        whole_max: u64::MAX,
    };
}

impl Default for LineBounds {
    fn default() -> Self {
        LineBounds { tags: 256, fields: 4_096, name_bytes: 512, series_bytes: 64 << 10, whole_max: i64::MAX as u64 }
    }
}
