//! Rows in text form while they are kept. Main function: [`size_in_memory`].

/// Returns the bytes that a row in text form takes while it is kept: each of its values has its own allocation, and so has the row.
pub fn size_in_memory(row: &[Option<String>]) -> usize {
    const PIECE: usize = 16;
    let texts = row.iter().flatten().map(|text| text.capacity() + PIECE).sum::<usize>();
    size_of::<Vec<Option<String>>>() + PIECE + size_of_val(row) + texts
}
