//! SnapTrade accounts that a platform is told about before events about them are sent.

use anyhow::Context;
use secrecy::SecretString;
use store::seal::Sealer;
use store::snaptrade::NewUser;
use uuid::Uuid;

use crate::connection::Settings;
use crate::dice::Dice;

/// Accounts of one load: it has the deadline of a single call.
const A_LOAD: usize = 5000;

/// As many ids; equal seeds give equal ones.
pub(crate) fn ids(seed: u64, n: usize) -> Vec<Uuid> {
    let mut dice = Dice(seed);
    (0..n).map(|_| dice.uuid()).collect()
}

/// Loads the accounts of one user into the platform.
pub(crate) async fn load(
    settings: &Settings,
    user_id: &str,
    user_secret: &str,
    accounts: &[Uuid],
) -> anyhow::Result<()> {
    let mut env = settings::Env::of_pairs(settings.pairs());
    let options = store::Options::read(&mut env, &contract::env::keys::OPERATOR_DATABASE_URL);
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
