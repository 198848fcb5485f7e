//! `spillway dead-letters replay|repair|suppress|reconcile|input`: what an operator decides.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use contract::{DeadReason, Workload};
use process::Error;
use serde_json::{Value, json};
use store::Pool;
use store::replay::{Action, Filter, Order, Outcome, act, replay_all, reveal};
use strum::VariantArray;
use uuid::Uuid;

use crate::author::{Author, identified};
use crate::{file, show};

/// More in one transaction would hold its locks for too long; the next call takes the next ones.
const MOST_AT_ONCE: i64 = 1000;

#[derive(Subcommand)]
pub(crate) enum Decision {
    /// Send a dead letter's command through its queue once more, with the input that it had.
    #[command(after_help = REPLAY_HELP)]
    Replay {
        #[command(flatten)]
        which: Which,
        /// The oldest so many of those that match.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=MOST_AT_ONCE))]
        limit: u32,
        #[command(flatten)]
        order: Signed,
    },
    /// Send a dead letter's command through its queue with another input.
    #[command(after_help = REPAIR_HELP)]
    Repair {
        /// The dead letter's id.
        id: Uuid,
        /// The JSON file with the whole repaired input; `-` reads standard input.
        #[arg(long, value_name = "FILE")]
        input: PathBuf,
        #[command(flatten)]
        order: Signed,
    },
    /// Decide that a dead letter's command need not run. It ends as `suppressed`.
    Suppress {
        /// The dead letter's id.
        id: Uuid,
        #[command(flatten)]
        order: Signed,
    },
    /// Record that you have settled a dead letter's command by hand. It ends as `reconciled`.
    Reconcile {
        /// The dead letter's id.
        id: Uuid,
        #[command(flatten)]
        order: Signed,
    },
    /// Print the input of a dead letter's command. That you looked is on record.
    Input {
        /// The dead letter's id.
        id: Uuid,
        #[command(flatten)]
        author: Author,
    },
}

const REPLAY_HELP: &str = "\
The command keeps its id, its input and its caller; it gets fresh attempts in the lowest class, P3. A dead letter
is replayed once: if it fails again, that is a new dead letter of the same line. What may be done with a dead letter
depends on its workload and on its reason: `dead-letters show ID` lists it, and a refusal names what is allowed
instead.

Examples:
  spillway dead-letters replay 0193… --why 'the provider is well again' --as kim
  spillway dead-letters replay --workload snaptrade-account-sync --reason provider_cooldown --older-than 1h \\
    --why 'quota raised' --as kim --dry-run

All that match are replayed in one transaction, the oldest first: the count that is printed is the count that was
acted on. Run it again for the next ones.";

const REPAIR_HELP: &str = "\
The repaired input is checked as a request at the door is. The old input and the difference are kept.

Example:
  spillway dead-letters input 0193… --why 'to repair it' --as kim > input.json
  $EDITOR input.json
  spillway dead-letters repair 0193… --input input.json --why 'the tenant was renamed' --as kim --dry-run";

/// Which dead letters are replayed.
#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Which {
    /// One dead letter, by its id.
    #[arg(conflicts_with_all = ["workload", "reason", "older_than", "all"])]
    id: Option<Uuid>,
    /// Open ones of this workload, such as snaptrade-account-sync.
    #[arg(long)]
    workload: Option<Workload>,
    /// Open ones that died for this reason.
    #[arg(long, value_parser = reason_parser())]
    reason: Option<DeadReason>,
    /// Open ones that died so long ago or longer, such as 90s, 30m, 12h or 7d.
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// All open ones, whatever their workload and reason.
    #[arg(long, conflicts_with_all = ["workload", "reason", "older_than"])]
    all: bool,
}

/// Who decides, why, and whether in earnest.
#[derive(Args)]
pub(crate) struct Signed {
    #[command(flatten)]
    author: Author,
    /// Say what would happen, refusals included, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(decision: &Decision, as_json: bool) -> Result<(), Error> {
    match decision {
        Decision::Replay { which, limit, order } => {
            let desk = Desk::open(order, as_json)?;
            match which.id {
                Some(id) => desk.one(id, &Action::Replay).await,
                None => desk.matching(which, *limit).await,
            }
        }
        Decision::Repair { id, input, order } => {
            let input = file::json(input)?;
            Desk::open(order, as_json)?.one(*id, &Action::Repair(input)).await
        }
        Decision::Suppress { id, order } => Desk::open(order, as_json)?.one(*id, &Action::Suppress).await,
        Decision::Reconcile { id, order } => Desk::open(order, as_json)?.one(*id, &Action::Reconcile).await,
        Decision::Input { id, author } => print_input(*id, author).await,
    }
}

/// An operator with a connection.
struct Desk<'a> {
    pool: Pool,
    operator: String,
    signed: &'a Signed,
    as_json: bool,
}

impl<'a> Desk<'a> {
    fn open(signed: &'a Signed, as_json: bool) -> Result<Self, Error> {
        let (pool, operator) = identified(&signed.author)?;
        Ok(Self { pool, operator, signed, as_json })
    }

