//! The OIDs of PostgreSQL's own types. They are part of its protocol and never change.

/// boolean
pub const BOOL: u32 = 16;
/// bytea
pub const BYTEA: u32 = 17;
/// name
pub const NAME: u32 = 19;
/// bigint
pub const INT8: u32 = 20;
/// smallint
pub const INT2: u32 = 21;
/// integer
pub const INT4: u32 = 23;
/// text
pub const TEXT: u32 = 25;
/// real
pub const FLOAT4: u32 = 700;
/// double precision
pub const FLOAT8: u32 = 701;
/// jsonb
pub const JSONB: u32 = 3802;
/// A literal whose type is not decided.
pub const UNKNOWN: u32 = 705;
/// character(n)
pub const BPCHAR: u32 = 1042;
/// character varying(n)
pub const VARCHAR: u32 = 1043;

/// Returns the name of a type as the element of an array, without a length: an array of length-limited texts would truncate them. `None`
/// for types that are not needed.
pub fn name(oid: u32) -> Option<&'static str> {
    match oid {
        BOOL => Some("boolean"),
        BYTEA => Some("bytea"),
        INT8 => Some("bigint"),
        INT2 => Some("smallint"),
        INT4 => Some("integer"),
        TEXT => Some("text"),
        FLOAT4 => Some("real"),
        FLOAT8 => Some("double precision"),
        JSONB => Some("jsonb"),
        VARCHAR => Some("varchar"),
        _ => None,
    }
}
