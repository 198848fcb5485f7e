//! `POST /v1/snaptrade/accounts/{account_id}/syncs`: a sync that a caller asks for.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use contract::snaptrade::{AccountSync, WorkType};
use probes::Context;
use serde::Deserialize;
use store::snaptrade::Account;

use crate::caller::Caller;
use crate::commands::create::{Answer, Request, accept, parse};
use crate::door::{Door, Permit, in_a_task};
use crate::problem::Problem;
use crate::segment::Segment;
use crate::{body, segment};

/// What is to be synced.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sync {
    /// `holdings` or `transactions`.
    #[schemars(with = "String")]
    work_type: WorkType,
    /// Not before this time.
    not_before: Option<DateTime<Utc>>,
}

pub(crate) async fn create(
    State(door): State<Arc<Door>>,
    caller: Caller,
    account_id: Segment,
    Extension(context): Extension<Context>,
    Extension(permit): Extension<Permit>,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    let account_id = segment::id(account_id)?;
    let body = body::read(&headers, body, door.options.command_body, door.options.body_timeout).await?;
    let Sync { work_type, not_before } = parse(&body)?;
    let pool = door.reads.clone();
    let known = in_a_task(async move { store::snaptrade::find(&pool, account_id).await }).await?;
    let is_theirs = |account: &Account| caller.user.as_ref().is_none_or(|user| *user == account.user_id);
    known.filter(is_theirs).ok_or(Problem::NotFound)?;
    let request = Request { caller, context, permit, not_before, bytes: body.len() };
    accept(&door, &headers, &AccountSync { work_type, account_id }, request).await
}
