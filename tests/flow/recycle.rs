//! A worker that can't get rid of its threads leaves in order and asks to be started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use contract::snaptrade::AccountSync;
use contract::{Verdict, Workload};
use intake::Services;
use process::{Error, WorkerOptions};
use queue::{Handler, Lease};
use secrecy::SecretString;
use store::Effect;
use tokio_util::sync::CancellationToken;

use crate::platform::{BUDGET, Platform, QUEUE, SERVICE_TOKEN};

/// More abandoned threads than a machine of any size bears.
const TOO_MANY: u32 = 8;

/// Computes until the test lets it go, whatever it is asked.
struct Deaf(Arc<AtomicBool>);

impl Handler for Deaf {
    type Job = AccountSync;

    async fn handle(&self, _: &AccountSync, lease: &Lease) -> Verdict<Effect> {
        let let_go = self.0.clone();
        let computed = lease.compute(move |_| {
            while !let_go.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        });
        computed.await.map_or_else(Verdict::Retry, |()| Verdict::Done(Effect::None))
    }
}

#[tokio::test]
async fn a_worker_with_too_many_abandoned_threads_loses_nothing_and_asks_to_be_started_again() {
    let platform = Platform::with_accounts(TOO_MANY as usize).await;
    for account in 0..TOO_MANY as usize {
        platform.deliver(&platform.holdings_event(&format!("evt-{account}"), account)).await;
    }
    let options = WorkerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        store: store::Options::of_url(platform.database.url_as("spillway_worker"), TOO_MANY),
        queue: queue::Options {
            concurrency: TOO_MANY,
            run_deadline: Duration::from_millis(200),
            ..queue::Options::of(Workload::SnaptradeAccountSync)
        },
        services: Services::new(SecretString::from(SERVICE_TOKEN), Vec::new()),
    };
    let let_go = Arc::new(AtomicBool::new(false));
    let (common, handler) = (process::Options::brief(), Deaf(let_go.clone()));
    let work = process::work(&common, options, |_| handler, CancellationToken::new());
    let outcome = tokio::time::timeout(BUDGET, work).await.expect("it ends by itself");
    let_go.store(true, Ordering::SeqCst);

    assert!(matches!(outcome, Err(Error::StartAgain(_))), "{outcome:?}");
    assert_eq!(platform.count("spillway.process where queue is not null").await, 0);
    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, i64::from(TOO_MANY));
    let open = "spillway.command where status in ('queued', 'retrying')";
    assert_eq!(platform.count(open).await, i64::from(TOO_MANY));
}
