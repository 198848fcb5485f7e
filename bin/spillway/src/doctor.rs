//! `spillway doctor`.

use std::time::Duration;

use process::Error;
use serde_json::{Value, json};
use store::session::{DeadRows, SnapshotHolder, look};

use crate::{database, show};

pub(crate) async fn run(as_json: bool) -> Result<(), Error> {
    let sessions =
        look(&database()?).await.map_err(|error| Error::failed("looking at the database", error))?;
    if as_json {
        show::json(&json!({
            "snapshot_holders": sessions.holders.iter().map(object).collect::<Vec<_>>(),
            "sees_all_sessions": sessions.sees_all,
            "tables": sessions.dead_rows.iter().map(table_object).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    if sessions.holders.is_empty() {
        show::line("nothing holds a snapshot");
    } else {
        show::table(
            &[
                "held by",
                "pid>",
                "login",
                "application",
                "state",
                "open>",
                "idle>",
                "transactions>",
                "statement",
            ],
            sessions.holders.iter().map(row).collect(),
        );
    }
    if !sessions.sees_all {
        show::line(
            "states and times of other roles' sessions are hidden: grant pg_read_all_stats to the schema's owner",
        );
    }
    show::line("");
    show::table(
        &["table", "dead>", "live>", "vacuumed>"],
        sessions.dead_rows.iter().map(table_row).collect(),
    );
    Ok(())
}

fn row(holder: &SnapshotHolder) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "–".to_owned());
    let time = |seconds: Option<f64>| {
        seconds.map_or_else(
            || "–".to_owned(),
            |seconds| show::span(Duration::try_from_secs_f64(seconds).unwrap_or_default()),
        )
    };
    vec![
        holder.kind.clone(),
        holder.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string()),
        text(&holder.login),
        text(&holder.application),
        text(&holder.state),
        time(holder.held_seconds),
        time(holder.idle_seconds),
        holder.transactions.to_string(),
        text(&holder.statement),
    ]
}

fn table_row(table: &DeadRows) -> Vec<String> {
    vec![
        table.table.clone(),
        table.dead.to_string(),
        table.live.to_string(),
        table.vacuumed_at.map_or_else(|| "never".to_owned(), |at| format!("{} ago", show::ago(at))),
    ]
}

fn object(holder: &SnapshotHolder) -> Value {
    json!({
        "kind": holder.kind,
        "pid": holder.pid,
        "login": holder.login,
        "application": holder.application,
        "state": holder.state,
        "open_seconds": holder.held_seconds,
        "idle_seconds": holder.idle_seconds,
        "transactions": holder.transactions,
        "statement": holder.statement,
    })
}

fn table_object(table: &DeadRows) -> Value {
    json!({
        "table": table.table,
        "dead_rows": table.dead,
        "live_rows": table.live,
        "vacuumed_at": table.vacuumed_at,
    })
}
