//! SnapTrade accounts that a platform is told about before events about them are sent.

use anyhow::{Context, ensure};
use secrecy::SecretString;
use serde_json::json;
use store::seal::Sealer;
use store::snaptrade::NewUser;
use testkit::Dice;
use testkit::sandbox::SnaptradeUser;
use uuid::Uuid;

use crate::connection::Settings;

/// Accounts of one load: it has the deadline of a single call.
const A_LOAD: usize = 5000;

/// As many ids; equal seeds give equal ones.
pub(crate) fn ids(seed: u64, n: usize) -> Vec<Uuid> {
    let mut dice = Dice::new("accounts", &[seed]);
    (0..n).map(|_| dice.uuid()).collect()
}

/// Loads the accounts of one user into the platform and tells the sandbox about them.
pub(crate) async fn introduce(settings: &Settings, user_id: &str, accounts: &[Uuid]) -> anyhow::Result<()> {
    let user_secret = Uuid::now_v7().simple().to_string();
    let user = SnaptradeUser {
        user_id: user_id.to_owned(),
        user_secret: user_secret.clone(),
        accounts: accounts.to_vec(),
    };
    tell_sandbox(settings.get("SANMOPIA_SNAPTRADE_BASE_URL")?, &user).await?;
    load(settings, user_id, &user_secret, accounts).await
}

/// Loads the accounts of one user into the platform.
pub(crate) async fn load(
    settings: &Settings,
    user_id: &str,
    user_secret: &str,
    accounts: &[Uuid],
) -> anyhow::Result<()> {
    let mut env = settings::Env::of_pairs(settings.pairs());
    let options = store::Options::read_direct(&mut env, &contract::env::keys::OPERATOR_DATABASE_URL);
    let key = env.secret_key(&contract::env::keys::DATA_KEY);
    env.finish()?;
    let (Ok(options), Ok(key)) = (options, key) else { unreachable!("`finish` has seen no mistake") };
    let pool = store::Pool::prepare(&options, "lab", 1)?;
    let sealer = Sealer::new(&key);
    for accounts in accounts.chunks(A_LOAD) {
        let users = [NewUser {
            user_id: user_id.to_owned(),
            user_secret: SecretString::from(user_secret),
            accounts: accounts.to_vec(),
        }];
        store::snaptrade::load(&pool, &sealer, &users).await.context("loading accounts")?;
    }
    Ok(())
}

async fn tell_sandbox(sandbox: &str, user: &SnaptradeUser) -> anyhow::Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("{sandbox}/sandbox/snaptrade/users");
    let request = reqwest::Client::new().post(&url).header("content-type", "application/json");
    let body = json!({ "users": [user] }).to_string();
    let response = request.body(body).send().await.with_context(|| format!("posting to {url}"))?;
    ensure!(response.status().is_success(), "{url} answered {}", response.status());
    Ok(())
}
