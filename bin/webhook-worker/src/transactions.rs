//! One transactions sync: every page of an account's activities since some time before the newest stored one.

use std::collections::BTreeMap;

use chrono::{Days, NaiveDate};
use providers::snaptrade::Activity;
use store::snaptrade::{self, Transactions};

use crate::calls::{Calls, Cut};

/// Brokers correct and add activities of past days; what lies within this span is fetched anew every time.
const LATE_CORRECTIONS: Days = Days::new(30);

/// Far beyond what any account has; a provider that never comes to an end must not keep a run for ever.
const MOST_ACTIVITIES: u64 = 500_000;

pub(crate) async fn fetch(calls: &Calls<'_>, newest: Option<NaiveDate>) -> Result<Transactions, Cut> {
    let since = newest.and_then(|newest| newest.checked_sub_days(LATE_CORRECTIONS));
    // A page may overlap with the next one when an activity is added in between: each id counts once.
    let mut activities = BTreeMap::new();
    let mut offset = 0;
    loop {
        let call = calls.client.activities(calls.user, calls.account, since, offset);
        let page = calls.make(call).await?;
        let read = page.data.len() as u64;
        activities.extend(page.data.into_iter().map(|activity| (activity.id.clone(), activity)));
        offset += read;
        if offset >= page.pagination.total {
            break;
        }
        if read == 0 || offset > MOST_ACTIVITIES {
            return Err(Cut::Inconsistent("the pages end before the total that they name"));
        }
    }
    let activities = activities.into_values().map(activity).collect();
    Ok(Transactions { account_id: calls.account, since, activities })
}

fn activity(activity: Activity) -> snaptrade::Activity {
    snaptrade::Activity {
        activity_id: activity.id,
        kind: activity.kind,
        trade_date: activity.trade_date,
        units: activity.units,
        price: activity.price,
        amount: activity.amount,
        fee: activity.fee,
        currency: activity.currency,
        details: activity.details,
    }
}
