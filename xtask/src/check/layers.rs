//! Dependencies point down: a crate may use only crates of a lower rank.

use std::collections::BTreeMap;

use super::verdict;
use crate::terminal::say;
use crate::workspace::{Metadata, Package};

pub(super) fn check(metadata: &Metadata) -> anyhow::Result<()> {
    verdict(&problems(metadata))?;
    say(format_args!("{} crates, all dependencies point down", metadata.members().count()));
    Ok(())
}

fn problems(metadata: &Metadata) -> Vec<String> {
    let rank = |package: &Package| package.metadata["layer"]["rank"].as_i64();
    let ranks: BTreeMap<&str, i64> =
        metadata.members().filter_map(|package| Some((package.name.as_str(), rank(package)?))).collect();
    let mut problems = Vec::new();
    for package in metadata.members() {
        let Some(own) = ranks.get(package.name.as_str()) else {
            problems.push(format!("`{}` declares no rank under [package.metadata.layer]", package.name));
            continue;
        };
        // Tests may reach up: a dev-dependency can't leak into a binary.
        for used in package.dependencies.iter().filter(|dependency| !dependency.is_dev()) {
            if let Some(rank) = ranks.get(used.name.as_str()).filter(|rank| *rank >= own) {
                problems.push(format!(
                    "`{}` (rank {own}) must not depend on `{}` (rank {rank})",
                    package.name, used.name
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn member(name: &str, rank: Option<i64>, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            ..Dependency::default()
        };
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            dependencies: uses.iter().map(dependency).collect(),
            metadata: rank
                .map_or(serde_json::Value::Null, |rank| serde_json::json!({"layer": {"rank": rank}})),
            ..Package::default()
        }
    }

    fn workspace(members: Vec<Package>) -> Metadata {
        let workspace_members = members.iter().map(|member| member.id.clone()).collect();
        Metadata { packages: members, workspace_members, ..Metadata::default() }
    }

    #[test]
    fn a_crate_may_use_lower_ones() {
        let metadata = workspace(vec![
            member("contract", Some(0), &[]),
            member("store", Some(2), &[("contract", None)]),
        ]);

        assert_eq!(problems(&metadata), Vec::<String>::new());
    }

    #[test]
    fn a_crate_may_use_neither_higher_nor_equal_ones() {
        let store = member("store", Some(2), &[("queue", None), ("guards", Some("build"))]);
        let metadata = workspace(vec![store, member("guards", Some(2), &[]), member("queue", Some(3), &[])]);

        assert_eq!(problems(&metadata).len(), 2);
    }

    #[test]
    fn tests_may_reach_up() {
        let store = member("store", Some(2), &[("testkit", Some("dev"))]);

        assert!(problems(&workspace(vec![store, member("testkit", Some(4), &[])])).is_empty());
    }

    #[test]
    fn a_crate_without_a_rank_is_named() {
        assert!(problems(&workspace(vec![member("store", None, &[])]))[0].contains("`store`"));
    }
}
