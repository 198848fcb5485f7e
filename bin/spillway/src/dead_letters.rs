//! `spillway dead-letters …`.

use clap::Subcommand;
use contract::Workload;
use process::Error;
use serde_json::{Value, json};
use store::dead_letter::{DeadLetter, Details, Failure, OperatorAction, list, show as read};
use uuid::Uuid;

use crate::decide::{self, Decision};
use crate::{database, show};

#[derive(Subcommand)]
pub(crate) enum Action {
    /// List the newest open dead letters.
    List {
        /// Only this workload's, such as snaptrade-account-sync.
        #[arg(long)]
        workload: Option<Workload>,
        /// How many.
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Show one dead letter with its failed attempts.
    Show {
        /// The dead letter's id.
        id: Uuid,
    },
    #[command(flatten)]
    Decide(Decision),
}

pub(crate) async fn run(action: &Action, as_json: bool) -> Result<(), Error> {
    match action {
        Action::Decide(decision) => decide::run(decision, as_json).await?,
        Action::List { workload, limit } => {
            let letters = list(&database()?, *workload, *limit)
                .await
                .map_err(|error| Error::failed("listing dead letters", error))?;
            if as_json {
                show::json(&letters.iter().map(object).collect::<Vec<_>>());
            } else if letters.is_empty() {
                show::line("no open dead letters");
            } else {
                show::table(
                    &["id", "workload", "reason", "code", "attempts>", "died>"],
                    letters.iter().map(row).collect(),
                );
            }
        }
        Action::Show { id } => {
            let details = read(&database()?, *id)
                .await
                .map_err(|error| Error::failed(format!("reading dead letter {id}"), error))?
                .ok_or_else(|| {
                    Error::failed("reading dead letters", format!("there is no dead letter {id}"))
                })?;
            if as_json {
                show::json(&whole(&details));
            } else {
                print(&details);
            }
        }
    }
    Ok(())
}

fn row(letter: &DeadLetter) -> Vec<String> {
    vec![
        letter.id.to_string(),
        letter.workload.clone(),
        letter.reason.clone(),
        letter.detail_code.clone(),
        letter.attempts.to_string(),
        format!("{} ago", show::ago(letter.died_at)),
    ]
}

fn print(details: &Details) {
    let letter = &details.letter;
    show::facts(&[
        ("dead letter", Some(letter.id.to_string())),
        ("command", letter.command_id.map(|id| id.to_string())),
        ("workload", Some(letter.workload.clone())),
        ("reason", Some(letter.reason.clone())),
        ("code", Some(letter.detail_code.clone())),
        ("detail", Some(letter.detail.clone())),
        ("attempts", Some(letter.attempts.to_string())),
        ("crashes", Some(letter.crashes.to_string()).filter(|_| letter.crashes > 0)),
        ("state", Some(letter.state.clone())),
        ("decided", decided(letter)),
        ("allowed", Some(letter.policies.join(", ")).filter(|_| letter.decided_at.is_none())),
        ("replays", Some(letter.replays.to_string()).filter(|_| letter.replays > 0)),
        ("first death", letter.first_dead_letter.map(|id| id.to_string())),
        ("died", Some(format!("{} ago", show::ago(letter.died_at)))),
    ]);
    if !details.failures.is_empty() {
        show::line("");
        show::table(
            &["failed", "class", "code", "message", "request"],
            details.failures.iter().map(failure_row).collect(),
        );
    }
    if !details.actions.is_empty() {
        show::line("");
        show::table(&["acted", "action", "who", "why"], details.actions.iter().map(action_row).collect());
    }
}

fn decided(letter: &DeadLetter) -> Option<String> {
    let (at, by) = letter.decided_at.zip(letter.decided_by.as_ref())?;
    Some(format!("{} ago by {by}", show::ago(at)))
}

fn action_row(action: &OperatorAction) -> Vec<String> {
    vec![
        format!("{} ago", show::ago(action.at)),
        action.action.clone(),
        action.actor.clone(),
        action.why.clone(),
    ]
}

fn failure_row(failure: &Failure) -> Vec<String> {
    vec![
        format!("{} ago", show::ago(failure.failed_at)),
        failure.class.clone(),
        failure.code.clone(),
        failure.message.clone(),
        failure.request_id.clone().unwrap_or_default(),
    ]
}

fn object(letter: &DeadLetter) -> Value {
    json!({
        "id": letter.id,
        "command_id": letter.command_id,
        "workload": letter.workload,
        "reason": letter.reason,
        "code": letter.detail_code,
        "detail": letter.detail,
        "policies": letter.policies,
        "attempts": letter.attempts,
        "crashes": letter.crashes,
        "state": letter.state,
        "died_at": letter.died_at,
        "decided_at": letter.decided_at,
        "decided_by": letter.decided_by,
        "replays": letter.replays,
        "first_dead_letter": letter.first_dead_letter,
    })
}

fn whole(details: &Details) -> Value {
    let failure = |failure: &Failure| {
        json!({
            "failed_at": failure.failed_at,
            "class": failure.class,
            "code": failure.code,
            "message": failure.message,
            "request_id": failure.request_id,
            "worker": failure.worker,
        })
    };
    let action = |action: &OperatorAction| json!({ "at": action.at, "actor": action.actor, "action": action.action, "why": action.why });
    let mut object = object(&details.letter);
    object["message"] = details.message.clone();
    object["failures"] = details.failures.iter().map(failure).collect();
    object["actions"] = details.actions.iter().map(action).collect();
    object
}
