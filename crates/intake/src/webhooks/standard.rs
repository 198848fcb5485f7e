//! `POST /webhooks/standard/{source}`: any sender that follows Standard Webhooks.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::Utc;
use probes::Context;
use store::inbox::Fate;
use webhook::Unauthenticated;
use webhook::standard::{Event, ID_HEADER, Meaning, Rejection, SIGNATURE_HEADER, SOURCE, TIMESTAMP_HEADER};

use super::{Answer, proof, refuse, take_in};
use crate::door::{Door, Permit};
use crate::problem::Problem;
use crate::segment::Segment;
use crate::subject::{Envelope, Subject};
use crate::{body, segment};

pub(crate) async fn receive(
    State(door): State<Arc<Door>>,
    source: Segment,
    Extension(context): Extension<Context>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    let source = segment::name(source)?;
    let body = body::read(&headers, body, door.options.webhook_body, door.options.body_timeout).await?;
    let text =
        |name| proof(&headers, name).map(|value| value.and_then(|value| std::str::from_utf8(value).ok()));
    let proven = || -> Result<_, Unauthenticated> {
        Ok((text(ID_HEADER)?, text(TIMESTAMP_HEADER)?, text(SIGNATURE_HEADER)?))
    };
    let (id, timestamp, signature) = proven().map_err(|_| refuse(&door, SOURCE))?;
    let now = Utc::now().timestamp();
    let verdict = door.options.standard.verify(&source, id, timestamp, signature, &body, now);
    verdict.map_err(|rejection| {
        if let Rejection::Skewed { seconds } = rejection {
            door.metrics
                .webhook_skew_seconds
                .with_label_values(&[SOURCE])
                .observe(f64::from(u32::try_from(seconds.unsigned_abs()).unwrap_or(u32::MAX)));
            tracing::warn!(
                webhook.source = SOURCE,
                webhook.tenant = source,
                skew_s = seconds,
                "signed at another time"
            );
        }
        refuse(&door, SOURCE)
    })?;
    let event = Event::read(id, &body);
    let fate = match event.meaning() {
        Meaning::Record => Fate::Record,
        Meaning::Quarantine(reason) => Fate::Quarantine(reason.into()),
    };
    let envelope = Envelope {
        identity: event.identity,
        event_type: event.event_type,
        is_clean_json: event.is_clean_json,
        ..Envelope::new(SOURCE, source, body, context.clone())
    };
    take_in(&door, permit, SOURCE, Subject::Webhook { envelope, fate }, &context).await
}
