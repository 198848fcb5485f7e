//! Damage: to bytes, as a bad line or an attacker does it, and to the members of JSON, so that it gets further in.

use serde_json::{Value, json};
use testkit::Dice;

/// Larger inputs only cost time; the limits of bodies have tests of their own.
const LONGEST: usize = 16 * 1024;

/// What tends to break parsers.
const TOKENS: &[&[u8]] = &[
    b"\0",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "\u{202e}".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{1f600}".as_bytes(),
    "\u{85}".as_bytes(),
    "\u{ff10}".as_bytes(),
    b"\r\n",
    b"\\",
    b"\"",
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"=",
    b"-",
    b"%00",
    b"%2e%2e",
    b"null",
    b"true",
    b"NaN",
    b"Infinity",
    b"1e400",
    b"1e-20000",
    b"-0",
    b"0e999999999999999999",
    b"9223372036854775808",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"79228162514264337593543950336",
    b"0.00000000000000000000000000001",
    b"+262142-12-31T23:59:59Z",
    b"-262143-01-01T00:00:00Z",
    b"2016-12-31T23:59:60Z",
    b"00000000-0000-0000-0000-000000000000",
];

/// A valid example.
pub(crate) struct Example {
    pub(crate) bytes: Vec<u8>,
    json: Option<Value>,
}

impl Example {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let json = serde_json::from_slice(&bytes).ok().filter(|json: &Value| json.is_object());
        Self { bytes, json }
    }
}

/// An example that something has happened to.
pub(crate) fn damaged(examples: &[Example], of: usize, dice: &mut Dice) -> Vec<u8> {
    let example = &examples[of];
    let mut bytes = match &example.json {
        Some(json) if !dice.one_in(3) => {
            let mut json = json.clone();
            for _ in 0..=dice.below(2) {
                damage_member(&mut json, dice);
            }
            let text = json.to_string().into_bytes();
            if dice.one_in(3) {
                return text;
            }
            if dice.one_in(2) { with_repeated_key(text, dice) } else { text }
        }
        _ => example.bytes.clone(),
    };
    for _ in 0..=dice.below(4) {
        damage_bytes(&mut bytes, examples, dice);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn damage_bytes(bytes: &mut Vec<u8>, examples: &[Example], dice: &mut Dice) {
    let (from, to) = (dice.place(bytes.len() + 1), dice.place(bytes.len() + 1));
    let range = from.min(to)..from.max(to);
    match dice.below(8) {
        0 if !bytes.is_empty() => {
            let place = dice.place(bytes.len());
            bytes[place] ^= 1 << dice.below(8);
        }
        1 => bytes.truncate(from),
        2 => drop(bytes.drain(range)),
        3 => {
            let copy = bytes[range].to_vec();
            drop(bytes.splice(to..to, copy));
        }
        4 => {
            let other = &dice.pick(examples).bytes;
            let cut = dice.place(other.len() + 1);
            bytes.truncate(from);
            bytes.extend_from_slice(&other[cut..]);
        }
        5 => {
            let levels = dice.place(40);
            let (open, close) = if dice.one_in(2) { ("[", "]") } else { ("{\"a\":", "}") };
            drop(bytes.splice(to..to, close.repeat(levels).into_bytes()));
            drop(bytes.splice(from.min(to)..from.min(to), open.repeat(levels).into_bytes()));
        }
        6 => drop(bytes.splice(range, dice.pick(TOKENS).to_vec())),
        _ => drop(bytes.splice(from..from, dice.pick(TOKENS).to_vec())),
    }
}

/// Changes one value somewhere inside.
fn damage_member(json: &mut Value, dice: &mut Dice) {
    let length = match json {
        Value::Object(members) => members.len(),
        Value::Array(elements) => elements.len(),
        _ => 0,
    };
    if length == 0 || dice.one_in(4) {
        *json = strange(json, dice);
        return;
    }
    let at = dice.place(length);
    let inside = match json {
        Value::Object(members) => members.values_mut().nth(at),
        Value::Array(elements) => elements.get_mut(at),
        _ => None,
    };
    if let Some(inside) = inside {
        damage_member(inside, dice);
    }
}

fn strange(old: &Value, dice: &mut Dice) -> Value {
    let token = *dice.pick(TOKENS);
    match dice.below(11) {
        0 => Value::Null,
        1 => json!(dice.one_in(2)),
        2 => json!(dice.bits()),
        3 => json!(-1.5e300),
        4 => json!(""),
        5 => json!("x".repeat(150 + dice.place(100))),
        6 => json!([old, old]),
        7 => json!({ "": old }),
        8 => json!(String::from_utf8_lossy(token)),
        9 => json!(format!("{}{}", old.as_str().unwrap_or_default(), String::from_utf8_lossy(token))),
        _ => (0..dice.below(40)).fold(old.clone(), |inside, _| json!([inside])),
    }
}

/// Puts one of an object's own members in front of it once more.
fn with_repeated_key(text: Vec<u8>, dice: &mut Dice) -> Vec<u8> {
    let Ok(Value::Object(members)) = serde_json::from_slice(&text) else { return text };
    let Some((name, value)) = members.iter().nth(dice.place(members.len().max(1))) else { return text };
    let value = if dice.one_in(2) { json!(7) } else { value.clone() };
    let rest = String::from_utf8_lossy(&text[1..]).into_owned();
    format!("{{{}:{value},{rest}", json!(name)).into_bytes()
}
