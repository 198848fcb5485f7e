//! Canonical JSON: keys sorted at every level, no spaces, numbers as they were written.
//!
//! Some senders sign this form of the parsed body instead of the bytes. Python's encoder, which their own
//! examples use, writes everything beyond ASCII as `\uXXXX`; others write UTF-8. Both forms exist here.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;

/// Deeper bodies are not parsed: each level is scanned again, and no sender needs ten.
pub const MAX_DEPTH: usize = 32;

/// How characters beyond ASCII are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// `\u00e9`, and surrogate pairs beyond the basic plane.
    Ascii,
    /// As they are.
    Utf8,
}

/// The canonical form of a JSON text; nothing where it is not JSON or too deep. Of duplicate keys the last one
/// counts, as in the parsers that the signers use.
pub fn canonical(json: &str, charset: Charset) -> Option<String> {
    if depth(json) > MAX_DEPTH {
        return None;
    }
    let mut text = String::with_capacity(json.len());
    write_value(serde_json::from_str::<&RawValue>(json).ok()?, charset, &mut text)?;
    Some(text)
}

/// How deep objects and arrays are nested in what may be a JSON text.
pub fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn write_value(value: &RawValue, charset: Charset, text: &mut String) -> Option<()> {
    let raw = value.get();
    match raw.as_bytes().first()? {
        b'{' => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw).ok()?;
            write_joined(members, '{', '}', text, |(name, value), text| {
                write_string(&name, charset, text);
                text.push(':');
                write_value(value, charset, text)
            })
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            write_joined(elements, '[', ']', text, |value, text| write_value(value, charset, text))
        }
        b'"' => {
            write_string(&serde_json::from_str::<String>(raw).ok()?, charset, text);
            Some(())
        }
        _ => {
            text.push_str(raw);
            Some(())
        }
    }
}

fn write_joined<T>(
    items: impl IntoIterator<Item = T>,
    open: char,
    close: char,
    text: &mut String,
    mut write: impl FnMut(T, &mut String) -> Option<()>,
) -> Option<()> {
    text.push(open);
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        write(item, text)?;
    }
    text.push(close);
    Some(())
}

fn write_string(string: &str, charset: Charset, text: &mut String) {
    let quoted = serde_json::to_string(string).expect("a string is always JSON");
    match charset {
        Charset::Utf8 => text.push_str(&quoted),
        Charset::Ascii => {
            for c in quoted.chars() {
                if c.is_ascii() {
                    text.push(c);
                } else {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        write!(text, "\\u{unit:04x}").expect("a String takes everything");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_level_and_spaces_are_gone() {
        let json = "{ \"b\": [ {\"z\": 1, \"a\": null} , true ],\n\"a\": \"x\" }";

        assert_eq!(
            canonical(json, Charset::Utf8).as_deref(),
            Some(r#"{"a":"x","b":[{"a":null,"z":1},true]}"#)
        );
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let json = r#"{"a":1.10,"b":12345678901234567890123,"c":1e400,"d":-0.0}"#;

        assert_eq!(canonical(json, Charset::Ascii).as_deref(), Some(json));
    }

    #[test]
    fn strings_are_escaped_like_pythons_encoder() {
        let json = r#"{"a":"é😀\u2028\/\"\\\u0007\t\u007f"}"#;

        let ascii = "{\"a\":\"\\u00e9\\ud83d\\ude00\\u2028/\\\"\\\\\\u0007\\t\u{7f}\"}";
        let utf8 = "{\"a\":\"é😀\u{2028}/\\\"\\\\\\u0007\\t\u{7f}\"}";
        assert_eq!(canonical(json, Charset::Ascii).as_deref(), Some(ascii));
        assert_eq!(canonical(json, Charset::Utf8).as_deref(), Some(utf8));
    }

    #[test]
    fn what_is_not_json_or_too_deep_has_no_form() {
        for broken in ["", "{", "{}{}", "\u{feff}{}", r#"{"a":"\ud800"}"#, "nul", &"[".repeat(20_000)] {
            assert_eq!(canonical(broken, Charset::Ascii), None, "{}", &broken[..broken.len().min(20)]);
        }
        assert!(canonical(&format!("{}1{}", "[".repeat(32), "]".repeat(32)), Charset::Ascii).is_some());
        assert!(canonical(&format!("{}1{}", "[".repeat(33), "]".repeat(33)), Charset::Ascii).is_none());
    }

    #[test]
    fn brackets_in_strings_are_no_depth() {
        assert_eq!(depth(r#"{"a":"[[[[\"[[["}"#), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_without_a_panic(text in ".{0,200}") {
            let _ = canonical(&text, Charset::Ascii);
        }

        #[test]
        fn the_canonical_form_is_its_own_canonical_form(key in ".{0,8}", value in ".{0,20}") {
            let json = serde_json::json!({ "z": [value.clone(), 1], key: value }).to_string();
            for charset in [Charset::Ascii, Charset::Utf8] {
                let once = canonical(&json, charset).expect("it is JSON");
                prop_assert_eq!(canonical(&once, charset), Some(once.clone()));
            }
        }
    }
}
