//! A dependency that no source file of its package names is a dependency to delete.

use std::fs;
use std::path::Path;

use crate::workspace::Metadata;

pub(super) fn problems(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for member in metadata.members() {
        let folder = metadata.folder(member).display();
        let mut text = String::new();
        gather(Path::new(&member.manifest_path).parent().unwrap_or(Path::new(".")), &mut text);
        for used in &member.dependencies {
            let name = used.name.replace('-', "_");
            if !names(&text, &name) {
                problems.push(format!("{folder} does not use `{}`", used.name));
            }
        }
    }
    problems
}

/// All Rust sources of a package, one after the other.
fn gather(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            gather(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap_or_default());
            text.push('\n');
        }
    }
}

/// `name` as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + name.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_as_a_word_only() {
        assert!(names("use serde::Deserialize;", "serde"));
        assert!(names("#[tokio::main]", "tokio"));
        assert!(!names("use serde_json::Value;", "serde"));
        assert!(!names("let deserde = 1;", "serde"));
    }
}
