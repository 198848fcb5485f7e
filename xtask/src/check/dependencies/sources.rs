//! Direct dependencies come from the registry, name a version, and agree on one.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::{Dependency, Metadata, Package};

pub(super) fn problems(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for member in metadata.members() {
        for used in &member.dependencies {
            if let Some(fault) = fault(metadata, used) {
                problems.push(format!("`{}` uses `{}` {fault}", member.name, used.name));
            }
        }
    }
    problems.extend(several_versions(metadata));
    problems
}

fn fault(metadata: &Metadata, used: &Dependency) -> Option<&'static str> {
    if let Some(path) = &used.path {
        let is_member = metadata.members().any(|member| member.manifest_path.parent() == Some(path));
        return (!is_member).then_some("by a path that is no member of the workspace");
    }
    let registry = |source: &String| source.starts_with("registry+") || source.starts_with("sparse+");
    if !used.source.as_ref().is_some_and(registry) {
        return Some("from somewhere else than the registry");
    }
    used.req.contains('*').then_some("in any version: name one")
}

/// Transitive ones may differ, which is for their authors to mend.
fn several_versions(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.by_id();
    let edges = metadata.edges();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for member in metadata.members() {
        let direct = |package: &&&Package| member.dependencies.iter().any(|used| used.name == package.name);
        let used = edges.get(member.id.as_str()).copied().unwrap_or_default();
        for package in used.iter().filter_map(|id| packages.get(id.as_str())).filter(direct) {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    several
        .map(|(name, versions)| {
            format!(
                "members use `{name}` in {} versions: {}",
                versions.len(),
                Vec::from_iter(versions).join(", ")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{from_registry, package, workspace};
    use super::*;

    fn problems_of(used: Dependency) -> Vec<String> {
        problems(&workspace(vec![package("crates/queue", vec![used]), package("crates/store", vec![])], &[]))
    }

    #[test]
    fn a_registry_dependency_with_a_version_is_fine() {
        assert!(problems_of(from_registry("serde")).is_empty());
    }

    #[test]
    fn git_is_refused() {
        let git = Dependency { source: Some("git+https://example.com/x".into()), ..from_registry("x") };

        assert_eq!(problems_of(git).len(), 1);
    }

    #[test]
    fn a_wildcard_is_refused() {
        assert_eq!(problems_of(Dependency { req: "*".into(), ..from_registry("x") }).len(), 1);
        assert_eq!(problems_of(Dependency { req: "1.*".into(), ..from_registry("x") }).len(), 1);
    }

    #[test]
    fn a_path_leads_to_a_member_or_is_refused() {
        let by_path = |path: &str| Dependency {
            name: "store".into(),
            req: "*".into(),
            path: Some(path.into()),
            ..Dependency::default()
        };

        assert!(problems_of(by_path("/w/crates/store")).is_empty());
        assert_eq!(problems_of(by_path("/elsewhere/store")).len(), 1);
    }

    #[test]
    fn two_versions_of_one_direct_dependency_are_named() {
        let members = [
            package("crates/a", vec![from_registry("base64")]),
            package("crates/b", vec![from_registry("base64")]),
        ];
        let versions = ["0.22.1", "0.23.0"].map(|version| Package {
            id: format!("registry/base64@{version}"),
            version: version.into(),
            ..package("registry/base64", vec![])
        });
        let packages = members.into_iter().chain(versions).collect();
        let edges: [(&str, &[&str]); 2] =
            [("crates/a", &["registry/base64@0.22.1"]), ("crates/b", &["registry/base64@0.23.0"])];

        let problems = problems(&workspace(packages, &edges));

        assert_eq!(problems, ["members use `base64` in 2 versions: 0.22.1, 0.23.0"]);
    }
}
