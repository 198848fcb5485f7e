//! `spillway queues`.

use process::Error;
use serde_json::{Value, json};
use store::overview::{COUNTED_AT_MOST, Depth, depths};

use crate::{database, show};

pub(crate) async fn run(as_json: bool) -> Result<(), Error> {
    let depths = depths(&database()?).await.map_err(|error| Error::failed("reading the queues", error))?;
    if as_json {
        show::json(&depths.iter().map(object).collect::<Vec<_>>());
    } else {
        show::table(
            &["workload", "due>", "oldest>", "later>", "dead letters>"],
            depths.iter().map(row).collect(),
        );
    }
    Ok(())
}

fn row(depth: &Depth) -> Vec<String> {
    let count = |n: i64| if n >= COUNTED_AT_MOST.into() { format!("≥ {n}") } else { n.to_string() };
    vec![
        depth.workload.to_string(),
        count(depth.due),
        depth.oldest_due_at.map_or_else(|| "–".to_owned(), show::ago),
        count(depth.later),
        depth.open_dead_letters.to_string(),
    ]
}

fn object(depth: &Depth) -> Value {
    json!({
        "workload": depth.workload.kind(),
        "queue": depth.workload.queue().name,
        "due": depth.due,
        "later": depth.later,
        "counted_at_most": COUNTED_AT_MOST,
        "oldest_due_at": depth.oldest_due_at,
        "open_dead_letters": depth.open_dead_letters,
    })
}
