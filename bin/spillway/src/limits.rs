//! `spillway limits`: keys that are held, waited for or paused.

use clap::Subcommand;
use contract::Workload;
use process::Error;
use serde_json::{Value, json};
use store::limit::{Key, key_of_queue, list, pause, resume};

use crate::author::{Author, identified};
use crate::{database, show};

/// Shown at most.
const MOST: u32 = 1000;

const HELP: &str = "\
A key lets so many messages run at a time; the others wait in its line. A paused key lets nobody in, and what runs
goes on.

Examples:
  spillway limits
  spillway limits pause --workload snaptrade-account-sync --why 'wrong credentials' --as kim
  spillway limits resume snaptrade-account-sync:holdings:0193… --why 'account mended' --as kim";

#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Let nobody have a key until it is resumed.
    Pause {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        author: Author,
    },
    /// Let a paused key go on.
    Resume {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        author: Author,
    },
}

/// Which key.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// The key, as `spillway limits` shows it.
    key: Option<String>,
    /// The whole queue of this workload.
    #[arg(long)]
    workload: Option<Workload>,
}

impl Which {
    fn key(&self) -> String {
        let of_queue = self.workload.map(|workload| key_of_queue(workload.queue().name));
        self.key.clone().or(of_queue).unwrap_or_default()
    }
}

pub(crate) async fn run(args: &Args, as_json: bool) -> Result<(), Error> {
    match &args.action {
        None => show_all(as_json).await,
        Some(Action::Pause { which, author }) => {
            let ((pool, operator), key) = (identified(author)?, which.key());
            pause(&pool, &key, &operator, &author.why)
                .await
                .map_err(|error| Error::failed(format!("pausing {key}"), error))?;
            say(as_json, &key, "paused");
            Ok(())
        }
        Some(Action::Resume { which, author }) => {
            let ((pool, operator), key) = (identified(author)?, which.key());
            let was_paused = resume(&pool, &key, &operator, &author.why)
                .await
                .map_err(|error| Error::failed(format!("resuming {key}"), error))?;
            say(as_json, &key, if was_paused { "resumed" } else { "was not paused" });
            Ok(())
        }
    }
}

async fn show_all(as_json: bool) -> Result<(), Error> {
    let keys = list(&database()?, MOST).await.map_err(|error| Error::failed("reading limits", error))?;
    if as_json {
        show::json(&keys.iter().map(object).collect::<Vec<_>>());
    } else {
        show::table(&["key", "in use>", "cap>", "waiting>", "state"], keys.iter().map(row).collect());
    }
    Ok(())
}

fn say(as_json: bool, key: &str, outcome: &str) {
    if as_json {
        show::json(&json!({ "key": key, "outcome": outcome }));
    } else {
        show::line(&format!("{key}: {outcome}"));
    }
}

fn row(key: &Key) -> Vec<String> {
    let state = match (&key.paused_by, &key.paused_why, key.cooldown_until) {
        (Some(by), Some(why), _) => format!("paused by {by}: {why}"),
        (_, _, Some(until)) => format!("cools down until {until}"),
        _ => "open".to_owned(),
    };
    let cap = key.limit_now.map_or(key.cap, |now| now.min(key.cap));
    vec![key.key.clone(), key.in_use.to_string(), cap.to_string(), key.waiting.to_string(), state]
}

fn object(key: &Key) -> Value {
    json!({
        "key": key.key,
        "cap": key.cap,
        "limit_now": key.limit_now,
        "in_use": key.in_use,
        "waiting": key.waiting,
        "cooldown_until": key.cooldown_until,
        "paused_at": key.paused_at,
        "paused_by": key.paused_by,
        "paused_why": key.paused_why,
    })
}
