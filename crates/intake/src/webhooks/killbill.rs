//! `POST /webhooks/killbill/{tenant}`, on the internal listener only.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use contract::killbill::PaymentFacts;
use probes::Context;
use store::inbox::Fate;
use webhook::killbill::{ADMISSION_HEADER, Event, Meaning, SOURCE, is_tenant};

use super::{Answer, proof, refuse, take_in};
use crate::door::{Door, Permit};
use crate::problem::Problem;
use crate::segment::Segment;
use crate::subject::{Envelope, Subject};
use crate::{body, segment};

pub(crate) async fn receive(
    State(door): State<Arc<Door>>,
    tenant: Segment,
    Extension(context): Extension<Context>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Answer>), Problem> {
    // The proof lies in a header, so nobody sends a body without it.
    proof(&headers, ADMISSION_HEADER)
        .and_then(|token| door.options.killbill.verify(token))
        .map_err(|_| refuse(&door, SOURCE))?;
    let tenant = segment::name(tenant)?;
    if !is_tenant(&tenant) {
        return Err(Problem::NotFound);
    }
    let body = body::read(&headers, body, door.options.webhook_body, door.options.body_timeout).await?;
    let envelope = Envelope::new(SOURCE, tenant, body, context.clone());
    let received_at = u64::try_from(envelope.received_at.timestamp()).unwrap_or_default();
    let event = Event::read(&envelope.tenant, &envelope.body, received_at, door.options.killbill_window);
    let fate = match event.meaning() {
        Meaning::TakeFactIn { payment_id } => {
            let job = PaymentFacts { tenant: envelope.tenant.clone(), payment_id };
            Fate::Fact { payment_id, command: envelope.command(&job) }
        }
        Meaning::Record => Fate::Record,
        Meaning::Quarantine(reason) => Fate::Quarantine(reason.into()),
    };
    let envelope = Envelope {
        identity: Some(event.identity),
        event_type: event.event_type,
        is_clean_json: event.is_clean_json,
        ..envelope
    };
    take_in(&door, permit, SOURCE, Subject::Webhook { envelope, fate }, &context).await
}
