//! What a drill will do, decided before it begins: which event is delivered when and how often, who is killed when.
//! A seed and a size give one plan.

use std::time::Duration;

use contract::snaptrade::{EventType, WorkType};
use testkit::Dice;
use testkit::sandbox::snaptrade::webhook::event;
use uuid::Uuid;

use super::history::Key;
use crate::accounts;

/// The user that all accounts of a drill belong to.
pub(super) const USER: &str = "spike-user";

/// Of how many events one is about transactions.
const TRANSACTIONS_ONE_IN: u16 = 3;
/// Of how many events one is about one of the accounts about which much happens, and how many of all those are.
const BUSY_ONE_IN: u16 = 4;
const BUSY_ACCOUNTS: usize = 20;
/// Of how many repetitions one is sent together with what it repeats.
const AT_ONCE_ONE_IN: u16 = 3;

/// How much a drill offers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) deliveries: u32,
    /// Different events among them.
    pub(super) events: u32,
    pub(super) accounts: u32,
    /// How long the deliveries take.
    pub(super) over: Duration,
    /// Calls that the provider takes in its period.
    pub(super) quota: u32,
}

/// The incident of April: 5,000 deliveries about 500 accounts, of which 60 % repeat an earlier one.
const WHOLE: Size = Size {
    deliveries: 5000,
    events: 2000,
    accounts: 500,
    over: Duration::from_secs(30),
    // Half of what the platform is sized for, so that it throttles.
    quota: 2000,
};

impl Size {
    /// So much of the whole at the same pace.
    pub(super) fn scaled(scale: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no more than was asked for"
        )]
        let part = |whole: u32| (f64::from(whole) * scale).round().max(1.0) as u32;
        Self {
            deliveries: part(WHOLE.deliveries),
            events: part(WHOLE.events),
            accounts: part(WHOLE.accounts),
            over: WHOLE.over.mul_f64(scale),
            quota: part(WHOLE.quota),
        }
    }
}

/// Something that happened at the sender's side, told by a webhook.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// The sender's id; every delivery of the event has the same body.
    pub(super) id: String,
    pub(super) key: Key,
    pub(super) body: String,
}

/// An event on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delivery {
    pub(super) at: Duration,
    /// Its place among the events.
    pub(super) event: usize,
    /// Which gateway it goes to first.
    pub(super) gateway: usize,
}

/// A process that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kill {
    pub(super) at: Duration,
    pub(super) process: &'static str,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) size: Size,
    pub(super) accounts: Vec<Uuid>,
    pub(super) events: Vec<Event>,
    /// In the order of their times.
    pub(super) deliveries: Vec<Delivery>,
    pub(super) kills: Vec<Kill>,
}

/// Whom a drill kills. Their names are those that they are started under.
pub(super) const VICTIMS: [&str; 2] = ["snaptrade-worker-1", "gateway-1"];

impl Plan {
    pub(super) fn of(size: Size, seed: u64, kills: bool) -> Self {
        let mut dice = Dice::new("fan-out", &[seed]);
        let accounts = accounts::ids(seed, size.accounts as usize);
        let events: Vec<Event> = (0..size.events).map(|_| new_event(&mut dice, &accounts)).collect();
        let mut deliveries: Vec<Delivery> = (0..events.len())
            .map(|event| Delivery { at: size.over.mul_f64(dice.fraction()), event, gateway: event })
            .collect();
        for _ in size.events..size.deliveries {
            let first = deliveries[dice.place(events.len())];
            let left = size.over.saturating_sub(first.at);
            let later =
                if dice.one_in(AT_ONCE_ONE_IN) { Duration::ZERO } else { left.mul_f64(dice.fraction()) };
            deliveries.push(Delivery { at: first.at + later, gateway: first.gateway + 1, ..first });
        }
        deliveries.sort_unstable();
        let mut moment = |from: f64, to: f64| size.over.mul_f64(from + (to - from) * dice.fraction());
        let moments = [moment(0.3, 0.5), moment(0.5, 0.8)];
        let killed = VICTIMS.into_iter().zip(moments).map(|(process, at)| Kill { at, process });
        let kills = if kills { killed.collect() } else { Vec::new() };
        Self { size, accounts, events, deliveries, kills }
    }
}

fn new_event(dice: &mut Dice, accounts: &[Uuid]) -> Event {
    let id = dice.uuid().to_string();
    let busy = accounts.len().div_ceil(BUSY_ACCOUNTS);
    let among = if dice.one_in(BUSY_ONE_IN) { &accounts[..busy] } else { accounts };
    let account = *dice.pick(among);
    let (work, event_type) = if dice.one_in(TRANSACTIONS_ONE_IN) {
        (WorkType::Transactions, EventType::AccountTransactionsUpdated)
    } else {
        (WorkType::Holdings, EventType::AccountHoldingsUpdated)
    };
    let body = event(&id, event_type.into(), USER, account).to_string();
    Event { id, key: Key { work, account }, body }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn plan(seed: u64) -> Plan {
        Plan::of(Size::scaled(0.2), seed, true)
    }

    #[test]
    fn the_whole_is_five_thousand_deliveries_of_which_sixty_in_a_hundred_repeat() {
        let plan = Plan::of(Size::scaled(1.0), 1, false);
        let ids: HashSet<&str> = plan.events.iter().map(|event| event.id.as_str()).collect();

        assert_eq!((plan.deliveries.len(), ids.len(), plan.accounts.len()), (5000, 2000, 500));
        assert!(plan.kills.is_empty());
    }

    #[test]
    fn no_repetition_comes_before_what_it_repeats() {
        let plan = plan(1);
        let mut seen = HashSet::new();
        let last = plan.deliveries.iter().map(|delivery| delivery.at).max();

        let firsts = plan.deliveries.iter().filter(|delivery| seen.insert(delivery.event)).count();

        assert_eq!((firsts, plan.deliveries.len()), (400, 1000));
        assert!(plan.deliveries.is_sorted_by_key(|delivery| delivery.at));
        assert!(last <= Some(plan.size.over));
    }

    #[test]
    fn equal_seeds_give_equal_plans() {
        let essence = |seed| {
            let plan = plan(seed);
            let ids: Vec<String> = plan.events.into_iter().map(|event| event.id).collect();
            (ids, plan.deliveries, plan.kills)
        };

        assert_eq!(essence(7), essence(7));
        assert_ne!(essence(7), essence(8));
    }

    #[test]
    fn kills_fall_into_the_middle_of_the_deliveries() {
        for seed in 0..50 {
            let plan = plan(seed);
            let within = |kill: &Kill| kill.at > plan.size.over / 4 && kill.at < plan.size.over.mul_f64(0.85);

            assert!(plan.kills.len() == VICTIMS.len() && plan.kills.iter().all(within), "{:?}", plan.kills);
        }
    }

    #[test]
    fn a_tiny_drill_has_something_of_everything() {
        let size = Size::scaled(0.0001);

        assert_eq!((size.deliveries, size.events, size.accounts, size.quota), (1, 1, 1, 1));
    }
}
