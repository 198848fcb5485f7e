use contract::killbill::TransactionStatus::{
    PaymentFailure, PaymentSystemOff, Pending, PluginFailure, Success, Unknown,
};
use contract::killbill::TransactionType::{Authorize, Capture, Chargeback, Purchase, Refund, Void};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use strum::VariantArray;

use super::*;

/// A fact about the transaction with this number, with what Kill Bill says of amounts.
fn fact(transaction: u128, transaction_type: TransactionType, status: TransactionStatus) -> Fact {
    Fact {
        payment_id: Uuid::from_u128(1),
        transaction_id: Uuid::from_u128(transaction),
        transaction_type,
        status,
        amount: Some(if matches!(status, Success | Pending) { Decimal::from(15_000) } else { Decimal::ZERO }),
        currency: Some("KRW".to_owned()),
        effective_at: None,
    }
}

/// What a purchase's facts come to.
fn purchase(statuses: &[TransactionStatus]) -> State {
    let facts: Vec<Fact> = statuses.iter().map(|status| fact(1, Purchase, *status)).collect();
    fold(&facts)
}

#[test]
fn a_payment_of_which_nothing_was_told_is_at_its_beginning() {
    assert_eq!(fold([]), State::Init);
    assert_eq!(purchase(&[PaymentSystemOff]), State::Init, "nobody tried");
}

#[test]
fn an_end_counts_whatever_was_open_before_or_is_told_later() {
    for (statuses, state) in [
        (&[Pending][..], State::Pending),
        (&[PaymentSystemOff, Pending], State::Pending),
        (&[Unknown], State::Unknown),
        (&[Success], State::Succeeded),
        (&[PaymentFailure], State::Failed),
        (&[PluginFailure], State::Failed),
        (&[Pending, Success], State::Succeeded),
        (&[Success, Pending], State::Succeeded),
        (&[PaymentFailure, Unknown, Pending], State::Failed),
        (&[Success, PaymentSystemOff, Success], State::Succeeded),
    ] {
        assert_eq!(purchase(statuses), state, "{statuses:?}");
    }
}

#[test]
fn what_may_have_happened_is_never_taken_for_what_is_only_pending() {
    assert_eq!(purchase(&[Unknown, Pending]), State::Unknown);
    assert_eq!(purchase(&[Pending, Unknown]), State::Unknown);
}

#[test]
fn two_ends_of_one_transaction_wait_for_a_person() {
    for ends in [[Success, PaymentFailure], [PluginFailure, Success], [PaymentFailure, PluginFailure]] {
        assert_eq!(purchase(&ends), State::ManualReconcile(Conflict::Status), "{ends:?}");
    }
}

#[test]
fn two_processed_amounts_or_currencies_of_one_transaction_wait_for_a_person() {
    let (pending, success) = (fact(1, Purchase, Pending), fact(1, Purchase, Success));
    let more = Fact { amount: Some(Decimal::from(15_001)), ..success.clone() };
    let euros = Fact { currency: Some("EUR".to_owned()), ..success.clone() };
    let other_kind = fact(1, Refund, Success);

    assert_eq!(fold([&pending, &more]), State::ManualReconcile(Conflict::Amount));
    assert_eq!(fold([&pending, &euros]), State::ManualReconcile(Conflict::Currency));
    assert_eq!(fold([&success, &other_kind]), State::ManualReconcile(Conflict::TransactionType));
}

#[test]
fn an_amount_is_compared_by_its_value_and_only_where_one_was_processed() {
    let success = fact(1, Purchase, Success);
    let with_zeros = Fact { amount: "15000.00".parse().ok(), ..success.clone() };
    let unsaid = Fact { amount: None, currency: None, ..fact(1, Purchase, Pending) };

    assert_eq!(fold([&success, &with_zeros, &unsaid]), State::Succeeded);
    assert_eq!(purchase(&[Unknown, Success]), State::Succeeded, "an unknown one is sent with 0");
    assert_eq!(purchase(&[Pending, PaymentFailure]), State::Failed, "a declined one is sent with 0");
}

