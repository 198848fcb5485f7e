//! The checkout as cargo sees it: its root, its packages and what they resolve to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::Deserialize;

use crate::command;

/// The part of `cargo metadata` that the checks read.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: BTreeSet<String>,
    pub(crate) workspace_root: PathBuf,
    pub(crate) resolve: Option<Resolve>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
    /// The free-form `[package.metadata]`.
    #[serde(default)]
    pub(crate) metadata: serde_json::Value,
}

/// Something that a package is compiled to.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

/// One line under `[dependencies]`, as written.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Absent for a normal one, else `dev` or `build`.
    #[serde(default)]
    pub(crate) kind: Option<String>,
    pub(crate) req: String,
    /// Absent for a dependency given by path alone.
    #[serde(default)]
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    /// Ids of the packages that this one was resolved to use; dev-dependencies of members included.
    pub(crate) dependencies: Vec<String>,
}

impl Metadata {
    /// Asks cargo. `Cargo.lock` must be up to date: a check must not change what it checks.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let json = command::output(cargo(root).args(["metadata", "--format-version", "1", "--locked"]))?;
        serde_json::from_str(&json).context("reading what `cargo metadata` printed")
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    pub(crate) fn by_id(&self) -> BTreeMap<&str, &Package> {
        self.packages.iter().map(|package| (package.id.as_str(), package)).collect()
    }

    /// What each package was resolved to use.
    pub(crate) fn edges(&self) -> BTreeMap<&str, &[String]> {
        let nodes = self.resolve.iter().flat_map(|resolve| &resolve.nodes);
        nodes.map(|node| (node.id.as_str(), node.dependencies.as_slice())).collect()
    }

    /// A member's folder relative to the workspace, such as `crates/store`.
    pub(crate) fn folder<'a>(&self, package: &'a Package) -> &'a Path {
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        folder.strip_prefix(&self.workspace_root).unwrap_or(folder)
    }
}

impl Dependency {
    /// Dev-dependencies can't leak into a binary, so most rules leave them out.
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    // Set by `cargo run`; a program started by hand answers for the checkout it was compiled in.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&package).parent().context("xtask has no parent folder")?;
    root.canonicalize().with_context(|| format!("looking for the checkout at {}", root.display()))
}

/// Cargo, in the workspace's root, as if typed by a person.
///
/// `cargo run` tells its program about the package it runs. Build scripts that watch those variables
/// (ring's does) would take each command of ours for a change and build again.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        let told = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if told.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}
