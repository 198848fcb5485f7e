//! Every table has a line in the retention table.

use super::{Source, Violation};

pub(super) fn retention(migrations: &[Source], readme: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for migration in migrations {
        for (i, line) in migration.text.lines().enumerate() {
            let Some(name) = created(line) else { continue };
            let row = format!("| `{name}` |");
            if !readme.text.contains(&row) {
                violations.push(migration.violation(i + 1, format!("{name} has no row in {}", readme.file)));
            }
        }
    }
    violations
}

fn created(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("create table ")?;
    let rest = rest.strip_prefix("if not exists ").unwrap_or(rest);
    rest.split([' ', '(']).next().filter(|name| name.starts_with("spillway."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_a_row_is_caught() {
        let source = |file: &str, text: &str| Source { file: file.to_owned(), text: text.to_owned() };
        let migration =
            source("migrations/1.sql", "-- x\ncreate table spillway.a (\n);\ncreate table spillway.b(\n);");
        let readme = source("migrations/README.md", "| `spillway.a` | for ever |");
        let violations = retention(&[migration], &readme);

        assert_eq!(violations.len(), 1);
        assert_eq!(
            violations[0].to_string(),
            "migrations/1.sql:4: spillway.b has no row in migrations/README.md"
        );
    }
}
