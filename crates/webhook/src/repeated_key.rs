//! Finds keys that stand twice in one JSON object. Parsers take the first, the last or neither, so whoever
//! passes such a text on may have read another one.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Whether some object of a JSON text, at any level, holds a key twice; nothing where it is not JSON. Keys are
/// compared as they are read: `"a"` and `"\u0061"` are the same.
pub(crate) fn has_repeated_key(json: &str) -> Option<bool> {
    serde_json::from_str(json).ok().map(|Repeated(is_there)| is_there)
}

struct Repeated(bool);

impl<'de> Deserialize<'de> for Repeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Repeated;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Repeated, A::Error> {
        let mut keys = HashSet::new();
        let mut is_there = false;
        while let Some((key, Repeated(inside))) = map.next_entry::<String, Repeated>()? {
            is_there |= inside | !keys.insert(key);
        }
        Ok(Repeated(is_there))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Repeated, A::Error> {
        let mut is_there = false;
        while let Some(Repeated(inside)) = elements.next_element()? {
            is_there |= inside;
        }
        Ok(Repeated(is_there))
    }

    fn visit_unit<E>(self) -> Result<Repeated, E> {
        Ok(Repeated(false))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Repeated, E> {
        Ok(Repeated(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Repeated, E> {
        Ok(Repeated(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Repeated, E> {
        Ok(Repeated(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Repeated, E> {
        Ok(Repeated(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Repeated, E> {
        Ok(Repeated(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_every_level_and_in_every_spelling() {
        for json in [
            r#"{"amount":1,"amount":999}"#,
            r#"{"amount":1,"amount":1}"#,
            r#"{"amount":1,"am\u006funt":1}"#,
            r#"{"a":{"b":[null,{"c":1,"d":"x","c":2}]}}"#,
            r#"[true,{"":1,"":2}]"#,
        ] {
            assert_eq!(has_repeated_key(json), Some(true), "{json}");
        }
    }

    #[test]
    fn the_same_key_in_two_objects_or_another_case_is_no_repetition() {
        for json in [
            r#"{"a":{"a":1},"b":[{"a":1},{"a":-2}],"A":1.5,"c":"a"}"#,
            r#"{"a":12345678901234567890123}"#,
            "[]",
            "null",
            "7",
        ] {
            assert_eq!(has_repeated_key(json), Some(false), "{json}");
        }
    }

    #[test]
    fn what_is_not_json_has_no_answer() {
        for json in ["", "{", r#"{"a":1,"a":1"#, r#"{"a":1e400}"#, &"[".repeat(20_000)] {
            assert_eq!(has_repeated_key(json), None, "{json:.40}");
        }
    }
}
