//! `spillway trim`.

use process::Error;
use serde_json::{Value, json};
use store::Pool;
use store::retention::{Mode, Rule, batch, rules};

use crate::{database, show};

const REMOVED_AT_ONCE: u32 = 1_000;
const COUNTED_AT_ONCE: u32 = 10_000;

/// Counting ends here.
const COUNTED_AT_MOST: u64 = 100_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Remove nothing; count what is past its time.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(args: &Args, as_json: bool) -> Result<(), Error> {
    let pool = database()?;
    let mode = if args.dry_run { Mode::Count } else { Mode::Remove };
    let failed = |error| Error::failed("trimming", error);
    let mut all = Vec::new();
    for rule in rules(&pool).await.map_err(failed)? {
        all.push(find(&pool, rule, mode).await.map_err(failed)?);
    }
    if as_json {
        show::json(&all.iter().map(object).collect::<Vec<_>>());
    } else {
        let heading = if args.dry_run { "past it>" } else { "removed>" };
        show::table(&["table", "rows live>", "what", heading], all.iter().map(row).collect());
    }
    Ok(())
}

/// What was found under one rule.
struct Found {
    rule: Rule,
    rows: u64,
    /// False where counting ended early: there are at least so many.
    is_all: bool,
}

/// Goes on until nothing is left to look at or, where nothing is removed, until the count is large enough.
async fn find(pool: &Pool, rule: Rule, mode: Mode) -> Result<Found, store::Error> {
    let limit = if mode == Mode::Remove { REMOVED_AT_ONCE } else { COUNTED_AT_ONCE };
    let (mut after, mut rows) = (None, 0);
    loop {
        let done = batch(pool, &rule.rule, after, limit, mode).await?;
        rows += u64::from(done.past);
        after = done.reached;
        // Where nothing is removed, a rule that walks nowhere would find the same rows again.
        let is_enough = rows >= COUNTED_AT_MOST || after.is_none();
        if done.is_last || (mode == Mode::Count && is_enough) {
            return Ok(Found { rule, rows, is_all: done.is_last });
        }
    }
}

fn row(found: &Found) -> Vec<String> {
    let rows = if found.is_all { found.rows.to_string() } else { format!("≥ {}", found.rows) };
    vec![found.rule.relation.clone(), show::span(found.rule.keep), found.rule.what.clone(), rows]
}

fn object(found: &Found) -> Value {
    json!({
        "rule": found.rule.rule,
        "table": found.rule.relation,
        "keep_seconds": found.rule.keep.as_secs(),
        "what": found.rule.what,
        "rows": found.rows,
        "is_all": found.is_all,
    })
}
