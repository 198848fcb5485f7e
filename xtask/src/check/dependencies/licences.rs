//! Every third-party package may be shipped: its licence expression holds with licences from a short list.

use super::Reached;
use crate::workspace::Metadata;

/// SPDX identifiers. All of them allow shipping a binary; MPL-2.0 asks for changes to its own files only.
const ALLOWED: [&str; 16] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "PostgreSQL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(super) fn problems(metadata: &Metadata, reached: &Reached<'_>) -> Vec<String> {
    let foreign =
        metadata.packages.iter().filter(|package| !metadata.workspace_members.contains(&package.id));
    foreign
        .filter(|package| reached.contains(&package.id))
        .filter_map(|package| {
            let fault = match &package.license {
                None => "declares no licence".to_owned(),
                Some(licence) if holds(licence) => return None,
                Some(licence) => format!("is licensed under `{licence}`, which is not on the list"),
            };
            Some(format!("`{}` {} {fault}", package.name, package.version))
        })
        .collect()
}

/// Whether an SPDX expression holds: any side of an `OR`, both sides of an `AND`. What can't be read
/// does not hold.
fn holds(expression: &str) -> bool {
    // Before SPDX expressions, crates wrote `MIT/Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    matches!(either(&words), Some((verdict, [])) if verdict)
}

/// `all (OR all)*`, as the verdict and the words that follow.
fn either<'a>(words: &'a [&'a str]) -> Option<(bool, &'a [&'a str])> {
    let (mut verdict, mut rest) = all(words)?;
    while let ["OR", after @ ..] = rest {
        let (next, following) = all(after)?;
        (verdict, rest) = (verdict | next, following);
    }
    Some((verdict, rest))
}

/// `one (AND one)*`, which binds closer than `OR`.
fn all<'a>(words: &'a [&'a str]) -> Option<(bool, &'a [&'a str])> {
    let (mut verdict, mut rest) = one(words)?;
    while let ["AND", after @ ..] = rest {
        let (next, following) = one(after)?;
        (verdict, rest) = (verdict & next, following);
    }
    Some((verdict, rest))
}

/// An identifier, with its exception if it has one, or an expression in brackets.
fn one<'a>(words: &'a [&'a str]) -> Option<(bool, &'a [&'a str])> {
    match words {
        ["(", inside @ ..] => match either(inside)? {
            (verdict, [")", rest @ ..]) => Some((verdict, rest)),
            _ => None,
        },
        [licence, "WITH", exception, rest @ ..] => {
            Some((ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()), rest))
        }
        [licence, rest @ ..] => Some((ALLOWED.contains(licence), rest)),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{package, workspace};
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn one_allowed_choice_is_enough() {
        assert!(holds("MIT OR Apache-2.0"));
        assert!(holds("LGPL-2.1-or-later OR MIT"));
        assert!(holds("MIT/Apache-2.0"));
        assert!(holds("Unlicense / MIT"));
        assert!(holds("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"));
    }

    #[test]
    fn what_is_asked_for_together_must_all_be_allowed() {
        assert!(holds("Apache-2.0 AND ISC"));
        assert!(!holds("Apache-2.0 AND OpenSSL"));
        assert!(holds("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!holds("(MIT OR Apache-2.0) AND GPL-3.0"));
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(holds("MIT OR Apache-2.0 AND GPL-3.0"));
        assert!(!holds("GPL-3.0 OR Apache-2.0 AND GPL-3.0"));
    }

    #[test]
    fn copyleft_and_nonsense_do_not_hold() {
        for licence in
            ["GPL-3.0", "AGPL-3.0-only", "", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "GPL-2.0 WITH x"]
        {
            assert!(!holds(licence), "{licence}");
        }
    }

    #[test]
    fn a_package_without_a_licence_is_named_if_somebody_uses_it() {
        let bare = Package { license: None, ..package("registry/bare", vec![]) };
        let unused = Package { license: None, ..package("registry/unused", vec![]) };
        let packages = vec![package("crates/a", vec![]), bare, unused];
        let metadata = workspace(packages, &[("crates/a", &["registry/bare"])]);

        let problems = problems(&metadata, &Reached::from_members(&metadata));

        assert_eq!(problems, ["`bare` 1.0.0 declares no licence"]);
    }
}
