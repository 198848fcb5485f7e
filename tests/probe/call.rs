//! The call at the provider, guarded by the lease.

use std::time::Duration;

use contract::{Blocked, Cause, RetryClass, Verdict};
use lab::probe::Probe;
use queue::Lease;
use reqwest::Client;
use serde::Deserialize;
use serde_json::json;
use store::Effect;
use telemetry::log::chain;
use testkit::effects::header;

/// Where effects happen.
pub(crate) struct Provider {
    http: Client,
    timeout: Duration,
}

/// The provider's answer.
#[derive(Deserialize)]
struct Told {
    effect: String,
}

impl Provider {
    /// Calls that take longer have failed.
    pub(crate) fn new(timeout: Duration) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder().timeout(timeout).no_proxy().build().expect("constant options");
        Self { http, timeout }
    }

    /// Has the probe's effect, if the call would end while the lease is ours.
    pub(crate) async fn call(&self, job: &Probe, lease: &Lease) -> Verdict<Effect> {
        let Some(under_way) = lease.begin_call(self.timeout) else {
            let sentence = "the call might outlast the lease";
            let cause = Cause::new(RetryClass::NotReady, "lease_too_short", sentence);
            return Verdict::NotYet { why: Blocked::NotReady, after: None, cause };
        };
        let told = self.post(job, lease).await;
        under_way.end();
        match told {
            Ok(told) => {
                lease.note_request(Some(told.effect));
                Verdict::Done(Effect::None)
            }
            Err(cause) => Verdict::Retry(cause),
        }
    }

    async fn post(&self, job: &Probe, lease: &Lease) -> Result<Told, Cause> {
        let fence = lease.fence();
        let request = self
            .http
            .post(format!("{}/effects", job.url))
            .header("content-type", "application/json")
            .header(header::KEY, &job.key)
            .header(header::GROUP, &job.group)
            .header(header::FENCE, format!("{}/{}", fence.msg_id, fence.read_ct))
            .header(header::ATTEMPT, lease.attempt())
            .body(json!({ "command": lease.command() }).to_string());
        let answer = async { request.send().await?.error_for_status()?.bytes().await };
        let body = answer.await.map_err(|error| failed(chain(&error)))?;
        serde_json::from_slice(&body).map_err(|_| failed("the answer names no effect"))
    }
}

fn failed(sentence: impl AsRef<str>) -> Cause {
    Cause::new(RetryClass::Transient, "call", sentence)
}
