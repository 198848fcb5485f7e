//! A body as a JSON object, which every sender's events are. It says nothing about what the members mean.

use serde_json::{Map, Value};

use crate::Identity;
use crate::canonical::{MAX_DEPTH, depth};
use crate::repeated_key::has_repeated_key;

/// A body that is a JSON object of sane depth.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    text: &'a str,
    members: Map<String, Value>,
}

impl<'a> Object<'a> {
    /// Nothing where the body is no UTF-8, no JSON, too deep, or something else than an object.
    pub(crate) fn read(body: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok().filter(|text| depth(text) <= MAX_DEPTH)?;
        match serde_json::from_str(text).ok()? {
            Value::Object(members) => Some(Self { text, members }),
            _ => None,
        }
    }

    /// A member, whatever it is.
    pub(crate) fn member(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// A member that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<&str> {
        self.member(name)?.as_str()
    }

    /// A member that is a short, printable string, such as an event's type.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        self.string(name).and_then(Identity::new).map(Identity::into_string)
    }

    /// True where it can be read in two ways.
    pub(crate) fn is_ambiguous(&self) -> bool {
        has_repeated_key(self.text) == Some(true)
    }

    /// True where jsonb can hold the body: it takes no NUL characters.
    pub(crate) fn is_clean_json(&self) -> bool {
        !self.text.contains("\\u0000")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_object_of_sane_depth_is_one() {
        let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let (deep, deeper) = (nested(200), nested(20_000));
        for body in [
            "",
            "{",
            "null",
            "[]",
            "7",
            "\"{}\"",
            "{}{}",
            "\u{feff}{}",
            r#"{"a":"\ud800"}"#,
            r#"{"a":1e400}"#,
            "{\"a\":\"\0\"}",
            &nested(MAX_DEPTH),
            &deep,
            &deeper,
        ] {
            assert!(Object::read(body.as_bytes()).is_none(), "{body:.60}");
        }
        assert!(Object::read(b"{\"a\":\"\xff\"}").is_none());
        assert!(Object::read(nested(MAX_DEPTH - 1).as_bytes()).is_some());
    }

    #[test]
    fn a_member_of_another_type_is_no_string_and_a_long_string_no_word() {
        let body = format!(r#"{{"a":7,"b":null,"c":"{}","d":"x\u0000","e":"é"}}"#, "x".repeat(201));
        let object = Object::read(body.as_bytes()).expect("an object");

        assert_eq!((object.string("a"), object.string("b"), object.string("z")), (None, None, None));
        assert_eq!(object.string("c").map(str::len), Some(201));
        assert_eq!((object.word("c"), object.word("d")), (None, None));
        assert_eq!(object.word("e").as_deref(), Some("é"));
        assert!(!object.is_clean_json());
    }
}
