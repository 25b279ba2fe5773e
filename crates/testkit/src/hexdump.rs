//! Bytes for people: rows of sixteen, and two frames side by side with what differs marked.

use std::fmt::Write as _;

/// Bytes in a row.
const ROW_BYTES: usize = 16;

/// All rows of `bytes`, with offsets and the printable characters.
pub fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, chunk) in bytes.chunks(ROW_BYTES).enumerate() {
        let printable: String = chunk.iter().map(|&byte| printable(byte)).collect();
        let cells = cells(chunk);
        let _ = writeln!(text, "{:04x}  {cells}  {printable}", row * ROW_BYTES);
    }
    text
}

/// The rows in which two frames differ, one above the other with a mark under each byte that is
/// not the same; empty when they are equal.
pub fn diff(expected: &[u8], got: &[u8]) -> String {
    let mut text = String::new();
    for start in (0..expected.len().max(got.len())).step_by(ROW_BYTES) {
        let (left, right) = (row(expected, start), row(got, start));
        if left == right {
            continue;
        }
        let mark = |i: usize| match left.get(i) == right.get(i) {
            true => "  ",
            false => "^^",
        };
        let marks: Vec<&str> = (0..left.len().max(right.len())).map(mark).collect();
        let _ = writeln!(text, "{start:04x}  expected  {}", cells(left));
        let _ = writeln!(text, "      got       {}", cells(right));
        let _ = writeln!(text, "                {}", marks.join(" ").trim_end());
    }
    text
}

fn row(bytes: &[u8], start: usize) -> &[u8] {
    let end = bytes.len().min(start + ROW_BYTES);
    bytes.get(start..end).unwrap_or(&[])
}

fn cells(bytes: &[u8]) -> String {
    let cells: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    cells.join(" ")
}

fn printable(byte: u8) -> char {
    match byte {
        b' '..=b'~' => char::from(byte),
        _ => '.',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_shows_offsets_and_characters() {
        let text = dump(b"0123456789abcdefgh\x00");
        let last = text.lines().last();
        assert_eq!(last, Some("0010  67 68 00  gh."));
    }

    #[test]
    fn a_diff_marks_what_differs() {
        let mut got = [0u8; 34];
        got[17] = 9;
        let expected =
            "0010  expected  00 00 00 00\n      got       00 09 00\n                   ^^    ^^\n";
        assert_eq!(diff(&[0; 20], &got[..19]), expected);
        assert_eq!(diff(&got, &got), "");
    }
}
