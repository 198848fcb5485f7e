use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use super::{Answer, Call, Effects, header};

const BUDGET: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_hours(1);

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().timeout(BUDGET).build().unwrap()
}

fn call(client: &Client, effects: &Effects, key: Option<&str>) -> RequestBuilder {
    let request = client.post(format!("{}/effects", effects.url()));
    let request = request.header("content-type", "application/json").body("{}");
    key.into_iter().fold(request, |request, key| request.header(header::KEY, key))
}

fn of_group(client: &Client, effects: &Effects, key: &str, group: &str) -> RequestBuilder {
    call(client, effects, Some(key)).header(header::GROUP, group)
}

async fn effect(response: Response) -> Value {
    assert_eq!(response.status(), 200);
    let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    body["effect"].clone()
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BUDGET, future).await.expect("within the budget")
}

#[tokio::test]
async fn a_key_has_one_effect_and_is_told_of_it_each_time() {
    let (effects, client) = (Effects::start().await, client());
    let first = effect(call(&client, &effects, Some("k-1")).send().await.unwrap()).await;
    let again = effect(call(&client, &effects, Some("k-1")).send().await.unwrap()).await;
    let other = effect(call(&client, &effects, Some("k-2")).send().await.unwrap()).await;

    assert_eq!(first, again);
    assert_ne!(first, other);
    assert_eq!((effects.effects_of("k-1"), effects.effects_of("k-2"), effects.effects_of("k-3")), (1, 1, 0));
    let repeats: Vec<bool> = effects.calls().iter().map(|call| call.is_repeat).collect();
    assert_eq!(repeats, [false, true, false]);
}

#[tokio::test]
async fn without_a_key_each_call_has_an_effect() {
    let (effects, client) = (Effects::start().await, client());
    let first = effect(call(&client, &effects, None).send().await.unwrap()).await;
    let second = effect(call(&client, &effects, None).send().await.unwrap()).await;

    assert_ne!(first, second);
    assert_eq!(effects.effects(), 2);
}

#[tokio::test]
async fn a_call_says_under_which_lease_it_was_made_and_the_record_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("effects.jsonl");
    let (effects, client) = (Effects::start_with_record(&path).await, client());
    let request = of_group(&client, &effects, "k-1", "g");
    let request = request.header(header::FENCE, "17/2").header(header::ATTEMPT, "3");
    effect(request.send().await.unwrap()).await;

    let calls = effects.calls();
    assert_eq!((calls[0].fence.as_deref(), calls[0].attempt), (Some("17/2"), Some(3)));
    assert_eq!(effects.last_start("g"), Some(calls[0].at));
    let record = std::fs::read_to_string(&path).unwrap();
    let recorded: Vec<Call> = record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(recorded, calls);
}

#[tokio::test]
async fn a_lost_answer_leaves_an_effect_that_the_next_call_is_told_of() {
    let (effects, client) = (Effects::start().await, client());
    effects.lose_answers(1);
    assert!(call(&client, &effects, Some("k-1")).send().await.is_err());
    let told = effect(call(&client, &effects, Some("k-1")).send().await.unwrap()).await;

    let calls = effects.calls();
    assert_eq!(json!(calls[0].effect), told);
    assert_eq!((calls[0].answer, calls[1].answer), (Answer::Lost, Answer::Given));
    assert_eq!(effects.effects_of("k-1"), 1);
}

#[tokio::test]
async fn a_failed_call_has_no_effect() {
    let (effects, client) = (Effects::start().await, client());
    effects.fail(2, 503);
    for _ in 0..2 {
        assert_eq!(call(&client, &effects, Some("k-1")).send().await.unwrap().status(), 503);
    }
    assert_eq!(effects.effects_of("k-1"), 0);

    effect(call(&client, &effects, Some("k-1")).send().await.unwrap()).await;
    assert_eq!(effects.effects_of("k-1"), 1);
}

#[tokio::test]
async fn calls_that_hang_have_their_effect_and_are_answered_when_it_is_over() {
    let (effects, client) = (Effects::start().await, client());
    effects.hang();
    let hanging = [0, 1].map(|n| tokio::spawn(of_group(&client, &effects, &format!("k-{n}"), "g").send()));
    soon(effects.until(|effects| effects.effects() == 2)).await;
    assert_eq!(effects.most_at_once("g"), 2);

    effects.heal();
    for call in hanging {
        effect(call.await.unwrap().unwrap()).await;
    }
    effect(of_group(&client, &effects, "k-2", "g").send().await.unwrap()).await;
    assert_eq!(effects.calls()[2].in_flight_group, Some(1), "the others have left");
}

#[tokio::test]
async fn a_caller_who_leaves_is_counted_out_while_the_answer_is_late() {
    let (effects, client) = (Effects::start().await, client());
    effects.answer_late(LONG);
    let impatient = tokio::spawn(of_group(&client, &effects, "k-1", "g").send());
    soon(effects.until(|effects| effects.effects_of("k-1") == 1)).await;
    impatient.abort();
    soon(effects.until(|effects| effects.in_work("g") == 0)).await;

    effects.heal();
    effect(of_group(&client, &effects, "k-1", "g").send().await.unwrap()).await;
    assert_eq!((effects.most_at_once("g"), effects.effects_of("k-1")), (1, 1));
}

#[tokio::test]
async fn what_is_not_json_is_no_call() {
    let (effects, client) = (Effects::start().await, client());
    let response = call(&client, &effects, Some("k-1")).body("effect!").send().await.unwrap();

    assert_eq!(response.status(), 400);
    assert!(effects.calls().is_empty());
}
