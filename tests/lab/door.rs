//! `lab door`: throws at a gateway what senders, callers and strangers throw at one, and says what it answered
//! wrongly. It knows the gateway by its URL and its settings only; what is stored is seen through later answers.

mod bodies;
mod case;
mod commands;
mod content;
mod crowd;
mod expect;
mod framing;
mod killbill;
mod raw;
mod report;
mod routes;
mod snaptrade;
mod sockets;
mod standard;
mod target;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use uuid::Uuid;

use crate::accounts::introduce;
use crate::connection::Settings;
use case::{Case, Need, Probe};
use target::Target;

pub use report::{Finding, Report, Verdict};

/// Cases that run beside each other. Most of them wait for a deadline of the gateway's.
const AT_A_TIME: usize = 8;

/// How long a case may take beside the deadlines that it waits for.
const CASE_SLACK: Duration = Duration::from_mins(2);

/// Whose account the command cases use.
const USER: &str = "door-user";

const HELP: &str = "\
Each case sends something and says what must come: right and wrong proofs, repetitions, broken bodies, bodies that are
too large or stop half-way, sockets that say nothing, requests that two servers could read differently. For each, one
line with the verdict, then what was expected, what was sent last and what came. Exit 1 if a case failed.

Addresses and secrets are those of the caller's SANMOPIA_ environment, else those of the platform that `cargo xtask up`
started in this checkout. Limits and deadlines come from there too, so they must be the gateway's own.

  lab door                              the platform of this checkout
  lab door --only snaptrade             the cases whose topic/name contains a text
  lab door --list                       what there is, with what each expects; nothing is sent
  lab door --url http://gateway:8080 --internal-url http://gateway:9090 --account 45a3056a-…

It leaves rows: webhooks in the inbox, one fact about a payment that Kill Bill doesn't know, two syncs of an account,
and commands that it has cancelled. Don't point it at a gateway of the business.";

/// Throws every case of the door at a gateway and prints, for each, whether it answered as a door must.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The public listener. Default: the platform of this checkout, with its internal listener.
    #[arg(long)]
    pub url: Option<String>,
    /// The internal listener, where Kill Bill's route is. Without it those cases are skipped.
    #[arg(long, value_name = "URL")]
    pub internal_url: Option<String>,
    /// A SnapTrade account that the platform knows. Default: one is loaded into the database of the settings.
    #[arg(long, value_name = "UUID")]
    pub account: Option<Uuid>,
    /// Only cases whose topic/name contains this; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Print the cases and send nothing.
    #[arg(long)]
    pub list: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Examines and prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    if args.list {
        return report::print_list(&chosen(&args.only)?);
    }
    let settings = Settings::find()?;
    let mut args = args;
    if args.url.is_none() {
        args.url = Some(settings.url_of_listener("SANMOPIA_GATEWAY_LISTEN")?);
        let internal = settings.url_of_listener("SANMOPIA_GATEWAY_INTERNAL_LISTEN")?;
        args.internal_url.get_or_insert(internal);
    }
    let report = examine(&args, &settings).await?;
    report.print(args.json)?;
    let failed = report.failed().count();
    ensure!(failed == 0, "{failed} of {} cases failed", report.cases.len());
    Ok(())
}

/// Runs the chosen cases against a gateway.
pub async fn examine(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    let url = args.url.as_deref().context("--url says which gateway")?;
    let cases = chosen(&args.only)?;
    let mut target = Target::new(url, args.internal_url.as_deref(), settings)?;
    if cases.iter().any(|case| case.needs == Need::Account) {
        target.account = account(args, settings).await?;
    }
    let target = Arc::new(target);
    let (alone, together): (Vec<_>, Vec<_>) =
        cases.into_iter().enumerate().partition(|(_, case)| case.is_alone);
    let mut results = Vec::new();
    for (group, at_a_time) in [(together, AT_A_TIME), (alone, 1)] {
        let running = group.into_iter().map(|(i, case)| {
            let target = target.clone();
            async move { (i, examine_one(case, target).await) }
        });
        results.extend(
            futures_util::stream::iter(running).buffer_unordered(at_a_time).collect::<Vec<_>>().await,
        );
    }
    results.sort_by_key(|(i, _)| *i);
    Ok(Report { url: url.to_owned(), cases: results.into_iter().map(|(_, result)| result).collect() })
}

/// Given by the caller, or made where the settings name a database to load it into.
async fn account(args: &Args, settings: &Settings) -> anyhow::Result<Option<Uuid>> {
    if args.account.is_some() || settings.get("SANMOPIA_DATABASE_URL").is_err() {
        return Ok(args.account);
    }
    let account = Uuid::new_v4();
    introduce(settings, USER, &[account])
        .await
        .context("making an account known; --account names one that is")?;
    Ok(Some(account))
}

async fn examine_one(case: Case, target: Arc<Target>) -> Finding {
    if let Some(why) = case.needs.unmet(&target) {
        return Finding::of(&case, Verdict::Skipped, why.to_owned(), Vec::new());
    }
    let limit = CASE_SLACK + target.header_bound() * 2 + target.body_bound() * 2;
    let probe = Probe::new(target);
    let outcome = match tokio::time::timeout(limit, (case.run)(&probe)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(anyhow::anyhow!("not done after {limit:?}")),
    };
    let (verdict, why) = match outcome {
        Ok(()) => (Verdict::Passed, String::new()),
        Err(error) => (Verdict::Failed, probe.target.mask(format!("{error:#}"))),
    };
    Finding::of(&case, verdict, why, probe.exchanges())
}

/// The cases of a topic.
type Cases = fn() -> Vec<Case>;

/// All cases, in the order of the report.
fn table() -> Vec<Case> {
    let topics: [(&'static str, Cases); 10] = [
        ("routes", routes::cases),
        ("snaptrade", snaptrade::cases),
        ("content", content::cases),
        ("standard", standard::cases),
        ("killbill", killbill::cases),
        ("commands", commands::cases),
        ("bodies", bodies::cases),
        ("framing", framing::cases),
        ("sockets", sockets::cases),
        ("crowd", crowd::cases),
    ];
    let of_topic =
        |(topic, cases): (&'static str, Cases)| cases().into_iter().map(move |case| Case { topic, ..case });
    topics.into_iter().flat_map(of_topic).collect()
}

/// Those that `only` names; all where it names none.
fn chosen(only: &[String]) -> anyhow::Result<Vec<Case>> {
    let mut cases = table();
    for part in only {
        ensure!(
            cases.iter().any(|case| case.full_name().contains(part)),
            "no case is called `{part}`; see --list"
        );
    }
    cases.retain(|case| only.is_empty() || only.iter().any(|part| case.full_name().contains(part)));
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_case_has_a_name_of_its_own_and_says_what_it_expects() {
        let cases = table();
        let names: HashSet<String> = cases.iter().map(Case::full_name).collect();

        assert_eq!(names.len(), cases.len());
        assert!(cases.iter().all(|case| !case.expects.is_empty()));
    }

    #[test]
    fn a_part_of_a_name_chooses_and_a_wrong_one_is_an_error() {
        let chosen = |only: &[&str]| chosen(&only.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());

        assert!(chosen(&["snaptrade/"]).unwrap().iter().all(|case| case.topic == "snaptrade"));
        assert!(chosen(&["snaptrade/", "no-such-case"]).is_err());
        assert_eq!(chosen(&[]).unwrap().len(), table().len());
    }
}
