//! Where two JSON values differ, place by place.

use serde::Serialize;
use serde_json::{Map, Value};

/// One place where they differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The place as a JSON pointer; empty for the whole.
    pub path: String,
    /// What was there; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What is there; absent where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Every place where they differ, in the order of their paths. Objects are compared field by field; a list is one
/// place.
#[must_use]
pub fn difference(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut changes);
    changes
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for name in names(before, after) {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(path, before.get(name), after.get(name), changes);
            }
        }
        _ if before == after => {}
        _ => changes.push(Change { path, before: before.cloned(), after: after.cloned() }),
    }
}

fn names<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> Vec<&'a String> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_a_new_and_a_lost_field_are_three_places() {
        let before = json!({ "same": 1, "who": { "a/b": 1, "c": 2 }, "list": [1, 2] });
        let after = json!({ "same": 1, "who": { "a/b": 2, "d": null }, "list": [1, 2] });

        let changes = difference(&before, &after);

        let expected = [
            Change { path: "/who/a~1b".to_owned(), before: Some(json!(1)), after: Some(json!(2)) },
            Change { path: "/who/c".to_owned(), before: Some(json!(2)), after: None },
            Change { path: "/who/d".to_owned(), before: None, after: Some(Value::Null) },
        ];
        assert_eq!(changes, expected);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3i64).prop_map(Value::from),
            "[a-b~/]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c~/]{1,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equal_values_differ_nowhere_and_others_somewhere(before in value(), after in value()) {
            prop_assert_eq!(difference(&before, &before), []);
            prop_assert_eq!(difference(&before, &after).is_empty(), before == after);
        }

        #[test]
        fn every_place_says_what_the_two_values_have_there(before in value(), after in value()) {
            for change in difference(&before, &after) {
                prop_assert_eq!(before.pointer(&change.path), change.before.as_ref());
                prop_assert_eq!(after.pointer(&change.path), change.after.as_ref());
                prop_assert_ne!(change.before, change.after);
            }
        }
    }
}
