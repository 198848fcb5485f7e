//! `POST /v1/commands/{id}/cancel`: takes a command back while nobody runs it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use contract::Status;
use store::command::cancel as take_back;

use super::{View, get};
use crate::caller::Caller;
use crate::door::{Door, in_a_task};
use crate::problem::Problem;
use crate::segment::{self, Segment};

/// Cancelling twice is cancelling once.
pub(crate) async fn cancel(
    State(door): State<Arc<Door>>,
    caller: Caller,
    id: Segment,
) -> Result<Json<View>, Problem> {
    let id = segment::id(id)?;
    // Whether this caller may see it comes before whether it can be done.
    get::read(&door, &caller, id).await?;
    let pool = door.intake.clone();
    let cancelled = in_a_task(async move { take_back(&pool, id).await }).await?;
    let command = get::read(&door, &caller, id).await?;
    match command.status.parse() {
        Ok(Status::Cancelled) => Ok(Json(command.into())),
        // Sent back by an operator between our two looks: it is cancelled no more, but it was.
        _ if cancelled => Ok(Json(command.into())),
        Ok(status) if status.is_terminal() => Err(Problem::CommandFinished),
        _ => Err(Problem::CommandRunning),
    }
}
