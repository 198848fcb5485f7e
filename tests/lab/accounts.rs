//! Accounts that a running platform and its sandbox both know.

use anyhow::{Context, ensure};
use secrecy::SecretString;
use serde_json::json;
use store::seal::Sealer;
use store::snaptrade::NewUser;
use testkit::sandbox::SnaptradeUser;
use uuid::Uuid;

use crate::connection::Settings;

/// Loads `accounts` of `user` into the platform and tells the sandbox about them.
pub(crate) async fn introduce(settings: &Settings, user: &str, accounts: &[Uuid]) -> anyhow::Result<()> {
    let secret = Uuid::now_v7().simple().to_string();
    let known =
        SnaptradeUser { user_id: user.to_owned(), user_secret: secret.clone(), accounts: accounts.to_vec() };
    tell_sandbox(settings.get("SANMOPIA_SNAPTRADE_BASE_URL")?, &known).await?;

    let mut env = settings::Env::of_pairs(settings.pairs());
    let options = store::Options::read(&mut env, &contract::env::keys::OPERATOR_DATABASE_URL);
    let key = env.secret_key(&contract::env::keys::DATA_KEY);
    env.finish()?;
    let (Ok(options), Ok(key)) = (options, key) else { unreachable!("`finish` has seen no mistake") };
    let pool = store::Pool::prepare(&options, "lab", 1)?;
    let users = [NewUser {
        user_id: user.to_owned(),
        user_secret: SecretString::from(secret),
        accounts: accounts.to_vec(),
    }];
    store::snaptrade::load(&pool, &Sealer::new(&key), &users)
        .await
        .with_context(|| format!("loading the accounts of {user}"))?;
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
