//! What rules do to calls in a row.

use std::time::Duration;

use super::*;

const PATH: &str = "/accounts/45a3056a-eef6-4904-a68e-d3f90c3e07c5/balances";

fn strikes(script: &Script, calls: usize) -> Vec<Option<Fault>> {
    let strike = |_| script.strike("GET", PATH, None).map(|(_, fault)| fault);
    (0..calls).map(strike).collect()
}

#[test]
fn a_rule_is_spent_after_its_times_and_counts_its_hits() {
    let script = Script::new(1);
    let rule = script.add(Rule::on("GET", "/accounts/{id}/balances").times(2).answer(Fault::populating()));

    let hit = Some(Fault::populating());

    assert_eq!(strikes(&script, 4), [hit.clone(), hit, None, None]);
    assert_eq!(script.fired(rule), 2);
}

#[test]
fn every_nth_call_is_hit_and_the_others_go_to_the_next_rule() {
    let script = Script::new(1);
    script.add(Rule::on("GET", "*").every_nth(3).answer(Fault::Garbage));
    script.add(Rule::on("GET", "*").answer(Fault::Empty));

    let (garbage, empty) = (Some(Fault::Garbage), Some(Fault::Empty));

    assert_eq!(strikes(&script, 4), [empty.clone(), empty.clone(), garbage, empty]);
}

#[test]
fn the_first_rule_that_fires_decides() {
    let script = Script::new(1);
    let first = script.add(Rule::on("GET", "*").answer(Fault::Garbage));
    let second = script.add(Rule::on("GET", "*").answer(Fault::Empty));

    assert_eq!(strikes(&script, 1), [Some(Fault::Garbage)]);
    assert_eq!((script.fired(first), script.fired(second)), (1, 0));
}

#[test]
fn a_share_hits_about_that_many_and_the_same_ones_again_for_the_same_seed() {
    let run = |seed| {
        let script = Script::new(seed);
        script.add(Rule::on("GET", "*").share(0.05).answer(Fault::broker_down()));
        strikes(&script, 2000).iter().map(Option::is_some).collect::<Vec<_>>()
    };

    let hits = run(1).iter().filter(|hit| **hit).count();

    assert!((60..140).contains(&hits), "{hits} of 2000");
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn cleared_rules_no_longer_fire_but_keep_their_counts() {
    let script = Script::new(1);
    let rule = script.add(Rule::on("GET", "*").answer(Fault::Empty));
    strikes(&script, 1);

    script.clear();

    assert_eq!(strikes(&script, 1), [None]);
    assert_eq!(script.fired(rule), 1);
    assert_eq!(script.reports(), []);
}

#[test]
fn a_rule_has_a_plain_json_form() {
    let text = r#"{"on":{"method":"GET","path":"/accounts/*","times":2,"how_often":{"share":0.5}},
        "answer":{"latency_ms":250}}"#;

    let rule: Rule = serde_json::from_str(text).expect("a rule");

    let late = Fault::Latency(Duration::from_millis(250));
    assert_eq!(rule, Rule::on("GET", "/accounts/*").times(2).share(0.5).answer(late));
    let again = serde_json::to_string(&rule).expect("a rule is plain");
    assert_eq!(serde_json::from_str::<Rule>(&again).expect("a rule"), rule);
}

#[test]
fn a_misspelt_rule_is_refused() {
    let text = r#"{"on":{"method":"GET","path":"*","time":2},"answer":"garbage"}"#;

    assert!(serde_json::from_str::<Rule>(text).is_err());
}
