//! The securities and currencies that accounts may hold, in the shapes that the API shows them in.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::Dice;

/// A listed security.
pub(super) struct Security {
    pub(super) kind: &'static str,
    pub(super) symbol: &'static str,
    raw_symbol: &'static str,
    pub(super) name: &'static str,
    pub(super) currency: &'static str,
    /// None for what has no listing exchange.
    pub(super) exchange: Option<&'static str>,
    pub(super) figi: Option<&'static str>,
    /// Code and name of the type in the older shape.
    class: (&'static str, &'static str),
}

/// An option contract on the first security.
pub(super) struct Contract {
    pub(super) ticker: &'static str,
    pub(super) option_type: &'static str,
    /// In whole dollars.
    strike: i32,
    expires: &'static str,
    pub(super) name: &'static str,
}

#[rustfmt::skip]
pub(super) const SECURITIES: [Security; 8] = [
    Security { kind: "stock", symbol: "AAPL", raw_symbol: "AAPL", name: "Apple Inc.", currency: "USD",
        exchange: Some("XNAS"), figi: Some("BBG000B9XRY4"), class: ("cs", "Common Stock") },
    Security { kind: "etf", symbol: "VAB.TO", raw_symbol: "VAB",
        name: "Vanguard Cdn Aggregate Bond Index ETF", currency: "CAD",
        exchange: Some("XTSE"), figi: Some("BBG002G6K7W4"), class: ("et", "ETF") },
    Security { kind: "crypto", symbol: "BTC", raw_symbol: "BTC", name: "Bitcoin", currency: "USD",
        exchange: None, figi: None, class: ("crypto", "Cryptocurrency") },
    Security { kind: "adr", symbol: "BABA", raw_symbol: "BABA", name: "Alibaba Group Holding Ltd ADR",
        currency: "USD", exchange: Some("XNYS"), figi: Some("BBG006G2JVL2"), class: ("ad", "ADR") },
    Security { kind: "stock", symbol: "ASML.AS", raw_symbol: "ASML", name: "ASML Holding N.V.",
        currency: "EUR", exchange: Some("XAMS"), figi: None, class: ("cs", "Common Stock") },
    Security { kind: "mutualfund", symbol: "VFIAX", raw_symbol: "VFIAX",
        name: "Vanguard 500 Index Fund Admiral Shares", currency: "USD", exchange: None,
        figi: Some("BBG000BHTMY2"), class: ("oef", "Open Ended Fund") },
    Security { kind: "stock", symbol: "PETR4.SA", raw_symbol: "PETR4", name: "Petr\u{f3}leo Brasileiro S.A.",
        currency: "BRL", exchange: Some("BVMF"), figi: None, class: ("ps", "Preferred Stock") },
    Security { kind: "crypto", symbol: "ETH", raw_symbol: "ETH", name: "Ethereum", currency: "USD",
        exchange: None, figi: None, class: ("crypto", "Cryptocurrency") },
];

pub(super) const CONTRACTS: [Contract; 2] = [
    Contract {
        ticker: "AAPL  261218C00240000",
        option_type: "CALL",
        strike: 240,
        expires: "2026-12-18",
        name: "AAPL Dec 18 2026 240 CALL",
    },
    Contract {
        ticker: "AAPL  261218P00200000",
        option_type: "PUT",
        strike: 200,
        expires: "2026-12-18",
        name: "AAPL Dec 18 2026 200 PUT",
    },
];

impl Security {
    /// As a position's `instrument`.
    pub(super) fn instrument(&self) -> Value {
        let figi = self.figi.map(|code| json!({ "figi_code": code, "figi_share_class": null }));
        json!({
            "kind": self.kind,
            "id": Dice::new(self.symbol, &[]).uuid(),
            "symbol": self.symbol,
            "raw_symbol": self.raw_symbol,
            "description": self.name,
            "currency": self.currency,
            "exchange": self.exchange,
            "figi_instrument": figi,
        })
    }

    /// As an activity's `symbol`.
    pub(super) fn symbol(&self) -> Value {
        let (code, name) = self.class;
        let figi = self.figi.map(|code| json!({ "figi_code": code, "figi_share_class": null }));
        json!({
            "id": Dice::new(self.symbol, &[]).uuid(),
            "symbol": self.symbol,
            "raw_symbol": self.raw_symbol,
            "description": self.name,
            "currency": currency(self.currency),
            "exchange": exchange(self.exchange.unwrap_or("OTC")),
            "type": {
                "id": Dice::new(code, &[]).uuid(), "code": code, "description": name, "is_supported": true,
            },
            "figi_code": self.figi,
            "figi_instrument": figi,
        })
    }

    pub(super) fn is_crypto(&self) -> bool {
        self.kind == "crypto"
    }
}

impl Contract {
    /// As a position's `instrument`.
    pub(super) fn instrument(&self) -> Value {
        json!({
            "kind": "option",
            "id": Dice::new(self.ticker, &[]).uuid(),
            "symbol": self.ticker,
            "option_type": self.option_type,
            "strike_price": self.strike.to_string(),
            "expiration_date": self.expires,
            "multiplier": "100",
            "description": self.name,
            "underlying": SECURITIES[0].instrument(),
        })
    }

    /// As an activity's `option_symbol`.
    pub(super) fn option_symbol(&self) -> Value {
        json!({
            "id": Dice::new(self.ticker, &[]).uuid(),
            "ticker": self.ticker,
            "option_type": self.option_type,
            "strike_price": self.strike,
            "expiration_date": self.expires,
            "is_mini_option": false,
            "underlying_symbol": SECURITIES[0].symbol(),
        })
    }
}

/// A currency by its code.
pub(super) fn currency(code: &str) -> Value {
    let (id, name) = match code {
        "USD" => ("87b24961-b51e-4db8-9226-f198f6518a89", "US Dollar"),
        "CAD" => ("d8a1a9a5-6f14-4a0e-9f5c-0d1b5c1c4c11", "Canadian Dollar"),
        "EUR" => ("0b7f9f0e-3b2d-4f3a-8f61-6a1d6a7d2e22", "Euro"),
        _ => ("5c0e6c52-90a4-4b0b-8b4e-2f6d3c9b7a33", "Brazilian Real"),
    };
    json!({ "id": id, "code": code, "name": name })
}

fn exchange(mic: &str) -> Value {
    json!({
        "id": Dice::new(mic, &[]).uuid(),
        "code": mic.trim_start_matches('X'),
        "mic_code": mic,
        "name": mic,
        "timezone": "America/New_York",
        "start_time": "09:30:00",
        "close_time": "16:00:00",
        "suffix": null,
    })
}

/// A decimal string without trailing zeros: `decimal(-1050, 2)` is `-10.5`.
pub(super) fn decimal(value: i64, scale: usize) -> String {
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    let text = format!("{sign}{whole}.{fraction}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A JSON number from cents.
pub(super) fn number(cents: i32) -> Value {
    Value::from(f64::from(cents) / 100.0)
}

/// A time as the API writes most of them.
pub(super) fn time(at: DateTime<Utc>) -> Value {
    Value::from(at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_have_no_trailing_zeros() {
        assert_eq!(decimal(1050, 2), "10.5");
        assert_eq!(decimal(-7, 2), "-0.07");
        assert_eq!(decimal(12300, 2), "123");
        assert_eq!(decimal(123_456_789_012_345_678, 18), "0.123456789012345678");
        assert_eq!(decimal(0, 2), "0");
    }

    #[test]
    fn a_number_has_its_cents() {
        assert_eq!(number(30071).to_string(), "300.71");
        assert_eq!(number(-5).to_string(), "-0.05");
    }
}
