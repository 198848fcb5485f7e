//! Money and quantities: decimals that never pass through a binary float.

use rust_decimal::Decimal;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads a JSON number or string as the decimal that is written there; null and absence are no value.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    let raw: Option<Box<RawValue>> = Option::deserialize(deserializer)?;
    raw.map(|raw| parse(raw.get()).ok_or_else(|| D::Error::custom("not a decimal number"))).transpose()
}

/// Never rounds.
fn parse(raw: &str) -> Option<Decimal> {
    let text = raw.trim_matches('"');
    // As JSON writes numbers: the decimal's own parser takes more, such as `1_000` and `1E-+2`.
    serde_json::from_str::<&RawValue>(text).ok()?;
    let Some((digits, _)) = text.split_once(['e', 'E']) else { return Decimal::from_str_exact(text).ok() };
    // The scientific form alone would round digits that don't fit.
    Decimal::from_str_exact(digits).ok()?;
    Decimal::from_scientific(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Money {
        #[serde(default, deserialize_with = "optional")]
        amount: Option<Decimal>,
    }

    fn amount(json: &str) -> Option<String> {
        let money: Money = serde_json::from_str(json).expect("a decimal");
        money.amount.map(|amount| amount.to_string())
    }

    #[test]
    fn a_decimal_keeps_every_digit_however_it_is_written() {
        assert_eq!(amount(r#"{"amount":0.1}"#).as_deref(), Some("0.1"));
        assert_eq!(amount(r#"{"amount":"10.50"}"#).as_deref(), Some("10.50"));
        assert_eq!(amount(r#"{"amount":1.5e4}"#).as_deref(), Some("15000"));
        assert_eq!(
            amount(r#"{"amount":-12345678901234567890.12345678}"#).as_deref(),
            Some("-12345678901234567890.12345678")
        );
        assert_eq!(amount(r#"{"amount":null}"#), None);
        assert_eq!(amount("{}"), None);
    }

    #[test]
    fn what_is_no_decimal_is_an_error_and_not_a_zero() {
        for json in [
            r#"{"amount":"ten"}"#,
            r#"{"amount":""}"#,
            r#"{"amount":"0_"}"#,
            r#"{"amount":"1_000"}"#,
            r#"{"amount":"1E-+2"}"#,
            r#"{"amount":[]}"#,
            r#"{"amount":true}"#,
            r#"{"amount":1e400}"#,
            r#"{"amount":1.00000000000000000000000000000000000000001e1}"#,
        ] {
            assert!(serde_json::from_str::<Money>(json).is_err(), "{json}");
        }
    }
}
