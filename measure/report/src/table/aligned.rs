//! Columns of text.
use std::io::{self, Write};

/// Numbers to the right, the columns of `words` to the left, names last so that long ones disturb nothing. Empty
/// columns take no room.
pub(super) fn write(
    out: &mut impl Write,
    lines: &[impl AsRef<[String]>],
    words: &[usize],
) -> io::Result<()> {
    let columns = lines.first().map_or(0, |line| line.as_ref().len());
    let width = |column: usize| {
        let cells = lines.iter().map(|line| &line.as_ref()[column]);
        cells.map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    for line in lines {
        let line = line.as_ref();
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            match column {
                _ if column + 1 == columns => text.push_str(&format!("  {cell}")),
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
