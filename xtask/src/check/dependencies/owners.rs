//! One owner per heavy dependency, so that replacing it touches one crate.

use std::path::Path;

use crate::workspace::Metadata;

/// Who may use a package. A `*` at the end stands for any rest.
struct Owned {
    package: &'static str,
    /// Folders of the workspace.
    by: &'static [&'static str],
}

const OWNED: &[Owned] = &[
    // testkit makes databases.
    Owned { package: "sqlx*", by: &["crates/store", "crates/testkit"] },
    Owned { package: "redis", by: &["crates/guards"] },
    Owned {
        package: "axum",
        by: &["crates/intake", "crates/probes", "crates/queue", "crates/testkit", "bin/console"],
    },
    Owned { package: "opentelemetry*", by: &["crates/telemetry"] },
    Owned { package: "tracing-subscriber", by: &["crates/telemetry"] },
    Owned { package: "prometheus", by: &["crates/telemetry"] },
    Owned { package: "figment", by: &["crates/settings"] },
    Owned { package: "anyhow", by: PROGRAMS },
    Owned { package: "clap", by: PROGRAMS },
];

const PROGRAMS: &[&str] = &["bin/*", "xtask", "tests"];

pub(super) fn problems(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for member in metadata.members() {
        let folder = metadata.folder(member);
        for used in member.dependencies.iter().filter(|dependency| !dependency.is_dev()) {
            for owned in OWNED.iter().filter(|owned| matches(owned.package, &used.name)) {
                if !owned.by.iter().any(|owner| is_in(folder, owner)) {
                    let owners = owned.by.join(", ");
                    problems.push(format!(
                        "`{}` must not use `{}`: it belongs to {owners}",
                        member.name, used.name
                    ));
                }
            }
        }
    }
    problems
}

fn is_in(folder: &Path, owner: &str) -> bool {
    folder.to_str().is_some_and(|folder| matches(owner, folder))
}

fn matches(pattern: &str, text: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == text, |start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{from_registry, package, workspace};
    use super::*;
    use crate::workspace::Dependency;

    #[test]
    fn the_owner_may_use_its_dependency() {
        let store = package("crates/store", vec![from_registry("sqlx")]);
        let gateway = package("bin/gateway", vec![from_registry("anyhow"), from_registry("clap")]);

        assert!(problems(&workspace(vec![store, gateway], &[])).is_empty());
    }

    #[test]
    fn another_crate_may_not_and_is_told_who_may() {
        let queue = package("crates/queue", vec![from_registry("sqlx"), from_registry("opentelemetry_sdk")]);

        let problems = problems(&workspace(vec![queue], &[]));

        assert_eq!(problems.len(), 2);
        assert!(problems[0].contains("crates/store"), "{}", problems[0]);
    }

    #[test]
    fn a_library_has_no_anyhow_but_its_tests_may() {
        let dev = Dependency { kind: Some("dev".into()), ..from_registry("anyhow") };

        assert!(problems(&workspace(vec![package("crates/policy", vec![dev])], &[])).is_empty());
        assert_eq!(
            problems(&workspace(vec![package("crates/policy", vec![from_registry("anyhow")])], &[])).len(),
            1
        );
    }
}
