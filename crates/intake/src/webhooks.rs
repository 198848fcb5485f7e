//! Webhooks of all senders: proof first, then the inbox, then 202, whatever is inside.

pub(crate) mod killbill;
pub(crate) mod snaptrade;
pub(crate) mod standard;

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use probes::Context;
use serde::Serialize;
use store::inbox::{Outcome, Receipt};
use store::intake::Taken;
use strum::IntoStaticStr;
use uuid::Uuid;
use webhook::Unauthenticated;

use crate::door::{Door, Permit};
use crate::problem::Problem;
use crate::subject::Subject;

/// The answer to a webhook that was taken in.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Answer {
    /// What became of the delivery.
    outcome: Word,
    /// The inbox row that stands for it.
    inbox_id: Uuid,
    /// The command that it started, or that sees to it; absent where there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<Uuid>,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, Serialize, IntoStaticStr, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Word {
    /// New, and accepted.
    Queued,
    /// Accepted before.
    Duplicate,
    /// New, and part of work that waits already.
    Coalesced,
    /// Kept for a person to look at; sending it again changes nothing.
    Quarantined,
}

impl Word {
    const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Queued => Self::Queued,
            Outcome::Duplicate => Self::Duplicate,
            Outcome::Coalesced => Self::Coalesced,
            Outcome::Quarantined => Self::Quarantined,
        }
    }
}

/// Takes an authentic delivery in and answers after the commit.
async fn take_in(
    door: &Arc<Door>,
    permit: Permit,
    source: &'static str,
    subject: Subject,
    context: &Context,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let Taken::Webhook(receipt) = door.batcher.take_in(subject, permit.0).await? else {
        return Err(Problem::Internal);
    };
    let outcome = Word::of(receipt.outcome);
    door.metrics.webhooks.with_label_values(&[source, outcome.into()]).inc();
    door.repeats.count(&receipt, &context.correlation_id);
    log(source, &receipt, context);
    let Receipt { inbox_id, command_id, .. } = receipt;
    Ok((StatusCode::ACCEPTED, Json(Answer { outcome, inbox_id, command_id })))
}

fn log(source: &'static str, receipt: &Receipt, context: &Context) {
    let Receipt { inbox_id, command_id, .. } = receipt;
    let correlation_id = context.correlation_id.as_str();
    match receipt.outcome {
        Outcome::Queued => {}
        Outcome::Duplicate => {
            tracing::info!(webhook.source = source, inbox.id = %inbox_id, correlation_id, "Duplicate webhook");
        }
        Outcome::Coalesced => {
            tracing::info!(webhook.source = source, inbox.id = %inbox_id, command.id = ?command_id, correlation_id, "coalescing webhook");
        }
        Outcome::Quarantined => {
            tracing::warn!(webhook.source = source, inbox.id = %inbox_id, correlation_id, "webhook set aside");
        }
    }
}

/// A sender that proved nothing is counted and told nothing.
fn refuse(door: &Door, source: &'static str) -> Problem {
    door.metrics.webhooks.with_label_values(&[source, "unauthenticated"]).inc();
    Problem::Unauthenticated
}

/// The value of a header that proves something. A second one is no proof: it could be somebody's in between.
fn proof<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a [u8]>, Unauthenticated> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(HeaderValue::as_bytes)),
        (_, Some(_)) => Err(Unauthenticated),
    }
}
