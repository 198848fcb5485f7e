//! Pages, filters and shapes of the transactions.

use super::*;

fn get(account: &Account, paging: &Paging) -> Vec<Value> {
    page(account, paging).expect("a page")["data"].as_array().expect("a list").clone()
}

fn text<'a>(activities: &'a [Value], field: &str) -> Vec<&'a str> {
    activities.iter().filter_map(|activity| activity[field].as_str()).collect()
}

#[test]
fn an_account_has_37_activities_newest_first() {
    let all = page(&Account::sample(1, 1), &Paging::default()).expect("a page");

    let data = all["data"].as_array().expect("a list");
    assert_eq!(data.len(), 37);
    assert!(text(data, "trade_date").is_sorted_by(|newer, older| newer > older));
    assert_eq!(all["pagination"], json!({ "offset": 0, "limit": 1000, "total": 37 }));
}

#[test]
fn pages_of_a_thousand_cover_everything_once() {
    let account = Account::sample(1, 1).with_activities(2500);
    let pages = [0, 1000, 2000, 3000].map(|offset| {
        let paging = Paging { offset, limit: Some(5000), ..Paging::default() };
        get(&account, &paging)
    });

    assert_eq!(pages.each_ref().map(Vec::len), [1000, 1000, 500, 0]);
    let all = pages.concat();
    let mut ids = text(&all, "id");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2500);
}

#[test]
fn a_limit_above_the_maximum_is_told_as_the_maximum_and_zero_is_refused() {
    let account = Account::sample(1, 1);
    let paging = |limit| Paging { limit: Some(limit), ..Paging::default() };

    assert_eq!(page(&account, &paging(5000)).expect("a page")["pagination"]["limit"], 1000);
    assert_eq!(page(&account, &paging(0)), Err(Refusal::Query));
}

#[test]
fn a_new_revision_adds_one_activity_and_leaves_history_alone() {
    let before = get(&Account::sample(1, 1), &Paging::default());
    let after = get(&Account::sample(1, 2), &Paging::default());

    assert_eq!(after.len(), 38);
    assert_eq!(after[1..], before);
}

#[test]
fn dates_and_types_narrow_the_list_and_its_total() {
    let account = Account::sample(1, 1);
    let day = NaiveDate::from_ymd_opt(2024, 1, 3);
    let one_day = Paging { start_date: day, end_date: day, ..Paging::default() };
    let fees = Paging { r#type: Some("FEE,TAX".to_owned()), limit: Some(2), ..Paging::default() };

    let dates = get(&account, &one_day);
    assert!(!dates.is_empty());
    assert!(text(&dates, "trade_date").iter().all(|date| date.starts_with("2024-01-03")));
    let page = page(&account, &fees).expect("a page");
    assert_eq!(page["pagination"]["total"], 5);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(2));
}

#[test]
fn options_coins_and_cash_leave_out_what_they_have_not() {
    let all = get(&Account::sample(1, 1).with_activities(200), &Paging::default());
    let some = |test: &dyn Fn(&Value) -> bool| all.iter().any(test);

    assert!(some(&|it| it["option_symbol"]["ticker"].is_string() && it["symbol"].is_null()));
    assert!(some(&|it| it["currency"].is_null() && it["currency_universal_symbol"].is_object()));
    assert!(some(&|it| it["symbol"].is_null() && it["option_symbol"].is_null()));
    assert!(some(&|it| it["amount"].is_null()));
    assert!(some(&|it| it["fx_rate"].is_number()));
    assert!(some(&|it| it["external_reference_id"].is_null()));
    assert!(all.iter().all(|it| it["price"].is_number() && it["units"].is_number()));
}
