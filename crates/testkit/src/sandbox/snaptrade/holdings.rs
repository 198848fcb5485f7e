//! What an account is and holds: details, positions and balances. Positions and balances change with the
//! revision; a position leaves and another one comes with each.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use super::books::Account;
use super::catalogue::{CONTRACTS, Contract, SECURITIES, Security, currency, decimal, number, time};
use crate::Dice;

const CURRENCIES: [&str; 4] = ["USD", "CAD", "EUR", "BRL"];
const INSTITUTIONS: [&str; 3] = ["Questrade", "Robinhood", "Interactive Brokers"];

/// `GET /accounts/{id}`.
pub(super) fn details(account: &Account) -> Value {
    let mut dice = account.lasting("details", 0);
    let institution = pick(&INSTITUTIONS, dice.below(3));
    let name = format!("{institution} Individual");
    let synced = account.as_of();
    json!({
        "id": account.id,
        "brokerage_authorization": dice.uuid(),
        "name": (!dice.one_in(4)).then_some(name),
        "number": format!("Q{:05}{:05}", dice.below(60_000), dice.below(60_000)),
        "institution_account_id": dice.one_in(2).then(|| dice.uuid().simple().to_string()),
        "institution_name": institution,
        "created_date": "2024-07-23T22:50:22.761390Z",
        "funding_date": null,
        "opening_date": null,
        "sync_status": {
            "transactions": {
                "initial_sync_completed": true,
                "last_successful_sync": synced.date_naive(),
                "first_transaction_date": dice.one_in(3).then_some("2024-01-02"),
            },
            "holdings": {
                "initial_sync_completed": true,
                "last_successful_sync": spaced_time(synced),
                "holdings_unavailable": false,
            },
        },
        "balance": { "total": total(account) },
        "status": dice.one_in(2).then_some("open"),
        "raw_type": "Margin",
        "account_category": "INVESTMENT",
        "meta": { "type": "Margin", "status": "ACTIVE", "institution_name": institution },
        "portfolio_group": null,
        "cash_restrictions": [],
        "is_paper": false,
    })
}

/// `GET /accounts/{id}/positions/all`.
pub(super) fn positions(account: &Account) -> Value {
    let mut dice = account.lasting("positions", 0);
    let (held, first) = (2 + dice.below(4), dice.below(8));
    let shift = i32::try_from((account.revision - 1) % 8).expect("less than 8");
    let mut results: Vec<Value> = (first + shift..first + shift + held)
        .map(|index| position(account, pick(&SECURITIES, index)))
        .collect();
    if dice.one_in(2) {
        results.push(option_position(account, pick(&CONTRACTS, dice.below(2))));
    }
    json!({ "results": results, "data_freshness": { "as_of": time(account.as_of()) } })
}

/// `GET /accounts/{id}/balances`.
pub(super) fn balances(account: &Account) -> Value {
    let mut dice = account.lasting("balances", 0);
    let (held, first) = (2 + dice.below(2), dice.below(4));
    (first..first + held).map(|index| balance(account, pick::<&str>(&CURRENCIES, index))).collect()
}

fn position(account: &Account, security: &Security) -> Value {
    let mut dice = account.passing(security.symbol, 0);
    let units = if security.is_crypto() { coins(&mut dice) } else { shares(&mut dice) };
    let mut position = json!({
        "instrument": security.instrument(),
        "units": (!dice.one_in(20)).then_some(units),
        "price": price(&mut dice, 8),
        "cost_basis": price(&mut dice, 4),
        "currency": (!dice.one_in(10)).then_some(security.currency),
    });
    if security.kind == "mutualfund" {
        position["cash_equivalent"] = dice.one_in(2).into();
    }
    position
}

fn option_position(account: &Account, contract: &Contract) -> Value {
    let mut dice = account.passing(contract.ticker, 0);
    let contracts = if dice.one_in(2) { 1 + dice.below(20) } else { -1 - dice.below(20) };
    json!({
        "instrument": contract.instrument(),
        "units": contracts.to_string(),
        "price": price(&mut dice, 8),
        "cost_basis": price(&mut dice, 4),
        "currency": "USD",
    })
}