    fn order(&self) -> Order<'_> {
        Order { operator: &self.operator, why: &self.signed.author.why, is_dry_run: self.signed.dry_run }
    }

    /// A refusal is the answer to what was asked, and a failure of the program.
    async fn one(&self, id: Uuid, action: &Action) -> Result<(), Error> {
        let outcome = act(&self.pool, id, action, &self.order())
            .await
            .map_err(|error| Error::failed(format!("acting on dead letter {id}"), error))?
            .ok_or_else(|| missing(id))?;
        if self.as_json {
            show::json(&object(&outcome, self.signed.dry_run));
        }
        if let Some(refused) = &outcome.refused {
            return Err(Error::failed(format!("nothing done with dead letter {id}"), refused.to_string()));
        }
        if !self.as_json {
            self.print(action, &outcome);
        }
        Ok(())
    }

    fn print(&self, action: &Action, outcome: &Outcome) {
        let (done, would) = words(action);
        let word = if self.signed.dry_run { would } else { done };
        let command = outcome.command.map(|command| format!(", command {command}")).unwrap_or_default();
        show::line(&format!("{word} {}{command}", outcome.id));
        for change in outcome.repair.iter().flat_map(|repair| &repair.changes) {
            let what = match (&change.before, &change.after) {
                (None, _) => "new",
                (_, None) => "gone",
                _ => "changed",
            };
            show::line(&format!("  {what} {}", if change.path.is_empty() { "/" } else { &change.path }));
        }
    }

    async fn matching(&self, which: &Which, limit: u32) -> Result<(), Error> {
        let &Which { workload, reason, older_than, .. } = which;
        let filter = Filter { workload, reason, older_than, limit };
        let outcomes = replay_all(&self.pool, filter, &self.order())
            .await
            .map_err(|error| Error::failed("replaying dead letters", error))?;
        let dry_run = self.signed.dry_run;
        let refused = outcomes.iter().filter(|outcome| outcome.refused.is_some()).count();
        let granted = outcomes.len() - refused;
        if self.as_json {
            let letters: Vec<Value> = outcomes.iter().map(|outcome| object(outcome, dry_run)).collect();
            let acted = if dry_run { 0 } else { granted };
            show::json(&json!({
                "dry_run": dry_run,
                "granted": granted,
                "acted": acted,
                "refused": refused,
                "dead_letters": letters,
            }));
            return Ok(());
        }
        if !outcomes.is_empty() {
            show::table(
                &["id", "workload", "reason", "outcome"],
                outcomes.iter().map(|outcome| self.row(outcome)).collect(),
            );
        }
        let word = words(&Action::Replay);
        show::line(&format!("{} {granted}, refused {refused}", if dry_run { word.1 } else { word.0 }));
        Ok(())
    }

    fn row(&self, outcome: &Outcome) -> Vec<String> {
        let (done, would) = words(&Action::Replay);
        let word = match &outcome.refused {
            Some(refused) => refused.to_string(),
            None if self.signed.dry_run => would.to_owned(),
            None => done.to_owned(),
        };
        vec![outcome.id.to_string(), outcome.workload.clone(), outcome.reason.clone(), word]
    }
}

async fn print_input(id: Uuid, author: &Author) -> Result<(), Error> {
    let (pool, operator) = identified(author)?;
    let input = reveal(&pool, id, &operator, &author.why)
        .await
        .map_err(|error| Error::failed(format!("reading the input of dead letter {id}"), error))?
        .ok_or_else(|| {
            Error::failed("reading the ledger", format!("there is no dead letter {id} with a command"))
        })?;
    show::json(&input);
    Ok(())
}

fn missing(id: Uuid) -> Error {
    Error::failed("reading dead letters", format!("there is no dead letter {id}"))
}

/// What was done, and what would be.
const fn words(action: &Action) -> (&'static str, &'static str) {
    match action {
        Action::Replay => ("replayed", "would replay"),
        Action::Repair(_) => ("repaired and replayed", "would repair and replay"),
        Action::Suppress => ("suppressed", "would suppress"),
        Action::Reconcile => ("reconciled", "would reconcile"),
    }
}

fn object(outcome: &Outcome, dry_run: bool) -> Value {
    let changes = outcome.repair.iter().flat_map(|repair| &repair.changes);
    json!({
        "id": outcome.id,
        "command_id": outcome.command,
        "workload": outcome.workload,
        "reason": outcome.reason,
        "dry_run": dry_run,
        "acted": outcome.refused.is_none() && !dry_run,
        "refused": outcome.refused.as_ref().map(|refused| json!({ "code": refused.code(), "sentence": refused.to_string() })),
        "changed": changes.map(|change| &change.path).collect::<Vec<_>>(),
    })
}

/// Names all reasons where none is called so.
fn reason_parser() -> impl TypedValueParser<Value = DeadReason> {
    let names = DeadReason::VARIANTS.iter().map(<&'static str>::from);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<DeadReason>())
}

fn age(text: &str) -> Result<Duration, String> {
    let unit = |unit: char| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    let parts = text.char_indices().next_back().and_then(|(i, last)| Some((&text[..i], unit(last)?)));
    parts
        .and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a number with s, m, h or d, such as 90s or 12h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_with_a_unit() {
        let seconds = ["90s", "30m", "12h", "7d"].map(|text| age(text).map(|age| age.as_secs()));

        assert_eq!(seconds, [Ok(90), Ok(1800), Ok(43_200), Ok(604_800)]);
        for text in ["", "h", "1", "1w", "-1h", "1.5h", "99999999999999999999d", "1 h", "1µ"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
