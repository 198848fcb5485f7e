//! The checkout agrees with itself.

use std::path::Path;

#[test]
fn contract_example_migrations_and_documents_agree() {
    let violations = lab::stage::check(Path::new("..")).unwrap();

    assert!(
        violations.is_empty(),
        "{}",
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
}
