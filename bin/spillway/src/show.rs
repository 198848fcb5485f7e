//! Tables for people, JSON for programs, and nothing that could break a terminal.
#![expect(clippy::print_stdout, reason = "this is what the program is for")]

use std::time::Duration;

use chrono::{DateTime, Utc};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

/// Prints rows under headings; columns whose heading ends in `>` are aligned to the right.
pub(crate) fn table(headings: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(headings.iter().map(|heading| heading.trim_end_matches('>')));
    for (i, heading) in headings.iter().enumerate() {
        if let Some(column) = table.column_mut(i).filter(|_| heading.ends_with('>')) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for row in rows {
        table.add_row(row.into_iter().map(|cell| printable(&cell)));
    }
    println!("{table}");
}

/// Prints names and values, one a line, leaving out what is not there.
pub(crate) fn facts(facts: &[(&str, Option<String>)]) {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in facts {
        if let Some(value) = value {
            println!("{name:width$}  {}", printable(value));
        }
    }
}

/// Prints one line.
pub(crate) fn line(text: &str) {
    println!("{}", printable(text));
}

/// Prints JSON.
pub(crate) fn json(value: &impl Serialize) {
    println!("{}", serde_json::to_string_pretty(value).expect("what we print has string keys"));
}

/// Control characters in stored text must not reach the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// How long ago, in the two largest units.
pub(crate) fn ago(time: DateTime<Utc>) -> String {
    span((Utc::now() - time).to_std().unwrap_or_default())
}

/// How long, in the two largest units.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31mb\r\nc"), "a\\u{1b}[31mb\\r\\nc");
        assert_eq!(printable("요청 ✓"), "요청 ✓");
    }

    #[test]
    fn a_span_is_told_in_its_two_largest_units() {
        let spans = [0, 59, 61, 3_660, 90_000].map(|seconds| span(Duration::from_secs(seconds)));

        assert_eq!(spans, ["0s", "59s", "1m 1s", "1h 1m", "1d 1h"]);
    }
}
