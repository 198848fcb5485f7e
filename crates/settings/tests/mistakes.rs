//! What each kind of setting accepts and refuses, and that no report shows a secret.

use contract::env::{Key, Presence, Unit, keys};
use secrecy::ExposeSecret;
use settings::{Env, Error};

const COUNT: &Key = &keys::DATABASE_POOL;
const WAIT: &Key = &keys::START_BUDGET_SECONDS;
const TOKEN: &Key = &keys::SERVICE_TOKEN;

/// `finish` always reads this one.
const STRICT: (&str, &str) = ("SANMOPIA_ENV_STRICT", "false");

fn mistake(key: &Key, value: &str, read: impl FnOnce(&mut Env)) -> Option<String> {
    let mut env = Env::of_pairs([STRICT, (key.name, value)]);
    read(&mut env);
    env.finish().err().map(|error| error.to_string())
}

#[test]
fn a_count_is_digits_within_its_range() {
    let cases = [
        ("8", true),
        ("1000", true),
        ("", false),
        ("0", false),
        ("-1", false),
        ("+8", false),
        ("1001", false),
        ("1e9", false),
        ("99999999999999999999", false),
        ("08", false),
        ("8.0", false),
        ("8 ", false),
        (" 8", false),
        ("8\r", false),
        ("\"8\"", false),
        ("'8'", false),
        ("1_000", false),
        ("eight", false),
        ("change-me", false),
    ];
    for (value, accepted) in cases {
        let answer = mistake(COUNT, value, |env| {
            let _ = env.count(COUNT, 1..=1000);
        });
        assert_eq!(answer.is_none(), accepted, "{value:?}: {answer:?}");
        assert!(answer.is_none_or(|text| text.contains(COUNT.name)), "{value:?} is reported by name");
    }
}

#[test]
fn a_duration_is_a_bare_number_of_its_unit() {
    let mut env = Env::of_pairs([(WAIT.name, "30"), (keys::WORKER_POLL_MS.name, "200")]);

    assert_eq!(env.duration(WAIT, 1..=600).map(|time| time.as_millis()), Ok(30_000));
    assert_eq!(env.duration(&keys::WORKER_POLL_MS, 1..=60_000).map(|time| time.as_millis()), Ok(200));
    for value in ["10s", "1m", "0", "1.5", "∞"] {
        assert!(
            mistake(WAIT, value, |env| {
                let _ = env.duration(WAIT, 1..=600);
            })
            .is_some(),
            "{value}"
        );
    }
}

#[test]
fn a_token_is_taken_literally() {
    for value in [
        "1234567890123456",
        "0012300123001230",
        "truetruetruetrue",
        r#"a "quoted" {token} with spaces"#,
        "{curly}{curly}{curly}",
        "[brackets, and, commas]",
        "schlüssel-mit-umlaut",
        "1e400-1e400-1e400",
    ] {
        let mut env = Env::of_pairs([(TOKEN.name, value)]);
        let token = env.secret(TOKEN).expect("the token is long enough");
        assert_eq!(token.expose_secret(), value);
    }
}

#[test]
fn a_short_quoted_or_placeholder_token_is_refused_without_showing_it() {
    for value in
        ["", "canary-short", "\"canary-in-quotes-0123456789\"", " canary-0123456789 ", "canary-0123456789\r"]
    {
        let text = mistake(TOKEN, value, |env| drop(env.secret(TOKEN))).expect(value);
        assert!(text.contains(TOKEN.name) && !text.contains("canary"), "{text}");
    }
    let text =
        mistake(TOKEN, "change-me", |env| drop(env.secret(TOKEN))).expect("a placeholder is no secret");
    assert!(text.contains("placeholder"), "{text}");
}

#[test]
fn a_wrong_database_url_is_refused_without_showing_its_password() {
    for value in [
        "mysql://u:canary@h/d",
        "postgres//u:canary@h",
        "u:canary@h/d",
        "postgres://u:canary@h:port/d",
        "postgres:canary",
    ] {
        let key = &keys::DATABASE_URL;
        let text = mistake(key, value, |env| drop(env.database_url(key, key))).expect(value);
        assert!(text.contains(key.name) && !text.contains("canary"), "{text}");
    }
}

#[test]
fn a_list_of_secrets_is_read_by_name_and_refused_without_showing_any() {
    let key = &keys::SERVICE_TOKENS;
    let list = |value: &str| Env::of_pairs([(key.name, value)]).secret_list(key);
    let names =
        |value: &str| list(value).map(|pairs| pairs.into_iter().map(|(name, _)| name).collect::<Vec<_>>());

    assert_eq!(names(""), Ok(Vec::new()));
    let two = "backend=0123456789abcdef=,backend=ABCDEF0123456789";
    assert_eq!(names(two), Ok(vec!["backend".to_owned(), "backend".to_owned()]));
    assert_eq!(list(two).unwrap_or_default()[0].1.expose_secret(), "0123456789abcdef=");
    for wrong in
        ["canary", "=canarycanarycanary", "a b=canarycanarycanary", "a=canary", "a=canarycanarycanary,"]
    {
        let text = mistake(key, wrong, |env| {
            let _ = env.secret_list(key);
        });
        let text = text.expect(wrong);
        assert!(text.contains(key.name) && !text.contains("canary"), "{text}");
    }
}

