//! MessagePack, as far as answers to queries are written in it. Main function: [`token`].
//!
//! Invariant: the length of a text is bounded before it is waited for, and a list or map is only its number of members.

use crate::database::session::ANSWER_BYTES_MAX;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    /// Nothing.
    Nil,
    /// Whether something is true.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text, or bytes.
    Text(&'a [u8]),
    /// The beginning of a list of this many values.
    List(u32),
    /// The beginning of a map of this many names, each with its value.
    Map(u32),
}

/// Reads the token with which the bytes begin, and returns it with its length. Where they are too few, the number that it has at least.
///
/// # Errors
/// A sentence: there is no such token, or it is too long.
pub(super) fn token(bytes: &[u8]) -> Result<Result<(Token<'_>, usize), usize>, String> {
    let Some(first) = bytes.first() else { return Ok(Err(1)) };
    // The number behind the first byte: a value, a length, or a number of members.
    let width = match first {
        0xc4 | 0xcc | 0xd0 | 0xd9 => 1,
        0xc5 | 0xcd | 0xd1 | 0xda | 0xdc | 0xde => 2,
        0xc6 | 0xca | 0xce | 0xd2 | 0xdb | 0xdd | 0xdf => 4,
        0xcb | 0xcf | 0xd3 => 8,
        _ => 0,
    };
    let Some(own) = bytes.get(1..1 + width) else { return Ok(Err(1 + width)) };
    let number = own.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let from = 1 + width;
    let token = match first {
        0x00..=0x7f => Token::Int(i64::from(*first)),
        0xe0..=0xff => Token::Int(i64::from(*first as i8)),
        0x80..=0x8f => Token::Map(u32::from(first & 15)),
        0x90..=0x9f => Token::List(u32::from(first & 15)),
        0xa0..=0xbf => return text(bytes, from, usize::from(first & 31)),
        0xc4..=0xc6 | 0xd9..=0xdb => return text(bytes, from, usize::try_from(number).unwrap_or(usize::MAX)),
        0xc0 => Token::Nil,
        0xc2 | 0xc3 => Token::Bool(*first == 0xc3),
        0xca => Token::Float(f64::from(f32::from_bits(number as u32))),
        0xcb => Token::Float(f64::from_bits(number)),
        0xcc..=0xcf => Token::Int(i64::try_from(number).map_err(|_| format!("{number} is too large"))?),
        0xd0 => Token::Int(i64::from(number as u8 as i8)),
        0xd1 => Token::Int(i64::from(number as u16 as i16)),
        0xd2 => Token::Int(i64::from(number as u32 as i32)),
        0xd3 => Token::Int(number as i64),
        0xdc | 0xdd => Token::List(number as u32),
        0xde | 0xdf => Token::Map(number as u32),
        other => return Err(format!("nothing begins with {other:#04x}")),
    };
    Ok(Ok((token, from)))
}

fn text(bytes: &[u8], from: usize, length: usize) -> Result<Result<(Token<'_>, usize), usize>, String> {
    if length > ANSWER_BYTES_MAX {
        return Err(format!("a text is said to have {length} bytes"));
    }
    let to = from + length;
    Ok(bytes.get(from..to).map(|own| (Token::Text(own), to)).ok_or(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_are_read_when_they_are_complete() {
        for (bytes, right) in [
            (&[0x05][..], Token::Int(5)),
            (&[0xff], Token::Int(-1)),
            (&[0xcc, 200], Token::Int(200)),
            (&[0xd1, 0xff, 0x00], Token::Int(-256)),
            (&[0xd2, 0x80, 0, 0, 0], Token::Int(i64::from(i32::MIN))),
            (&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0], Token::Int(i64::MIN)),
            (&[0xcf, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Token::Int(i64::MAX)),
            (&[0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0], Token::Float(-0.0)),
            (&[0xa2, b'h', b'i'], Token::Text(b"hi")),
            (&[0xd9, 1, b'x'], Token::Text(b"x")),
            (&[0x82], Token::Map(2)),
            (&[0xdc, 1, 0], Token::List(256)),
            (&[0xc0], Token::Nil),
        ] {
            assert_eq!(token(bytes), Ok(Ok((right, bytes.len()))));
            for cut in 0..bytes.len() {
                assert!(matches!(token(&bytes[..cut]), Ok(Err(least)) if least > cut && least <= bytes.len()));
            }
        }
        assert!(token(&[0xc1]).is_err() && token(&[0xdb, 0xff, 0xff, 0xff, 0xff]).is_err());
        assert!(token(&[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            if let Ok(Ok((_, length))) = token(&bytes) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