#[test]
fn a_payment_is_as_open_as_its_most_open_transaction() {
    let (authorized, captured) = (fact(1, Authorize, Success), fact(2, Capture, Pending));

    assert_eq!(fold([&authorized, &captured]), State::Pending);
    assert_eq!(fold([&authorized, &captured, &fact(3, Capture, Unknown)]), State::Unknown);
    assert_eq!(fold([&authorized, &captured, &fact(2, Capture, PaymentFailure)]), State::Succeeded);
}

#[test]
fn a_declined_try_does_not_undo_a_later_success() {
    assert_eq!(fold([&fact(1, Purchase, PaymentFailure), &fact(2, Purchase, Success)]), State::Succeeded);
}

#[test]
fn what_was_given_back_shows_and_what_was_not_does_not() {
    let purchased = fact(1, Purchase, Success);

    for kind in [Refund, Void, Chargeback] {
        assert_eq!(fold([&purchased, &fact(2, kind, Success)]), State::Reversed, "{kind}");
        assert_eq!(fold([&purchased, &fact(2, kind, PaymentFailure)]), State::Succeeded, "{kind}");
    }
}

#[test]
fn states_and_conflicts_have_the_words_of_the_schema() {
    let state = State::ManualReconcile(Conflict::TransactionType);

    assert_eq!((state.to_string().as_str(), State::Init.to_string().as_str()), ("manual_reconcile", "init"));
    assert_eq!(state.conflict().map(<&str>::from), Some("transaction_type"));
    assert_eq!(State::Succeeded.conflict(), None);
}

fn facts() -> impl Strategy<Value = Vec<Fact>> {
    let amount = select(&[None, Some(0), Some(15_000), Some(15_001)][..]);
    let currency = select(&[None, Some("KRW"), Some("EUR")][..]);
    let one =
        (1_u128..4, select(TransactionType::VARIANTS), select(TransactionStatus::VARIANTS), amount, currency)
            .prop_map(|(transaction, kind, status, amount, currency)| Fact {
                amount: amount.map(Decimal::from),
                currency: currency.map(str::to_owned),
                ..fact(transaction, kind, status)
            });
    // One transaction is of one kind, mostly: else nearly everything would be a conflict.
    let alike = prop::collection::vec(one.clone(), 0..8).prop_map(|mut facts| {
        for fact in &mut facts {
            let place = usize::try_from(fact.transaction_id.as_u128()).expect("a small number");
            (fact.transaction_type, fact.amount, fact.currency) =
                (TransactionType::VARIANTS[place], None, None);
        }
        facts
    });
    prop_oneof![prop::collection::vec(one, 0..8), alike]
}

/// How much is decided: a further fact never takes anything back.
fn height(state: State) -> u8 {
    match state {
        State::Init => 0,
        State::Pending => 1,
        State::Unknown => 2,
        State::Failed | State::Succeeded | State::Reversed => 3,
        State::ManualReconcile(_) => 4,
    }
}

proptest! {
    #[test]
    fn any_order_and_any_repetition_come_to_the_same(
        facts in facts(), order in prop::collection::vec(any::<Index>(), 0..8), again in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let mut told: Vec<&Fact> = facts.iter().collect();
        for (place, other) in order.iter().enumerate().take(told.len()) {
            let other = other.index(told.len());
            told.swap(place, other);
        }
        for index in again.iter().filter(|_| !facts.is_empty()) {
            told.insert(index.index(told.len() + 1), &facts[index.index(facts.len())]);
        }
        prop_assert_eq!(fold(told), fold(&facts));
    }

    #[test]
    fn a_further_fact_about_a_known_transaction_takes_nothing_back(facts in facts(), taken in any::<Index>()) {
        prop_assume!(!facts.is_empty());
        let one: Vec<&Fact> = facts.iter().filter(|fact| fact.transaction_id == facts[0].transaction_id).collect();
        let before = &one[..taken.index(one.len())];
        prop_assert!(height(fold(before.iter().copied())) <= height(fold(one.iter().copied())));
    }

    #[test]
    fn a_conflict_is_never_mended_by_further_facts(facts in facts(), further in facts()) {
        if fold(&facts).conflict().is_some() {
            prop_assert!(fold(facts.iter().chain(&further)).conflict().is_some());
        }
    }
}
