//! `GET /v1/commands/{id}`, which can wait for the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use contract::Status;
use serde::Deserialize;
use store::command::Command;
use uuid::Uuid;

use super::View;
use crate::caller::Caller;
use crate::door::{Door, in_a_task};
use crate::problem::Problem;
use crate::segment::{self, Segment};

/// How often a waiting read looks again: soon at first, since most commands are short.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const SLOWEST_LOOK: Duration = Duration::from_secs(1);

/// Parameters of a status read.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Wait so long for the command to end, such as `20s`; the answer comes at the latest then.
    wait: Option<String>,
}

pub(crate) async fn get(
    State(door): State<Arc<Door>>,
    caller: Caller,
    id: Segment,
    parameters: Result<Query<Parameters>, QueryRejection>,
) -> Result<Json<View>, Problem> {
    let Query(Parameters { wait }) =
        parameters.map_err(|_| Problem::Invalid("the one parameter is wait, such as 20s".into()))?;
    let wait = wait.as_deref().map_or(Ok(Duration::ZERO), seconds)?.min(door.options.longest_wait);
    let id = segment::id(id)?;
    let (deadline, mut pause) = (Instant::now() + wait, FIRST_LOOK);
    loop {
        let command = read(&door, &caller, id).await?;
        let has_ended = command.status.parse().is_ok_and(Status::is_terminal);
        if has_ended || Instant::now() + pause >= deadline {
            return Ok(Json(command.into()));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(SLOWEST_LOOK);
    }
}

/// The command, where this caller may see it.
pub(super) async fn read(door: &Door, caller: &Caller, id: Uuid) -> Result<Command, Problem> {
    let pool = door.reads.clone();
    let command = in_a_task(async move { store::command::get(&pool, id).await }).await?;
    let visible = |command: &Command| caller.sees.as_ref().is_none_or(|scope| *scope == command.scope);
    command.filter(visible).ok_or(Problem::NotFound)
}

/// `20` or `20s`.
fn seconds(text: &str) -> Result<Duration, Problem> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let digits = !number.is_empty() && number.len() <= 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    let invalid = || Problem::Invalid("wait is a number of seconds, such as 20s".into());
    number.parse().ok().filter(|_| digits).map(Duration::from_secs).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_of_seconds() {
        assert_eq!(seconds("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "s", "-1", "1.5", "99999", "1m", "20ss", "∞", " 1"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
