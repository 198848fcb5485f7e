//! One TLS provider, `ring`: a second one doubles the code that guards secrets, and may need a C toolchain
//! or a system library where we build.

use super::Reached;
use crate::workspace::Metadata;

const OTHERS: [&str; 3] = ["aws-lc-rs", "openssl-sys", "native-tls"];

pub(super) fn problems(metadata: &Metadata, reached: &Reached<'_>) -> Vec<String> {
    let packages = metadata.by_id();
    let name = |id: &str| packages.get(id).map_or_else(|| id.to_owned(), |package| package.name.clone());
    let in_use = metadata.packages.iter().filter(|package| reached.contains(&package.id));
    in_use
        .filter(|package| OTHERS.contains(&package.name.as_str()))
        .map(|package| {
            let path: Vec<String> = reached.path_to(&package.id).into_iter().map(name).collect();
            format!(
                "`{}` is a second TLS provider beside ring, reached by {}",
                package.name,
                path.join(" → ")
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{package, workspace};
    use super::*;

    fn metadata(edges: &[(&str, &[&str])]) -> Metadata {
        let packages = ["crates/a", "registry/http", "registry/openssl-sys", "registry/ring"];
        workspace(packages.map(|folder| package(folder, vec![])).into(), edges)
    }

    #[test]
    fn a_second_provider_is_shown_with_the_way_to_it() {
        let metadata = metadata(&[
            ("crates/a", &["registry/ring", "registry/http"]),
            ("registry/http", &["registry/openssl-sys"]),
        ]);

        let problems = problems(&metadata, &Reached::from_members(&metadata));

        assert_eq!(problems.len(), 1);
        assert!(problems[0].ends_with("a → http → openssl-sys"), "{}", problems[0]);
    }

    #[test]
    fn an_entry_that_nobody_uses_does_not_count() {
        let metadata =
            metadata(&[("crates/a", &["registry/ring"]), ("registry/http", &["registry/openssl-sys"])]);

        assert!(problems(&metadata, &Reached::from_members(&metadata)).is_empty());
    }
}
