//! `lab storm`: a burst of signed SnapTrade events, and the proof that each accepted one ended once.

mod report;
mod sender;

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::ensure;
use testkit::Dice;
use testkit::sandbox::snaptrade::webhook::event;
use uuid::Uuid;

use crate::accounts;
use crate::connection::Settings;
use sender::Sender;

pub use report::Report;

/// The user that all of a storm's accounts belong to.
const USER: &str = "storm-user";

/// Sends signed SnapTrade events to a running platform, waits until every accepted one has ended, and says what
/// became of them. Exits 1 if one was lost, or promised twice.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How many deliveries.
    #[arg(long, default_value_t = 2000)]
    pub events: u32,
    /// Over how many accounts.
    #[arg(long, default_value_t = 200)]
    pub accounts: u32,
    /// Which share of the deliveries repeats an earlier one.
    #[arg(long, default_value_t = 0.6)]
    pub duplicates: f64,
    /// How many at a time.
    #[arg(long, default_value_t = 32)]
    pub clients: usize,
    /// Decides ids, accounts and order.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Where to send; may be repeated, then the gateways take turns. Default: the platform of this checkout.
    #[arg(long = "gateway", value_name = "URL")]
    pub gateways: Vec<String>,
    /// How long to wait for the last accepted event to end.
    #[arg(long, default_value_t = 180)]
    pub wait_seconds: u64,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// One delivery to be made.
#[derive(Clone, Debug)]
pub struct Event {
    /// The sender's id; two deliveries with the same id have the same body.
    pub id: String,
    /// What is sent.
    pub body: String,
}

/// Sends, waits, prints.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = Settings::find()?;
    let mut args = args;
    if args.gateways.is_empty() {
        args.gateways = vec![settings.url_of_listener("SANMOPIA_GATEWAY_LISTEN")?];
    }
    let report = blow(&args, &settings).await?;
    report.print(args.json)?;
    ensure!(report.is_whole(), "not every accepted event ended exactly once");
    Ok(())
}

/// A storm against a running platform.
pub async fn blow(args: &Args, settings: &Settings) -> anyhow::Result<Report> {
    let seed = args.seed.unwrap_or_else(|| Uuid::now_v7().as_u64_pair().0);
    let accounts = accounts::ids(seed, args.accounts as usize);
    let sender = Sender::new(args.gateways.clone(), settings)?;
    accounts::introduce(settings, USER, &accounts).await?;
    let events = plan(args, seed, &accounts);
    let unique: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    let began = Instant::now();
    let answers = sender.send_all(&events, args.clients).await;
    let sent = began.elapsed();
    let accepted: HashSet<Uuid> = answers.iter().filter_map(|answer| answer.command_id).collect();
    let statuses = sender.wait_for_ends(&accepted, Duration::from_secs(args.wait_seconds)).await;
    Ok(Report::new(seed, unique.len(), answers, &statuses, sent, began.elapsed()))
}

/// The deliveries, repetitions spread among them.
fn plan(args: &Args, seed: u64, accounts: &[Uuid]) -> Vec<Event> {
    let mut dice = Dice::new("deliveries of a storm", &[seed]);
    let share = 1.0 - args.duplicates.clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a u32 is a u32")]
    let unique = ((f64::from(args.events) * share).ceil() as u32).clamp(1, args.events.max(1));
    let mut events: Vec<Event> = (0..unique)
        .map(|_| {
            let id = dice.uuid().to_string();
            let account = *dice.pick(accounts);
            let body = event(&id, "ACCOUNT_HOLDINGS_UPDATED", USER, account).to_string();
            Event { id, body }
        })
        .collect();
    for _ in unique..args.events {
        events.push(events[dice.place(unique as usize)].clone());
    }
    for i in (1..events.len()).rev() {
        events.swap(i, dice.place(i + 1));
    }
    events
}

/// Statuses by command; a command that did not end in time has its last one.
type Statuses = BTreeMap<Uuid, String>;

#[cfg(test)]
mod tests {
    use super::*;

    fn args(events: u32, duplicates: f64) -> Args {
        Args {
            events,
            accounts: 10,
            duplicates,
            clients: 1,
            seed: Some(1),
            gateways: Vec::new(),
            wait_seconds: 1,
            json: false,
        }
    }

    #[test]
    fn the_planned_share_is_repeated_with_the_same_bodies() {
        let events = plan(&args(1000, 0.6), 1, &accounts::ids(1, 10));
        let ids: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
        let bodies: HashSet<&str> = events.iter().map(|event| event.body.as_str()).collect();

        assert_eq!((events.len(), ids.len(), bodies.len()), (1000, 400, 400));
    }

    #[test]
    fn equal_seeds_give_equal_storms() {
        let ids = |seed| {
            plan(&args(50, 0.5), seed, &accounts::ids(seed, 10)).into_iter().map(|e| e.id).collect::<Vec<_>>()
        };

        assert_eq!(ids(7), ids(7));
        assert_ne!(ids(7), ids(8));
    }
}
