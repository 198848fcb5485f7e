//! A drill in small: what it checks holds, however fast it was.

use lab::connection::Settings;
use lab::spike::{Check, Options, snaptrade_fanout};

use crate::platform::Platform;
use crate::program::Program;

const WORKER: &[&str] = &["--queue", "snaptrade-account-sync"];

/// A fiftieth of the whole, before a provider that counts its quota in two seconds instead of sixty.
fn options(platform: &Platform) -> Options {
    Options {
        scale: 0.02,
        seed: 20_260_429,
        gateways: platform.gateways.iter().map(|gateway| gateway.url.clone()).collect(),
        workers: 2,
        processes: Vec::new(),
        kill: false,
        idle_seconds: 1,
        quota_seconds: 2,
        wait_seconds: 120,
        json: None,
        html: None,
        about: "a test".to_owned(),
    }
}

#[tokio::test]
async fn a_fan_out_in_small_holds_and_is_told() {
    let platform = Platform::with(2, 0).await;
    let workers = [0; 2].map(|_| Program::start("webhook-worker", WORKER, &platform.settings()));
    let outcome = snaptrade_fanout(&options(&platform), &Settings::of(platform.settings())).await.unwrap();

    let scenario = &outcome.scenario;
    // How fast reads were is no business of a test.
    let broken: Vec<&Check> =
        scenario.checks.iter().filter(|check| !check.held && check.name != "status_p99").collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!((scenario.offered, scenario.shed, scenario.duplicate), (100, 0, 60));
    assert_eq!(scenario.accepted + scenario.coalesced, 40);
    assert_eq!((scenario.succeeded, scenario.dead_lettered), (scenario.accepted, 0));
    assert!(outcome.page.contains("<svg") && scenario.complete_ms.is_some());
    for worker in workers {
        assert_eq!(worker.terminate().await, Some(0));
    }
}
