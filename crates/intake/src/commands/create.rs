//! Accepting a command: the same for every typed route.

use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use chrono::{DateTime, Utc};
use contract::{Job, NewCommand, Origin, Status};
use probes::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::command::Outcome;
use store::intake::Taken;
use uuid::Uuid;

use crate::caller::Caller;
use crate::door::{Door, Permit};
use crate::problem::Problem;
use crate::subject::Subject;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Longer keys are no keys.
const LONGEST_KEY: usize = 200;

/// The answer to a command that was taken in.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Accepted {
    /// The command's id; `Location` has its address.
    id: Uuid,
    #[schemars(with = "String")]
    status: Status,
}

/// What surrounds the job of a command.
pub(crate) struct Request {
    pub(crate) caller: Caller,
    pub(crate) context: Context,
    pub(crate) permit: Permit,
    pub(crate) not_before: Option<DateTime<Utc>>,
    /// The length of the body.
    pub(crate) bytes: usize,
}

pub(crate) type Answer = (StatusCode, [(HeaderName, HeaderValue); 2], Json<Accepted>);

/// Takes a command in and answers after the commit.
pub(crate) async fn accept<J: Job>(
    door: &Arc<Door>,
    headers: &HeaderMap,
    job: &J,
    request: Request,
) -> Result<Answer, Problem> {
    let Request { caller, context, permit, not_before, bytes } = request;
    let origin = Origin {
        idempotency_key: idempotency_key(headers)?,
        actor: caller.actor,
        traceparent: context.trace.traceparent(),
        tracestate: context.trace.tracestate(),
        correlation_id: context.correlation_id,
    };
    let command = NewCommand { not_before, ..NewCommand::new(Uuid::now_v7(), job, origin) };
    let subject = Subject::Command { command: Box::new(command), bytes };
    let Taken::Command(enqueued) = door.batcher.take_in(subject, permit.0).await? else {
        return Err(Problem::Internal);
    };
    let (word, replayed) = match enqueued.outcome {
        Outcome::New => ("accepted", "false"),
        Outcome::Replayed => ("replayed", "true"),
        Outcome::Conflict => ("conflict", "false"),
    };
    door.metrics.commands.with_label_values(&[J::WORKLOAD.kind(), word]).inc();
    if enqueued.outcome == Outcome::Conflict {
        return Err(Problem::IdempotencyKeyReused);
    }
    let location =
        HeaderValue::try_from(format!("/v1/commands/{}", enqueued.id)).map_err(|_| Problem::Internal)?;
    let headers = [(header::LOCATION, location), (IDEMPOTENCY_REPLAYED, HeaderValue::from_static(replayed))];
    Ok((StatusCode::ACCEPTED, headers, Json(Accepted { id: enqueued.id, status: Status::Accepted })))
}

fn idempotency_key(headers: &HeaderMap) -> Result<String, Problem> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Problem::IdempotencyKeyMissing);
    };
    let plain = |key: &&str| {
        (1..=LONGEST_KEY).contains(&key.len())
            && key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    value.to_str().ok().filter(plain).map(str::to_owned).ok_or(Problem::IdempotencyKeyMissing)
}

/// Reads a body as what the route takes. A field that the route doesn't know is refused: nobody sets a priority or
/// a queue from outside.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let value: serde_json::Value = serde_json::from_slice(body).map_err(|_| Problem::BodyNotJson)?;
    // serde's sentence names fields and types of ours, and may quote a short value of the caller's own body.
    serde_json::from_value(value).map_err(|error| Problem::Invalid(error.to_string().into()))
}
