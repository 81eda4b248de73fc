//! Columns of text.
use std::io::{self, Write};

/// Numbers to the right, the columns of `words` to the left, names last so that long ones disturb nothing. Empty
/// columns take no room.
pub(super) fn write<const N: usize>(
    out: &mut impl Write,
    lines: &[[String; N]],
    words: &[usize],
) -> io::Result<()> {
    let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|c| width(c).unwrap_or(0));
    for line in lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            match column {
                _ if column + 1 == N => text.push_str(&format!("  {cell}")),
                _ if width == 0 => {}
                _ if words.contains(&column) => text.push_str(&format!("  {cell:<width$}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        writeln!(
            out,
            "{}",
            text.trim_end().strip_prefix("  ").unwrap_or(&text)
        )?;
    }
    Ok(())
}