#[test]
fn a_password_where_none_belongs_is_refused_without_showing_it() {
    let key = &keys::SNAPTRADE_BASE_URL;
    for value in ["https://u:canary@host", "https://canary@host", "ftp://u:canary@host", "u:canary@host"] {
        let text = mistake(key, value, |env| {
            let _ = env.url(key);
        });
        let text = text.expect(value);
        assert!(text.contains(key.name) && !text.contains("canary"), "{text}");
    }
}

#[test]
fn an_unset_login_falls_back_to_the_common_database() {
    let mut env = Env::of_pairs([(keys::DATABASE_URL.name, "postgres://u:p@h/d")]);
    let url = env.database_url(&keys::GATEWAY_DATABASE_URL, &keys::DATABASE_URL);

    assert_eq!(url.expect("the fallback is set").expose_secret(), "postgres://u:p@h/d");
}

#[test]
fn all_mistakes_are_in_one_report() {
    let mut env = Env::of_pairs([
        STRICT,
        (COUNT.name, "many"),
        (WAIT.name, "10s"),
        ("SANMOPIA_DATABSE_URL", "postgres://u:canary@h/d"),
        ("SANMOPIA_WORKER_SNAPTRADE_CONCURENCY", "8"),
    ]);
    let _ = (env.count(COUNT, 1..=9), env.duration(WAIT, 1..=9), env.secret(TOKEN));
    let error = env.finish().expect_err("five settings are wrong");

    let expected =
        [COUNT.name, WAIT.name, TOKEN.name, "SANMOPIA_DATABSE_URL", "SANMOPIA_WORKER_SNAPTRADE_CONCURENCY"];
    assert_eq!(error.names().collect::<Vec<_>>(), expected);
    assert!(error.to_string().contains("did you mean SANMOPIA_DATABASE_URL?"), "{error}");
    assert!(!error.to_string().contains("canary"), "{error}");
}

#[test]
fn a_name_two_letters_off_is_refused_and_a_strange_one_is_listed() {
    let judge = |name: &str, strict: &str| -> Result<Vec<String>, Error> {
        let env = Env::of_pairs([("SANMOPIA_ENV_STRICT", strict), (name, "1")]);
        env.finish().map(|shown| shown.unknown().to_vec())
    };

    assert!(judge("SANMOPIA_DATABASE_POLL", "false").is_err());
    assert!(judge("SANMOPIA_WORKER_PAYMENT_CONCURENCY", "false").is_err());
    assert!(judge("SANMOPIA_WORKER_TEA_CONCURRENCY", "false").is_err());
    assert_eq!(
        judge("SANMOPIA_FRONTEND_THEME", "false").expect("strange but harmless"),
        ["SANMOPIA_FRONTEND_THEME"]
    );
    assert!(judge("SANMOPIA_FRONTEND_THEME", "true").is_err());
    assert!(judge("PATH", "true").expect("not ours").is_empty());
}

#[test]
fn every_secret_is_masked_where_settings_are_shown() {
    let canary = "canary-canary-canary";
    let url = "postgres://u:canary@h/d";
    let key = "Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2E=";
    let value = |unit| match unit {
        Unit::Secret => Some(canary),
        Unit::SecretList => Some("name=canary-canary-canary"),
        Unit::SecretUrl => Some(url),
        Unit::SecretKey => Some(key),
        _ => None,
    };
    let secrets: Vec<_> = keys::ALL.iter().filter_map(|key| Some((*key, value(key.unit)?))).collect();
    let mut env =
        Env::of_pairs([STRICT].into_iter().chain(secrets.iter().map(|(key, value)| (key.name, *value))));
    for (key, _) in &secrets {
        let read = match key.unit {
            Unit::SecretUrl => env.database_url(key, key).is_ok(),
            Unit::SecretKey => env.secret_key(key).is_ok(),
            Unit::SecretList => env.secret_list(key).is_ok(),
            _ => env.secret(key).is_ok(),
        };
        assert!(read, "{}", key.name);
    }
    let shown = env.finish().expect("all is set").to_string();

    assert!(shown.contains(TOKEN.name) && !shown.contains("canary") && !shown.contains("Y2Fu"), "{shown}");
    assert!(
        secrets.iter().any(|(key, _)| key.presence == Presence::Optional),
        "optional secrets are in the table"
    );
}
