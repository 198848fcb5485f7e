//! `POST /webhooks/snaptrade`.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use contract::snaptrade::AccountSync;
use contract::{Actor, Job, NewCommand};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::inbox::{Delivery, Fate, Outcome, Receipt};
use store::{Pool, inbox};
use uuid::Uuid;
use webhook::Identity;
use webhook::snaptrade::{Event, Meaning, SIGNATURE_HEADER, SOURCE};

use crate::body;
use crate::context::Context;
use crate::door::{Door, in_a_task};
use crate::problem::Problem;

/// An authenticated delivery is always answered 202, whatever is in it: the sender would only repeat it.
pub(crate) async fn receive(
    State(door): State<Arc<Door>>,
    Extension(context): Extension<Context>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let body = body::read(&headers, body, door.options.webhook_body, door.options.body_timeout).await?;
    let mut signatures = headers.get_all(SIGNATURE_HEADER).iter();
    let signature = signatures.next().map(axum::http::HeaderValue::as_bytes);
    let proven = signatures.next().is_none() && door.options.snaptrade.verify(signature, &body).is_ok();
    if !proven {
        door.metrics.webhooks.with_label_values(&[SOURCE, "unauthenticated"]).inc();
        return Err(Problem::Unauthenticated);
    }
    let pool = door.intake.clone();
    let receipt = in_a_task(async move { take_in(&pool, body, &context).await }).await?;
    door.metrics.webhooks.with_label_values(&[SOURCE, word(receipt.outcome)]).inc();
    if receipt.outcome == Outcome::Duplicate {
        tracing::info!(inbox_id = %receipt.inbox_id, "Duplicate webhook");
    }
    let answer = json!({
        "outcome": word(receipt.outcome),
        "inbox_id": receipt.inbox_id,
        "command_id": receipt.command_id,
    });
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Queued => "queued",
        Outcome::Duplicate => "duplicate",
        Outcome::Quarantined => "quarantined",
    }
}

async fn take_in(pool: &Pool, body: Bytes, context: &Context) -> Result<Receipt, store::Error> {
    let event = Event::read(&body);
    let account = match event.account_id {
        Some(id) => store::snaptrade::states(pool, &[id]).await?.remove(&id),
        None => None,
    };
    let delivery = delivery(body, &event, &event.meaning(account), context);
    let receipts = inbox::accept(pool, std::slice::from_ref(&delivery)).await?;
    Ok(receipts[0])
}

fn delivery(body: Bytes, event: &Event, meaning: &Meaning, context: &Context) -> Delivery {
    let sha256: [u8; 32] = Sha256::digest(&body).into();
    let identity = event.identity.clone().unwrap_or_else(|| Identity::of_body(&sha256)).into_string();
    let fate = match meaning {
        Meaning::Sync(job) => Fate::Start(Box::new(command(job, &identity, context))),
        Meaning::Record => Fate::Record,
        Meaning::Quarantine(reason) => Fate::Quarantine((*reason).into()),
    };
    Delivery {
        id: Uuid::now_v7(),
        source: SOURCE,
        tenant: String::new(),
        identity,
        event_type: event.event_type.clone(),
        body,
        sha256,
        is_clean_json: event.is_clean_json,
        fate,
        traceparent: context.trace.traceparent(),
        correlation_id: context.correlation_id.clone(),
    }
}

fn command(job: &AccountSync, identity: &str, context: &Context) -> NewCommand {
    NewCommand {
        id: Uuid::now_v7(),
        workload: AccountSync::WORKLOAD,
        kind: AccountSync::KIND,
        version: AccountSync::VERSION,
        idempotency_key: format!("{SOURCE}:{identity}"),
        payload: json!(job),
        actor: Actor::provider(SOURCE),
        class: AccountSync::WORKLOAD.spec().class,
        not_before: None,
        snapshots: Vec::new(),
        expected_revision: None,
        traceparent: context.trace.traceparent(),
        tracestate: context.trace.tracestate(),
        correlation_id: context.correlation_id.clone(),
    }
}
