//! Request signatures: base64 of HMAC-SHA256 over the canonical JSON of content, path and raw query.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

/// Signs a request without a body: the path and the query as they are sent, the query without its `?`.
pub fn sign(consumer_key: &str, path: &str, query: &str) -> String {
    let mac = keyed(consumer_key).chain_update(canonical(&Value::Null, path, query));
    STANDARD.encode(mac.finalize().into_bytes())
}

/// Whether the signature is right, in constant time. An absent body is signed as null, and so is `{}`.
pub(super) fn holds(consumer_key: &str, body: &[u8], path: &str, query: &str, signature: &str) -> bool {
    let content = if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(body) };
    let (Ok(content), Ok(signature)) = (content, STANDARD.decode(signature)) else {
        return false;
    };
    let content = if content == Value::Object(serde_json::Map::new()) { Value::Null } else { content };
    keyed(consumer_key).chain_update(canonical(&content, path, query)).verify_slice(&signature).is_ok()
}

fn keyed(consumer_key: &str) -> Hmac<Sha256> {
    Hmac::new_from_slice(consumer_key.as_bytes()).expect("HMAC takes keys of any length")
}

fn canonical(content: &Value, path: &str, query: &str) -> String {
    let mut text = "{\"content\":".to_owned();
    write_sorted(&mut text, content);
    text.push_str(",\"path\":");
    write_text(&mut text, path);
    text.push_str(",\"query\":");
    write_text(&mut text, query);
    text.push('}');
    text
}

/// Keys sorted at every level. serde_json's own order depends on a feature that any crate of a build may set.
fn write_sorted(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, field)) in fields.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                write_sorted(out, field);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(out, item);
            }
            out.push(']');
        }
        Value::String(text) => write_text(out, text),
        plain => out.push_str(&plain.to_string()),
    }
}

/// A JSON string as Python writes it, because SnapTrade verifies with Python: all but ASCII is escaped.
fn write_text(out: &mut String, text: &str) {
    for character in Value::from(text).to_string().chars() {
        if character.is_ascii() {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").expect("writing to a string can't fail");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "ck_test_key";
    const PATH: &str = "/accounts/abc/activities";
    const QUERY: &str = "clientId=CID&timestamp=1715123456&userId=u1&userSecret=s1";
    const SIGNATURE: &str = "kEzBKwx0/YyB13kCxQNlQlKdMzpDBt1nROt6+WC3UmY=";

    #[test]
    fn the_contracts_vector_is_reproduced_byte_for_byte() {
        let expected = format!(r#"{{"content":null,"path":"{PATH}","query":"{QUERY}"}}"#);

        assert_eq!(canonical(&Value::Null, PATH, QUERY), expected);
        assert_eq!(sign(KEY, PATH, QUERY), SIGNATURE);
        assert!(holds(KEY, b"", PATH, QUERY, SIGNATURE));
    }

    #[test]
    fn a_tampered_request_does_not_hold() {
        assert!(!holds(KEY, b"", PATH, &QUERY.replace("u1", "u2"), SIGNATURE));
        assert!(!holds(KEY, b"", "/accounts/abd/activities", QUERY, SIGNATURE));
        assert!(!holds(KEY, b"[1]", PATH, QUERY, SIGNATURE));
        assert!(!holds("ck_other_key", b"", PATH, QUERY, SIGNATURE));
        assert!(!holds(KEY, b"", PATH, QUERY, &SIGNATURE.replace('k', "l")));
        assert!(!holds(KEY, b"", PATH, QUERY, "not base64"));
    }

    #[test]
    fn an_empty_object_is_signed_as_no_content() {
        assert!(holds(KEY, b"{}", PATH, QUERY, SIGNATURE));
    }

    #[test]
    fn content_is_sorted_at_every_level_and_escaped_like_python_does() {
        let content = json!({ "b": [{ "z": 1, "a": "usu\u{e1}rio" }], "a": "\u{1f600} \"q\"" });

        let text = canonical(&content, "/p", "q=1");

        let sorted = r#"{"a":"\ud83d\ude00 \"q\"","b":[{"a":"usu\u00e1rio","z":1}]}"#;
        assert_eq!(text, format!(r#"{{"content":{sorted},"path":"/p","query":"q=1"}}"#));
    }
}
