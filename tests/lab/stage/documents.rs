//! Documents name only what exists, and name everything that must be named.

use std::path::Path;

use anyhow::Context;
use contract::{DeadReason, env};
use strum::VariantArray;
use telemetry::metrics::TABLE;

use super::{Source, Violation};

/// Database roles share the prefix of the metrics.
const ROLES: [&str; 3] = ["spillway_gateway", "spillway_worker", "spillway_operator"];

/// What histograms and counters add to their names.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

/// Every setting, metric and path that stands in backticks or in a link exists.
pub(super) fn names(root: &Path, document: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut in_block = false;
    for (i, line) in document.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let missing =
            |what: &str, name: &str| document.violation(i + 1, format!("there is no {what} `{name}`"));
        for name in words(line) {
            if name.starts_with(env::PREFIX) && !is_setting(name) {
                violations.push(missing("setting", name));
            } else if name.starts_with("spillway_") && !is_metric(name) && !ROLES.contains(&name) {
                violations.push(missing("metric", name));
            }
        }
        if !in_block {
            let folder = Path::new(&document.file).parent().unwrap_or(Path::new(""));
            for path in paths(line) {
                let exists = root.join(path).exists() || root.join(folder).join(path).exists();
                if !exists {
                    violations.push(missing("file", path));
                }
            }
        }
    }
    violations
}

/// Runs of letters, digits and underscores.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// A key, or the beginning of several (`SANMOPIA_WORKER_`, as in `SANMOPIA_WORKER_*`).
fn is_setting(name: &str) -> bool {
    env::keys::ALL.iter().any(|key| key.name == name || (name.ends_with('_') && key.name.starts_with(name)))
}

fn is_metric(name: &str) -> bool {
    let base = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    TABLE.iter().any(|metric| {
        metric.name == base || metric.name == name || (name.ends_with('_') && metric.name.starts_with(name))
    })
}

/// What looks like a path of this repository, in backticks or as the target of a link.
fn paths(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let linked = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    quoted.chain(linked).filter(|text| is_path(text)).collect()
}

/// The folders and files at the root that documents speak of.
const ROOTS: [&str; 11] = [
    "crates/",
    "bin/",
    "migrations/",
    "deploy/",
    "xtask/",
    "tests/",
    "docs/",
    "decisions/",
    ".ci/",
    ".cargo/",
    "README.md",
];

fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    ROOTS.iter().any(|root| text.starts_with(root)) && text.chars().all(plain)
}

/// The architecture page names every crate and binary.
pub(super) fn members(root: &Path, page: &Source) -> anyhow::Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for folder in ["crates", "bin"] {
        for entry in std::fs::read_dir(root.join(folder)).with_context(|| format!("reading {folder}"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !page.text.contains(&format!("`{folder}/{name}`")) {
                violations.push(page.violation(0, format!("`{folder}/{name}` is not on the map")));
            }
        }
    }
    Ok(violations)
}

/// The runbook has a section for every reason of a dead letter.
pub(super) fn runbook(page: &Source) -> Vec<Violation> {
    let headings: Vec<&str> = page.text.lines().filter(|line| line.starts_with('#')).collect();
    let has = |reason: &DeadReason| headings.iter().any(|heading| heading.contains(&format!("`{reason}`")));
    let missing = DeadReason::VARIANTS.iter().filter(|reason| !has(reason));
    missing
        .map(|reason| page.violation(0, format!("no section for dead letters of reason `{reason}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(text: &str) -> Vec<String> {
        let document = Source { file: "docs/x.md".to_owned(), text: text.to_owned() };
        names(Path::new(".."), &document).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_of_things_that_exist_pass() {
        let text = "`SANMOPIA_LOG` and `SANMOPIA_WORKER_*`, `spillway_webhooks_total`, role `spillway_worker`,
            `spillway_run_duration_seconds_bucket`, `crates/store/src/pool.rs`, [map](architecture.md), `a/b`";

        assert_eq!(caught(text), [""; 0]);
    }

    #[test]
    fn names_of_things_that_do_not_exist_are_caught() {
        for (text, what) in [
            ("set `SANMOPIA_LOGG`", "no setting `SANMOPIA_LOGG`"),
            ("watch spillway_webhook_total", "no metric `spillway_webhook_total`"),
            ("read `crates/store/src/puddle.rs`", "no file `crates/store/src/puddle.rs`"),
            ("see [there](docs/nowhere.md)", "no file `docs/nowhere.md`"),
        ] {
            assert_eq!(caught(text), [format!("docs/x.md:1: there is {what}")]);
        }
    }

    #[test]
    fn a_reason_without_a_section_is_caught() {
        let page = Source { file: "docs/runbook.md".to_owned(), text: "### `attempts_exhausted`".to_owned() };
        let violations = runbook(&page);

        assert_eq!(violations.len(), DeadReason::VARIANTS.len() - 1);
        assert!(violations[0].what.contains("waited_too_long"), "{violations:?}");
    }
}
