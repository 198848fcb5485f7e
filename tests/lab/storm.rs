//! `lab storm`: a burst of signed SnapTrade events, and the proof that each accepted one ended once.

mod report;
mod sender;

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use secrecy::SecretString;
use serde_json::json;
use store::seal::Sealer;
use store::snaptrade::NewUser;
use testkit::Dice;
use testkit::sandbox::SnaptradeUser;
use testkit::sandbox::snaptrade::webhook::event;
use uuid::Uuid;

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
    let accounts = accounts(seed, args.accounts);
    let sender = Sender::new(args.gateways.clone(), settings)?;
    introduce(settings, &accounts, &sender).await?;
    let events = plan(args, seed, &accounts);
    let unique: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
    let began = Instant::now();
    let answers = sender.send_all(&events, args.clients).await;
    let sent = began.elapsed();
    let accepted: HashSet<Uuid> = answers.iter().filter_map(|answer| answer.command_id).collect();
    let statuses = sender.wait_for_ends(&accepted, Duration::from_secs(args.wait_seconds)).await;
    Ok(Report::new(seed, unique.len(), answers, &statuses, sent, began.elapsed()))
}

/// Loads the accounts into the platform and tells the sandbox about them.
async fn introduce(settings: &Settings, accounts: &[Uuid], sender: &Sender) -> anyhow::Result<()> {
    let secret = Uuid::now_v7().simple().to_string();
    let user =
        SnaptradeUser { user_id: USER.to_owned(), user_secret: secret.clone(), accounts: accounts.to_vec() };
    let sandbox = settings.get("SANMOPIA_SNAPTRADE_BASE_URL")?;
    sender.post(&format!("{sandbox}/sandbox/snaptrade/users"), &json!({ "users": [user] })).await?;

    let mut env = settings::Env::of_pairs(settings.pairs());
    let options = store::Options::read(&mut env, &contract::env::keys::OPERATOR_DATABASE_URL);
    let key = env.secret_key(&contract::env::keys::DATA_KEY);
    env.finish()?;
    let (Ok(options), Ok(key)) = (options, key) else { unreachable!("`finish` has seen no mistake") };
    let pool = store::Pool::prepare(&options, "storm", 1)?;
    let users = [NewUser {
        user_id: USER.to_owned(),
        user_secret: SecretString::from(secret),
        accounts: accounts.to_vec(),
    }];
    store::snaptrade::load(&pool, &Sealer::new(&key), &users)
        .await
        .context("loading the storm's accounts")?;
    Ok(())
}

fn accounts(seed: u64, n: u32) -> Vec<Uuid> {
    let mut dice = Dice::new("accounts of a storm", &[seed]);
    (0..n).map(|_| dice.uuid()).collect()
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
        let events = plan(&args(1000, 0.6), 1, &accounts(1, 10));
        let ids: HashSet<&str> = events.iter().map(|event| event.id.as_str()).collect();
        let bodies: HashSet<&str> = events.iter().map(|event| event.body.as_str()).collect();

        assert_eq!((events.len(), ids.len(), bodies.len()), (1000, 400, 400));
    }

    #[test]
    fn equal_seeds_give_equal_storms() {
        let ids = |seed| {
            plan(&args(50, 0.5), seed, &accounts(seed, 10)).into_iter().map(|e| e.id).collect::<Vec<_>>()
        };

        assert_eq!(ids(7), ids(7));
        assert_ne!(ids(7), ids(8));
    }
}
