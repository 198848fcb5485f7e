//! What every provider call passes: it is counted in, delayed, perhaps struck by a rule, recorded and counted
//! out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::Error;
use super::overlap::Overlaps;
use super::record::{Call, Record};
use super::script::{Fault, Script};
use crate::server::HangUp;

/// What all providers of a sandbox share.
pub(super) struct Desk {
    pub(super) record: Record,
    pub(super) overlaps: Overlaps,
    pub(super) script: Script,
    latency: Duration,
    started: Instant,
    changed: watch::Sender<()>,
}

impl Desk {
    pub(super) fn open(record: Option<&Path>, latency: Duration, seed: u64) -> Result<Self, Error> {
        Ok(Self {
            record: Record::open(record)?,
            overlaps: Overlaps::default(),
            script: Script::new(seed),
            latency,
            started: Instant::now(),
            changed: watch::Sender::new(()),
        })
    }

    /// Signals whenever a call begins or ends.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Lets the time pass that every call takes.
    pub(super) async fn take_time(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
    }

    /// Counts a call in.
    pub(super) fn enter(self: &Arc<Self>, provider: &'static str, parts: &Parts, key: Option<Uuid>) -> Visit {
        let begun = Instant::now();
        let (in_flight_provider, in_flight_key) = self.overlaps.enter(provider, key);
        self.changed.send_replace(());
        let call = Call {
            at: Utc::now(),
            at_ms: whole_ms(begun - self.started),
            duration_ms: 0,
            provider: provider.to_owned(),
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            key,
            request_id: Uuid::now_v7(),
            status: None,
            in_flight_provider,
            in_flight_key,
            signature_ok: false,
            answer_lost: true,
            asked_wait_s: None,
            rule: None,
        };
        Visit { desk: Arc::clone(self), begun, provider, call }
    }
}

/// A call in work. Dropping it counts the call out and records it: without an answer unless it has left with
/// one.
pub(super) struct Visit {
    desk: Arc<Desk>,
    begun: Instant,
    provider: &'static str,
    call: Call,
}

impl Visit {
    pub(super) fn request_id(&self) -> Uuid {
        self.call.request_id
    }

    /// The caller proved who it is.
    pub(super) fn recognise(&mut self) {
        self.call.signature_ok = true;
    }

    /// The answer asks the caller to stay away for so many seconds.
    pub(super) fn ask_to_wait(&mut self, seconds: u64) {
        self.call.asked_wait_s = Some(seconds);
    }

    /// Asks the script about this call; `path` is the provider's canonical one.
    pub(super) fn strike(&mut self, path: &str) -> Option<Fault> {
        let (rule, fault) = self.desk.script.strike(&self.call.method, path, self.call.key)?;
        self.call.rule = Some(rule);
        Some(fault)
    }

    /// Ends the call with its answer.
    pub(super) fn leave(mut self, response: &Response) {
        self.call.status = Some(response.status().as_u16());
        self.call.answer_lost = response.extensions().get::<HangUp>().is_some();
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.call.duration_ms = whole_ms(self.begun.elapsed());
        self.desk.overlaps.leave(self.provider, self.call.key);
        self.desk.record.push(self.call.clone());
        self.desk.changed.send_replace(());
    }
}

/// Answers what no provider knows. It is recorded, because a client that calls it has a fault.
pub(super) async fn unknown_route(State(desk): State<Arc<Desk>>, request: Request) -> Response {
    let (parts, _body) = request.into_parts();
    let visit = desk.enter("unknown", &parts, None);
    let response = (StatusCode::NOT_FOUND, Json(json!({ "detail": "Not found." }))).into_response();
    visit.leave(&response);
    response
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