fn balance(account: &Account, code: &str) -> Value {
    let mut dice = account.passing(code, 0);
    let cash = dice.below(60_000) * 97 - 200_000;
    json!({
        "currency": currency(code),
        "cash": if dice.one_in(15) { Value::Null } else { number(cash) },
        "buying_power": if dice.one_in(3) { Value::Null } else { number(cash.max(0) * 2) },
    })
}

fn total(account: &Account) -> Value {
    let mut dice = account.passing("total", 0);
    if dice.one_in(10) {
        return Value::Null;
    }
    json!({ "amount": number(dice.below(60_000) * 101), "currency": "USD" })
}

/// Hundredths of a share; one position in ten is short.
fn shares(dice: &mut Dice) -> String {
    let hundredths = i64::from(1 + dice.below(50_000));
    decimal(if dice.one_in(10) { -hundredths } else { hundredths }, 2)
}

/// Eighteen decimals, which no floating-point number holds.
fn coins(dice: &mut Dice) -> String {
    let (high, low) = (i64::from(1 + dice.below(30_000)), i64::from(dice.below(50_000)));
    decimal(high * 100_000_000_000_000 + low * 10_000_000 + 7, 18)
}

fn price(dice: &mut Dice, null_one_in: u16) -> Value {
    let cents = i64::from(100 + dice.below(40_000));
    if dice.one_in(null_one_in) { Value::Null } else { decimal(cents, 2).into() }
}

/// The one field of the API whose times have a space and an offset.
fn spaced_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, false).replace('T', " ")
}

/// The item at an index that may run past the end, from where it goes round.
fn pick<T>(items: &[T], index: i32) -> &T {
    &items[usize::try_from(index).expect("no index is negative") % items.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(account: &Account) -> Vec<Value> {
        positions(account)["results"].as_array().expect("a list").clone()
    }

    #[test]
    fn equal_revisions_are_equal_and_the_next_one_holds_something_else() {
        for id in 0..50 {
            let (one, two) = (Account::sample(id, 1), Account::sample(id, 2));

            assert_eq!(positions(&one), positions(&Account::sample(id, 1)));
            assert_ne!(listed(&one), listed(&two));
            assert_ne!(listed(&one)[0]["instrument"]["id"], listed(&two)[0]["instrument"]["id"]);
            assert_ne!(balances(&one), balances(&two));
            assert_eq!(details(&one)["number"], details(&two)["number"]);
        }
    }

    #[test]
    fn every_account_has_two_positions_and_balances_in_two_currencies() {
        for id in 0..200 {
            let account = Account::sample(id, 1);
            let balances = balances(&account);

            assert!(listed(&account).len() >= 2);
            assert_ne!(balances[0]["currency"]["code"], balances[1]["currency"]["code"]);
        }
    }

    #[test]
    fn decimals_are_strings_in_positions_and_numbers_in_balances() {
        for id in 0..200 {
            let account = Account::sample(id, 1);
            for position in listed(&account) {
                for field in ["units", "price", "cost_basis"] {
                    assert!(position[field].is_string() || position[field].is_null(), "{position}");
                }
            }
            let balances = balances(&account);
            for balance in balances.as_array().expect("a list") {
                assert!(balance["cash"].is_number() || balance["cash"].is_null(), "{balance}");
            }
        }
    }

    #[test]
    fn accounts_differ_in_kinds_currencies_and_nulls() {
        let all: Vec<Value> = (0..200).flat_map(|id| listed(&Account::sample(id, 1))).collect();
        let some = |test: &dyn Fn(&Value) -> bool| all.iter().any(test);

        for kind in ["stock", "etf", "crypto", "adr", "mutualfund", "option"] {
            assert!(some(&|position| position["instrument"]["kind"] == kind), "{kind}");
        }
        for code in CURRENCIES {
            assert!(some(&|position| position["currency"] == code), "{code}");
        }
        for field in ["units", "price", "cost_basis", "currency"] {
            assert!(some(&|position| position[field].is_null()), "{field}");
        }
    }

    #[test]
    fn the_sync_status_has_its_own_time_format() {
        let synced = &details(&Account::sample(1, 2))["sync_status"];

        assert_eq!(synced["holdings"]["last_successful_sync"], "2026-06-02 14:31:00.000000+00:00");
        assert_eq!(synced["transactions"]["last_successful_sync"], "2026-06-02");
    }
}
