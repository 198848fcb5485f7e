//! When the signing keys are fetched, and what counts while they can't be.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use providers::supabase::Rejection;
use testkit::supabase::{Answer, Publisher, SigningKey};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::{claims, is_unauthenticated, later, users};

/// Between two fetches.
const PAUSE: Duration = Duration::from_secs(10);

const DOWN: Answer = Answer::Status("503 Service Unavailable", Vec::new());

#[tokio::test]
async fn many_requests_at_the_start_wait_for_one_fetch() {
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let (users, token) = (users(&publisher), key.token(&claims()));

    let verified = join_all((0..50).map(|_| users.verify(&token))).await;

    assert!(verified.iter().all(Result::is_ok));
    assert_eq!(publisher.asked(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_takes_nobodys_keys_along() {
    let key = SigningKey::es256("key");
    let gate = Arc::new(Semaphore::new(0));
    let Answer::Body(set) = Answer::keys([&key]) else { unreachable!() };
    let publisher = Publisher::start(Answer::Held(set, gate.clone())).await;
    let (users, token) = (users(&publisher), key.token(&claims()));
    let verify = || {
        let (users, token) = (users.clone(), token.clone());
        tokio::spawn(async move { users.verify(&token).await })
    };

    let first = verify();
    publisher.is_asked(1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let second = verify();
    gate.add_permits(1);

    assert!(second.await.unwrap().is_ok());
    assert_eq!(publisher.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_once_when_a_token_names_it() {
    let (old, new) = (SigningKey::es256("old"), SigningKey::es256("new"));
    let publisher = Publisher::start(Answer::keys([&old])).await;
    let users = users(&publisher);
    users.verify(&old.token(&claims())).await.unwrap();
    publisher.answers(Answer::keys([&old, &new]));
    later(PAUSE).await;

    let token = new.token(&claims());
    let verified = join_all((0..20).map(|_| users.verify(&token))).await;

    assert!(verified.iter().all(Result::is_ok));
    assert!(users.verify(&old.token(&claims())).await.is_ok());
    assert_eq!(publisher.asked(), 2);
}

#[tokio::test]
async fn a_storm_of_unknown_keys_costs_one_fetch_each_ten_seconds() {
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let (users, token) = (users(&publisher), key.token(&claims()));
    let strangers: Vec<String> =
        (0..50).map(|n| SigningKey::es256(&format!("stranger-{n}")).token(&claims())).collect();

    for asked in 1..=3 {
        for _ in 0..2 {
            let verified = join_all(strangers.iter().map(|token| users.verify(token))).await;
            assert!(verified.iter().all(is_unauthenticated));
            assert!(users.verify(&token).await.is_ok());
            assert_eq!(publisher.asked(), asked);
        }
        later(PAUSE).await;
    }
}

#[tokio::test]
async fn without_keys_nobody_is_let_in_and_nobody_is_called_a_forger() {
    let key = SigningKey::es256("key");
    let token = key.token(&claims());
    let Answer::Body(set) = Answer::keys([&key]) else { unreachable!() };
    let padded = [set.as_slice(), &vec![b' '; 10 * 1024 * 1024]].concat();

    for (what, answer) in [
        ("an error", DOWN),
        ("an error that looks like keys", Answer::Status("500 Internal Server Error", set.clone())),
        ("a redirect", Answer::Status("302 Found", Vec::new())),
        ("garbage", Answer::Body(b"<html>sign in</html>".to_vec())),
        ("half a set", Answer::Body(set[..set.len() - 1].to_vec())),
        ("no set", Answer::Body(b"{\"message\":\"no API key\"}".to_vec())),
        ("10 MB", Answer::Body(padded)),
    ] {
        let publisher = Publisher::start(answer).await;
        let users = users(&publisher);

        assert_eq!(users.verify(&token).await, Err(Rejection::Unavailable), "{what}");
        assert_eq!(users.verify(&token).await, Err(Rejection::Unavailable), "{what}");
        assert_eq!(publisher.asked(), 1, "{what}");
    }
}

#[tokio::test]
async fn a_publisher_that_is_not_there_is_asked_again_after_a_while() {
    let key = SigningKey::es256("key");
    let token = key.token(&claims());
    let publisher = Publisher::start(DOWN).await;
    let users = users(&publisher);
    assert_eq!(users.verify(&token).await, Err(Rejection::Unavailable));

    publisher.answers(Answer::keys([&key]));
    assert_eq!(users.verify(&token).await, Err(Rejection::Unavailable));
    later(PAUSE).await;

    assert!(users.verify(&token).await.is_ok());
    assert_eq!(publisher.asked(), 2);
}

#[tokio::test]
async fn a_closed_port_is_no_keys() {
    let mut publisher = Publisher::start(DOWN).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    publisher.url.set_port(Some(closed.port())).unwrap();

    let verified = users(&publisher).verify(&SigningKey::es256("key").token(&claims())).await;

    assert_eq!(verified, Err(Rejection::Unavailable));
}

#[tokio::test]
async fn a_publisher_that_never_answers_is_given_three_seconds() {
    let publisher = Publisher::start(Answer::Held(Vec::new(), Arc::new(Semaphore::new(0)))).await;
    let (users, token) = (users(&publisher), SigningKey::es256("key").token(&claims()));
    let verifying = tokio::spawn(async move { users.verify(&token).await });
    publisher.is_asked(1).await;

    tokio::time::pause();
    let before = tokio::time::Instant::now();
    let verified = verifying.await.unwrap();

    assert_eq!(verified, Err(Rejection::Unavailable));
    assert!(before.elapsed() <= Duration::from_millis(3100), "{:?}", before.elapsed());
}

#[tokio::test]
async fn old_keys_are_renewed_behind_a_request_that_does_not_wait() {
    let (old, new) = (SigningKey::es256("old"), SigningKey::es256("new"));
    let publisher = Publisher::start(Answer::keys([&old])).await;
    let users = users(&publisher);
    users.verify(&old.token(&claims())).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let Answer::Body(set) = Answer::keys([&new]) else { unreachable!() };
    publisher.answers(Answer::Held(set, gate.clone()));
    later(Duration::from_secs(595)).await;
    assert!(users.verify(&old.token(&claims())).await.is_ok());
    later(Duration::from_secs(5)).await;

    let token = old.token(&claims());
    let verified = join_all((0..5).map(|_| users.verify(&token))).await;
    assert!(verified.iter().all(Result::is_ok));
    publisher.is_asked(2).await;
    assert!(users.verify(&old.token(&claims())).await.is_ok(), "the answer is not there yet");
    gate.add_permits(1);

    assert!(users.verify(&new.token(&claims())).await.is_ok());
    assert!(is_unauthenticated(&users.verify(&old.token(&claims())).await), "it was withdrawn");
    later(Duration::from_secs(7)).await;
    assert!(is_unauthenticated(&users.verify(&old.token(&claims())).await));
    assert_eq!(publisher.asked(), 2, "the pause counts from the 600th second: the 595th began no fetch");
}

#[tokio::test]
async fn known_keys_outlive_their_publisher_by_a_day() {
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let (users, token) = (users(&publisher), key.token(&claims()));
    let stranger = SigningKey::es256("stranger").token(&claims());
    users.verify(&token).await.unwrap();

    for (before, answer) in [DOWN, Answer::Body(b"garbage".to_vec()), Answer::Body(vec![b' '; 10_000_000])]
        .into_iter()
        .enumerate()
    {
        publisher.answers(answer);
        later(Duration::from_hours(7)).await;
        assert!(users.verify(&token).await.is_ok(), "after {} hours", (before + 1) * 7);
        // It waits for the fetch that the request before began.
        assert!(is_unauthenticated(&users.verify(&stranger).await));
        assert_eq!(publisher.asked(), before + 2);
    }
    later(Duration::from_hours(3)).await;

    assert_eq!(users.verify(&token).await, Err(Rejection::Unavailable));
    publisher.answers(Answer::keys([&key]));
    later(PAUSE).await;
    assert!(users.verify(&token).await.is_ok());
}

#[tokio::test]
async fn a_publisher_that_withdraws_all_keys_is_believed() {
    let key = SigningKey::es256("key");
    let publisher = Publisher::start(Answer::keys([&key])).await;
    let (users, token) = (users(&publisher), key.token(&claims()));
    users.verify(&token).await.unwrap();
    publisher.answers(Answer::keys([]));
    later(PAUSE).await;

    assert!(is_unauthenticated(&users.verify(&SigningKey::es256("stranger").token(&claims())).await));
    assert!(is_unauthenticated(&users.verify(&token).await));
}
