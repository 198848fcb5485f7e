//! The settings of a private platform: the example's, with what `up` knows or makes, and what the caller gave.

use std::fs;
use std::process::Command;

use anyhow::Context;

use super::platform::Platform;
use super::services;
use crate::env_file::{self, Values};
use crate::home::Home;
use crate::postgres::Cluster;
use crate::secrets::Secrets;
use crate::{random, state};

/// The database on the private server.
pub(crate) const DATABASE: &str = "spillway";
pub(super) const DATABASE_URL: &str = "SANMOPIA_DATABASE_URL";
pub(crate) const SNAPTRADE_BASE_URL: &str = "SANMOPIA_SNAPTRADE_BASE_URL";

const PREFIX: &str = "SANMOPIA_";
const EXAMPLE: &str = ".env.example";
/// What the example says where each installation needs a value of its own.
const PLACEHOLDER: &str = "change-me";
const SECRET_BYTES: usize = 24;
const DATA_KEY: &str = "SANMOPIA_DATA_KEY";
const DATA_KEY_BYTES: usize = 32;

/// The setting, the login role of its URL, and the name under which the role's password is kept.
const ROLES: [(&str, &str, &str); 3] = [
    ("SANMOPIA_GATEWAY_DATABASE_URL", "spillway_gateway", "SPILLWAY_GATEWAY_PASSWORD"),
    ("SANMOPIA_WORKER_DATABASE_URL", "spillway_worker", "SPILLWAY_WORKER_PASSWORD"),
    ("SANMOPIA_OPERATOR_DATABASE_URL", "spillway_operator", "SPILLWAY_OPERATOR_PASSWORD"),
];

/// What the caller set. An empty variable counts as not set.
pub(super) fn given() -> Values {
    let text = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    text.filter(|(key, value)| key.starts_with(PREFIX) && !value.is_empty()).collect()
}

/// All settings in force.
pub(super) fn settings(
    platform: &mut Platform<'_>,
    server: Option<&Cluster>,
    given: &Values,
) -> anyhow::Result<Values> {
    let mut example = example(platform.home())?;
    let mut ours = listeners(platform)?;
    match server {
        Some(server) => ours.extend(database_urls(server, platform.secrets_mut())?),
        // The roles' passwords are the owner's business, and without these URLs the one given is used.
        None => example.retain(|key, _| ROLES.iter().all(|(role_url, ..)| key != role_url)),
    }
    let sandbox = platform.listen(state::SANDBOX)?;
    ours.insert(SNAPTRADE_BASE_URL.to_owned(), format!("http://{sandbox}"));
    compose(&example, ours, given, |key| make_secret(platform.secrets_mut(), key))
}

/// All settings of a platform that takes nothing from the caller: on a private server, with these beside.
pub(crate) fn private(
    home: &Home,
    server: &Cluster,
    secrets: &mut Secrets,
    mut ours: Values,
) -> anyhow::Result<Values> {
    ours.extend(database_urls(server, secrets)?);
    compose(&example(home)?, ours, &Values::new(), |key| make_secret(secrets, key))
}

fn example(home: &Home) -> anyhow::Result<Values> {
    let path = home.root().join(EXAMPLE);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    env_file::parse_raw(&text).with_context(|| format!("reading {EXAMPLE}"))
}

/// Gives a program these settings and none of those we were started with.
pub(crate) fn apply(command: &mut Command, settings: &Values) {
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with(PREFIX) {
            command.env_remove(key);
        }
    }
    command.envs(settings);
}

pub(super) fn create_database() -> String {
    format!(
        "select 'create database {DATABASE}' where not exists (select from pg_database where datname = '{DATABASE}') \
         \\gexec\n"
    )
}

/// Lets the roles log in with the passwords that [`settings`] put into their URLs.
pub(crate) fn role_logins(secrets: &Secrets) -> anyhow::Result<String> {
    let statement = |(_, role, name): &(&str, &str, &str)| {
        let password = secrets.kept(name).with_context(|| format!("{name} was not made"))?;
        Ok(format!("alter role {role} login password '{password}';\n"))
    };
    ROLES.iter().map(statement).collect()
}

/// Later wins: the example, the secrets in place of its placeholders, ours, the caller's.
fn compose(
    example: &Values,
    ours: Values,
    given: &Values,
    mut secret: impl FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<Values> {
    let mut settings = Values::new();
    for (key, value) in example {
        let own = value == PLACEHOLDER || key == DATA_KEY;
        settings.insert(key.clone(), if own { secret(key)? } else { value.clone() });
    }
    settings.extend(ours);
    settings.extend(given.clone());
    Ok(settings)
}

fn make_secret(secrets: &mut Secrets, key: &str) -> anyhow::Result<String> {
    secrets
        .get(key, || if key == DATA_KEY { random::base64(DATA_KEY_BYTES) } else { random::hex(SECRET_BYTES) })
}

fn database_urls(server: &Cluster, secrets: &mut Secrets) -> anyhow::Result<Values> {
    let mut urls = Values::from([(DATABASE_URL.to_owned(), server.url(DATABASE))]);
    for (key, role, name) in ROLES {
        let password = secrets.get(name, || random::hex(SECRET_BYTES))?;
        urls.insert(key.to_owned(), server.url_for(role, &password, DATABASE));
    }
    Ok(urls)
}

/// A key that several services share holds the address of the first one; the others get theirs at the start.
fn listeners(platform: &mut Platform<'_>) -> anyhow::Result<Values> {
    let mut addresses = Values::new();
    for service in services::ALL {
        for (key, port_name) in service.listeners(1) {
            if !addresses.contains_key(key) {
                addresses.insert(key.to_owned(), platform.listen(&port_name)?);
            }
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn placeholders_become_secrets_and_the_rest_of_the_example_stays() {
        let example = values(&[("SANMOPIA_SERVICE_TOKEN", "change-me"), ("SANMOPIA_LOG_FORMAT", "json")]);

        let settings = compose(&example, Values::new(), &Values::new(), |key| Ok(format!("secret of {key}")))
            .expect("composed");

        assert_eq!(settings["SANMOPIA_SERVICE_TOKEN"], "secret of SANMOPIA_SERVICE_TOKEN");
        assert_eq!(settings["SANMOPIA_LOG_FORMAT"], "json");
    }

    #[test]
    fn the_data_key_is_made_whatever_the_example_shows() {
        let example = values(&[(DATA_KEY, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")]);

        let settings =
            compose(&example, Values::new(), &Values::new(), |_| Ok("made".into())).expect("composed");

        assert_eq!(settings[DATA_KEY], "made");
    }

    #[test]
    fn the_caller_overrides_the_example_and_ours() {
        let example = values(&[("SANMOPIA_A", "example"), ("SANMOPIA_B", "change-me")]);
        let given = values(&[("SANMOPIA_A", "caller"), ("SANMOPIA_B", "caller"), ("SANMOPIA_C", "caller")]);

        let settings = compose(&example, values(&[("SANMOPIA_A", "ours")]), &given, |_| Ok("made".into()))
            .expect("composed");

        assert_eq!(settings, given);
    }

    #[test]
    fn a_program_gets_the_settings_and_nothing_of_ours() {
        let mut command = Command::new("env");

        apply(&mut command, &values(&[("SANMOPIA_A", "one")]));

        let set: Vec<_> = command.get_envs().filter(|(_, value)| value.is_some()).collect();
        assert_eq!(set, [("SANMOPIA_A".as_ref(), Some("one".as_ref()))]);
    }
}
