//! `spillway processes`.

use process::Error;
use serde_json::{Value, json};
use store::process::{Process, list, versions, workers};

use crate::{database, show};

pub(crate) async fn run(as_json: bool) -> Result<(), Error> {
    let processes = list(&database()?).await.map_err(|error| Error::failed("listing processes", error))?;
    let unattended: Vec<&str> = workers(&processes)
        .into_iter()
        .filter_map(|(workload, workers)| (workers == 0).then_some(workload.queue().name))
        .collect();
    let versions = versions(&processes);
    if as_json {
        show::json(&json!({
            "processes": processes.iter().map(object).collect::<Vec<_>>(),
            "queues_without_worker": unattended,
            "live_versions": versions,
        }));
        return Ok(());
    }
    show::table(
        &["process", "version", "queue", "slots>", "host", "pid>", "started>", "seen>", "state"],
        processes.iter().map(row).collect(),
    );
    if versions.len() > 1 {
        let counts: Vec<String> = versions.iter().map(|(version, n)| format!("{version} ({n})")).collect();
        show::line(&format!("more than one version runs: {}", counts.join(", ")));
    }
    for queue in unattended {
        show::line(&format!("no worker for {queue}"));
    }
    Ok(())
}

fn row(process: &Process) -> Vec<String> {
    vec![
        process.kind.clone(),
        process.version.clone(),
        process.queue.clone().unwrap_or_else(|| "–".to_owned()),
        process.slots.to_string(),
        process.host.clone(),
        process.pid.to_string(),
        format!("{} ago", show::ago(process.started_at)),
        format!("{} ago", show::ago(process.last_seen_at)),
        if process.is_live { "live" } else { "silent" }.to_owned(),
    ]
}

fn object(process: &Process) -> Value {
    json!({
        "id": process.id,
        "kind": process.kind,
        "version": process.version,
        "queue": process.queue,
        "slots": process.slots,
        "host": process.host,
        "pid": process.pid,
        "started_at": process.started_at,
        "last_seen_at": process.last_seen_at,
        "is_live": process.is_live,
    })
}
