//! The dependency policy: who may use what, from where, under which licence.
//!
//! Everything is read from what cargo resolved, so optional packages that nobody switched on don't count.

mod licences;
mod owners;
mod sources;
mod tls;
mod unused;

use std::collections::{BTreeMap, VecDeque};

use super::verdict;
use crate::terminal::say;
use crate::workspace::Metadata;

/// Reports all faults of all rules at once.
pub(super) fn check(metadata: &Metadata) -> anyhow::Result<()> {
    let reached = Reached::from_members(metadata);
    let mut problems = owners::problems(metadata);
    problems.extend(sources::problems(metadata));
    problems.extend(unused::problems(metadata));
    problems.extend(tls::problems(metadata, &reached));
    problems.extend(licences::problems(metadata, &reached));
    verdict(&problems)?;
    say(format_args!("{} packages in use, all within the dependency policy", reached.len()));
    Ok(())
}

/// The packages that members use, directly or not, each with the one through which it was first reached.
struct Reached<'a>(BTreeMap<&'a str, Option<&'a str>>);

impl<'a> Reached<'a> {
    fn from_members(metadata: &'a Metadata) -> Self {
        let edges = metadata.edges();
        let mut reached: BTreeMap<&str, Option<&str>> =
            metadata.workspace_members.iter().map(|id| (id.as_str(), None)).collect();
        let mut next: VecDeque<&str> = reached.keys().copied().collect();
        while let Some(id) = next.pop_front() {
            for used in edges.get(id).copied().unwrap_or_default() {
                if !reached.contains_key(used.as_str()) {
                    reached.insert(used, Some(id));
                    next.push_back(used);
                }
            }
        }
        Self(reached)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Ids from a member down to the package.
    fn path_to(&self, id: &'a str) -> Vec<&'a str> {
        let mut path: Vec<&str> =
            std::iter::successors(Some(id), |id| self.0.get(*id).copied().flatten()).collect();
        path.reverse();
        path
    }
}

#[cfg(test)]
mod fixture {
    //! Small workspaces for the tests of the rules.

    use crate::workspace::{Dependency, Metadata, Node, Package, Resolve};

    const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

    pub(super) fn from_registry(name: &str) -> Dependency {
        Dependency {
            name: name.into(),
            req: "^1".into(),
            source: Some(CRATES_IO.into()),
            ..Dependency::default()
        }
    }

    pub(super) fn package(folder: &str, dependencies: Vec<Dependency>) -> Package {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        Package {
            id: folder.into(),
            name: name.into(),
            version: "1.0.0".into(),
            license: Some("MIT".into()),
            manifest_path: format!("/w/{folder}/Cargo.toml").into(),
            dependencies,
            ..Package::default()
        }
    }

    /// `edges` are ids; packages under `registry/` are no members.
    pub(super) fn workspace(packages: Vec<Package>, edges: &[(&str, &[&str])]) -> Metadata {
        let node = |(id, used): &(&str, &[&str])| Node {
            id: (*id).into(),
            dependencies: used.iter().map(|id| (*id).to_owned()).collect(),
        };
        let members =
            packages.iter().map(|package| package.id.clone()).filter(|id| !id.starts_with("registry/"));
        Metadata {
            workspace_members: members.collect(),
            packages,
            workspace_root: "/w".into(),
            resolve: Some(Resolve { nodes: edges.iter().map(node).collect() }),
        }
    }
}
