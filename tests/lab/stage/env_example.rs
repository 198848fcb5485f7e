//! `.env.example` has every key of the contract, in its order, with a sentence, the unit, and a value.

use contract::env::{Key, PREFIX, Presence, keys};

use super::{Source, Violation};

/// One assignment with the comment above it.
struct Entry<'a> {
    line: usize,
    name: &'a str,
    value: &'a str,
    is_commented: bool,
    comment: String,
}

pub(super) fn check(source: &Source) -> Vec<Violation> {
    let entries = entries(&source.text);
    let mut violations: Vec<Violation> = entries.iter().filter_map(|entry| judge(source, entry)).collect();
    for key in keys::ALL {
        match entries.iter().filter(|entry| entry.name == key.name).count() {
            1 => {}
            0 => violations.push(source.violation(0, format!("{} is missing", key.name))),
            n => violations.push(source.violation(0, format!("{} stands here {n} times", key.name))),
        }
    }
    let known: Vec<&str> =
        entries.iter().filter(|entry| find(entry.name).is_some()).map(|entry| entry.name).collect();
    let ordered = keys::ALL.iter().map(|key| key.name);
    if violations.is_empty() && !known.iter().copied().eq(ordered) {
        violations.push(source.violation(0, "the keys are not in the order of the contract"));
    }
    violations
}

fn judge(source: &Source, entry: &Entry<'_>) -> Option<Violation> {
    let violation = |what: String| Some(source.violation(entry.line, format!("{}: {what}", entry.name)));
    let Some(key) = find(entry.name) else { return violation("the contract has no such key".to_owned()) };
    let unit = format!("[{}]", key.unit.word());
    let Some(sentence) = entry.comment.strip_suffix(&unit) else {
        return violation(format!("its comment must end in {unit}"));
    };
    if !sentence.trim_end().ends_with('.') || sentence.trim().len() < 20 {
        return violation("its comment must be a sentence".to_owned());
    }
    match key.presence {
        Presence::Required if entry.is_commented => {
            violation("it is required, so it must not be commented out".to_owned())
        }
        Presence::Required if entry.value.is_empty() => violation("it needs a value".to_owned()),
        Presence::Optional if !entry.is_commented => {
            violation("it is optional, so it must be commented out".to_owned())
        }
        _ => None,
    }
}

fn find(name: &str) -> Option<&'static Key> {
    keys::ALL.iter().copied().find(|key| key.name == name)
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut comment = String::new();
    for (i, line) in text.lines().enumerate() {
        let bare = line.trim_start_matches('#');
        match bare.split_once('=') {
            Some((name, value)) if name.starts_with(PREFIX) => {
                let is_commented = line.starts_with('#');
                let comment = std::mem::take(&mut comment);
                entries.push(Entry { line: i + 1, name, value, is_commented, comment });
            }
            _ if line.starts_with("# ") => {
                comment.push_str(bare.trim());
                comment.push(' ');
                comment.truncate(comment.trim_end().len());
            }
            _ => comment.clear(),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> String {
        std::fs::read_to_string("../.env.example").unwrap()
    }

    fn caught(text: &str) -> String {
        let source = Source { file: ".env.example".to_owned(), text: text.to_owned() };
        check(&source).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_example_of_this_checkout_is_right() {
        assert_eq!(caught(&example()), "");
    }

    #[test]
    fn each_broken_rule_is_caught_with_its_place() {
        for (from, to, what) in [
            ("SANMOPIA_LOG=info\n", "", "SANMOPIA_LOG is missing"),
            ("SANMOPIA_LOG=info\n", "SANMOPIA_LOG=\n", "needs a value"),
            ("SANMOPIA_LOG=info\n", "#SANMOPIA_LOG=info\n", "must not be commented out"),
            ("#SANMOPIA_WORKER_DATABASE_URL=", "SANMOPIA_WORKER_DATABASE_URL=", "must be commented out"),
            ("SANMOPIA_LOG_FORMAT=json", "SANMOPIA_LOG_FORMATS=json", "the contract has no such key"),
            ("[json|pretty]", "[text]", "must end in [json|pretty]"),
            ("Lines for machines or for people. ", "", "must be a sentence"),
        ] {
            let broken = example().replacen(from, to, 1);
            assert!(caught(&broken).contains(what), "{what}: {}", caught(&broken));
        }
        let twice = format!("{}\nSANMOPIA_LOG=info\n", example());
        assert!(caught(&twice).contains("2 times"));
    }

    #[test]
    fn another_order_is_caught() {
        let mut lines: Vec<String> = example().lines().map(str::to_owned).collect();
        let i = lines.iter().position(|line| line.starts_with("SANMOPIA_LOG=")).unwrap();
        let moved: Vec<String> = lines.drain(i - 1..=i).collect();
        lines.extend(moved);

        assert!(caught(&lines.join("\n")).contains("order"));
    }
}
