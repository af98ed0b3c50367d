//! Tables for people, and how wide their terminal is.

use std::io::IsTerminal;

/// When the width is not known: what fits everywhere.
const USUAL_WIDTH: usize = 80;

/// A column is never cut below this.
const LEAST: usize = 6;

/// Rows of cells as lines, in columns that are as wide as their widest cell. Where that is wider
/// than `width`, the widest columns are cut.
pub(crate) fn lines<const N: usize>(rows: &[[String; N]], width: usize) -> Vec<String> {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let gaps = 2 * N.saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > LEAST => *widest -= 1,
            _ => break,
        }
    }
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (&width, cell) in widths.iter().zip(row) {
            let cell = cut(cell, width);
            let length = cell.chars().count();
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', width - length + 2));
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// At most so many letters, the last one a sign that there were more.
pub(crate) fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some(_) => {
            let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
            format!("{kept}…")
        }
        None => text.into(),
    }
}

/// The width of the terminal; without one nothing is cut.
pub(crate) fn width() -> usize {
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .unwrap_or(USUAL_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[[&str; 3]]) -> Vec<[String; 3]> {
        rows.iter().map(|row| row.map(String::from)).collect()
    }

    /// Counted by hand: 30 columns, of which two gaps take four.
    #[test]
    fn a_table_fits_its_terminal() {
        let table = rows(&[
            ["ID", "STATE", "REASON"],
            ["0123456789", "ACTIVE", "a very long reason indeed"],
        ]);
        let wide = lines(&table, usize::MAX);
        assert_eq!(wide[1], "0123456789  ACTIVE  a very long reason indeed");
        let narrow = lines(&table, 30);
        assert_eq!(narrow[0], "ID          STATE   REASON");
        assert_eq!(narrow[1], "0123456789  ACTIVE  a very lo…");
        assert!(narrow.iter().all(|line| line.chars().count() <= 30));
    }

    #[test]
    fn a_terminal_that_is_too_narrow_gets_what_can_be_read() {
        let table = rows(&[["aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"]]);
        assert_eq!(lines(&table, 1)[0], "aaaaa…  bbbbb…  ccccc…");
    }
}
