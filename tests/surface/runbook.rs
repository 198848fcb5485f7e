//! The runbook has one line for each word with which the door refuses or sets aside.

use strum::VariantArray;
use webhook::Reason;

/// The words in backticks in the first column of a section's table.
fn words(heading: &str) -> Vec<String> {
    let page = std::fs::read_to_string("../docs/runbook.md").unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let first_cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let mut words: Vec<String> =
        first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    words.sort();
    words
}

fn sorted<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.sort();
    words
}

#[test]
fn every_refusal_has_a_line_and_every_line_a_refusal() {
    let document = intake::openapi::document();
    let codes = &document["components"]["schemas"]["problem"]["properties"]["code"]["enum"];
    let codes = sorted(codes.as_array().unwrap().iter().map(|code| code.as_str().unwrap()));

    assert_eq!(words("Answers at the door"), codes);
}

#[test]
fn every_reason_of_a_quarantine_has_a_line_and_every_line_a_reason() {
    let reasons = Reason::VARIANTS.iter().map(<&str>::from);

    assert_eq!(words("Quarantined webhooks"), sorted(reasons.chain([store::inbox::IDENTITY_CONFLICT])));
}
