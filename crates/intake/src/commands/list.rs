//! `GET /v1/commands`: the newest first, in pages.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use contract::{Status, Workload};
use serde::{Deserialize, Serialize};
use store::command::{Filter, list as read};
use uuid::Uuid;

use super::View;
use crate::caller::Caller;
use crate::door::{Door, in_a_task};
use crate::problem::Problem;

const USUAL_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 200;

/// Parameters of a list.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Only commands of this workload.
    workload: Option<String>,
    /// Only commands with this status; of those that are `queued`, the 10,000 newest messages of each queue are looked at.
    status: Option<String>,
    /// Commands in one page: 1 to 200; 50 where it is left out.
    limit: Option<u32>,
    /// The `next` of the page before.
    cursor: Option<Uuid>,
}

/// A page.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Page {
    /// Newest first.
    commands: Vec<View>,
    /// The `cursor` of the next page; absent on the last one.
    next: Option<Uuid>,
}

pub(crate) async fn list(
    State(door): State<Arc<Door>>,
    caller: Caller,
    parameters: Result<Query<Parameters>, QueryRejection>,
) -> Result<Json<Page>, Problem> {
    let invalid = |sentence: String| Problem::Invalid(sentence.into());
    let Query(parameters) = parameters.map_err(|error| invalid(error.body_text()))?;
    let limit = parameters.limit.unwrap_or(USUAL_PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(invalid(format!("limit is 1 to {LARGEST_PAGE}")));
    }
    let workload = parameters.workload.map(|kind| kind.parse::<Workload>()).transpose();
    let status = parameters.status.map(|word| word.parse::<Status>()).transpose();
    let filter = Filter {
        scope: caller.sees,
        workload: workload.map_err(|error| invalid(error.to_string()))?,
        status: status.map_err(|_| invalid("there is no such status".to_owned()))?,
        before: parameters.cursor,
        limit: limit + 1,
    };
    let pool = door.reads.clone();
    let mut commands = in_a_task(async move { read(&pool, &filter).await }).await?;
    let has_more = commands.len() > limit as usize;
    commands.truncate(limit as usize);
    let next = commands.last().map(|command| command.id).filter(|_| has_more);
    Ok(Json(Page { commands: commands.into_iter().map(View::from).collect(), next }))
}
