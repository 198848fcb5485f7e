//! `spillway load …`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use contract::env::keys;
use process::Error;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use store::Pool;
use store::seal::Sealer;
use store::snaptrade::{NewUser, load};
use uuid::Uuid;

use crate::{file, show};

#[derive(Subcommand)]
pub(crate) enum Action {
    /// SnapTrade users with their secrets and accounts:
    /// {"users":[{"user_id":"…","user_secret":"…","accounts":["UUID",…]}]}
    Snaptrade {
        /// The JSON file; `-` reads standard input, so that secrets need no file.
        file: PathBuf,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Roster {
    users: Vec<User>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    #[serde(rename = "user_id")]
    id: String,
    #[serde(rename = "user_secret")]
    secret: String,
    accounts: Vec<Uuid>,
}

pub(crate) async fn run(action: &Action, as_json: bool) -> Result<(), Error> {
    let Action::Snaptrade { file } = action;
    let (_, (options, key), _) = process::load(|env| {
        let options = store::Options::read_direct(env, &keys::OPERATOR_DATABASE_URL);
        let key = env.secret_key(&keys::DATA_KEY);
        Ok((options?, key?))
    })?;
    let users = read(file)?;
    let (n, accounts) = (users.len(), users.iter().map(|user| user.accounts.len()).sum::<usize>());
    let pool =
        Pool::prepare(&options, "cli", 1).map_err(|error| Error::failed("preparing a connection", error))?;
    let added = load(&pool, &Sealer::new(&key), &users)
        .await
        .map_err(|error| Error::failed(format!("loading {}", file.display()), error))?;
    if as_json {
        show::json(&json!({ "users": n, "accounts": accounts, "accounts_added": added }));
    } else {
        show::line(&format!("{n} users with {accounts} accounts, {added} of them new"));
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<NewUser>, Error> {
    let roster: Roster = file::json(file)?;
    let user = |user: User| NewUser {
        user_id: user.id,
        user_secret: SecretString::from(user.secret),
        accounts: user.accounts,
    };
    Ok(roster.users.into_iter().map(user).collect())
}
