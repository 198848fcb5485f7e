//! How programs start: closed when a setting or a dependency is wrong, by name, with an exit code.

use testkit::{Database, eventually};

use crate::platform::{BUDGET, Platform, example, with};
use crate::program::{Program, run};

const WORKER: &[&str] = &["--queue", "snaptrade-account-sync", "--check"];

fn text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn the_example_alone_is_refused_with_every_placeholder_named() {
    for (program, arguments) in [("gateway", &["--check"][..]), ("webhook-worker", WORKER)] {
        let output = run(program, arguments, &example());
        let said = text(&output);

        assert_eq!(output.status.code(), Some(64), "{program}: {said}");
        for name in ["SANMOPIA_DATABASE_URL", "SANMOPIA_SNAPTRADE_CONSUMER_KEY"] {
            assert!(said.contains(name), "{program}: {said}");
        }
    }
}

#[tokio::test]
async fn a_check_shows_the_settings_without_their_secrets() {
    let platform = Platform::with_accounts(0).await;
    let settings = platform.settings();
    for (program, arguments) in [("gateway", &["--check"][..]), ("webhook-worker", WORKER)] {
        let output = run(program, arguments, &settings);
        let said = text(&output);

        assert_eq!(output.status.code(), Some(0), "{program}: {said}");
        assert!(said.contains("SANMOPIA_DATABASE_POOL=16"), "{said}");
        for (name, secret) in settings
            .iter()
            .filter(|(name, _)| name.contains("KEY") || name.contains("SECRET") || name.contains("TOKEN"))
        {
            assert!(!said.contains(secret), "{program} shows {name}");
        }
        assert!(!said.contains(&platform.database.url()), "{said}");
    }
}

#[tokio::test]
async fn a_worker_is_asked_only_for_what_its_queue_needs() {
    let platform = Platform::with_accounts(0).await;
    let mut settings = platform.settings();
    settings.retain(|(name, _)| !name.contains("SNAPTRADE") && name != "SANMOPIA_DATA_KEY");
    let output = run("webhook-worker", &["--queue", "payment-webhook-processing", "--check"], &settings);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));

    settings.push(("SANMOPIA_WORKER_WEBHOOK_CONCURRENCY".to_owned(), "17".to_owned()));
    let output = run("webhook-worker", &["--queue", "payment-webhook-processing", "--check"], &settings);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("SANMOPIA_WORKER_WEBHOOK_CONCURRENCY"), "{said}");
}

#[tokio::test]
async fn one_wrong_setting_is_named_and_its_secret_is_not_shown() {
    let platform = Platform::with_accounts(0).await;
    for (name, value, program) in [
        ("SANMOPIA_WORKER_SNAPTRADE_SYNC_CONCURRENCY", "0", "webhook-worker"),
        ("SANMOPIA_WORKER_SNAPTRADE_SYNC_CONCURRENCY", "17", "webhook-worker"),
        ("SANMOPIA_WORKER_SNAPTRADE_SYNC_CONCURENCY", "8", "webhook-worker"),
        ("SANMOPIA_DATA_KEY", "canary", "webhook-worker"),
        ("SANMOPIA_GATEWAY_LISTEN", "8080", "gateway"),
        ("SANMOPIA_SERVICE_TOKEN", "canary", "gateway"),
        ("SANMOPIA_INTAKE_IN_FLIGHT", "10s", "gateway"),
        ("SANMOPIA_LOG", "info,=,", "gateway"),
    ] {
        let mut settings = platform.settings();
        settings.push((name.to_owned(), value.to_owned()));
        let output = run(program, if program == "gateway" { &["--check"] } else { WORKER }, &settings);
        let said = text(&output);

        assert_eq!(output.status.code(), Some(64), "{name}={value}: {said}");
        assert!(said.contains(name) && !said.contains("canary"), "{said}");
    }
}

#[tokio::test]
async fn a_database_that_is_away_or_not_migrated_is_named_with_exit_69() {
    let (platform, empty) = (Platform::with_accounts(0).await, Database::empty().await);
    let nowhere = "postgres://nobody:canary@127.0.0.1:1/nothing".to_owned();
    for (url, named) in [(empty.url(), "spillway migrate"), (nowhere, "Postgres")] {
        let own = [("SANMOPIA_GATEWAY_DATABASE_URL", url), ("SANMOPIA_START_BUDGET_SECONDS", "1".to_owned())];
        let settings = with(platform.settings(), own);
        let output = run("gateway", &["--check"], &settings);
        let said = text(&output);

        assert_eq!(output.status.code(), Some(69), "{said}");
        assert!(said.contains(named) && !said.contains("canary"), "{said}");
    }
}

#[tokio::test]
async fn the_operators_program_migrates_shows_and_loads() {
    let (platform, empty) = (Platform::with_accounts(2).await, Database::empty().await);
    let own = [
        ("SANMOPIA_DATABASE_URL", empty.url()),
        ("SANMOPIA_OPERATOR_DATABASE_URL", empty.url_as("spillway_operator")),
    ];
    let settings = with(platform.settings(), own);
    let spillway = |arguments: &[&str]| {
        let output = run("spillway", arguments, &settings);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };

    assert!(spillway(&["migrate"]).contains("applied"));
    assert!(spillway(&["migrate"]).contains("up to date"));
    assert!(spillway(&["queues"]).contains("snaptrade-account-sync"));
    let queues: serde_json::Value = serde_json::from_str(&spillway(&["queues", "--json"])).unwrap();
    assert_eq!(queues.as_array().map(Vec::len), Some(8));
    assert!(spillway(&["dead-letters", "list"]).contains("no open dead letters"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let roster = r#"{"users":[{"user_id":"u","user_secret":"s","accounts":["45a3056a-eef6-4904-a68e-d3f90c3e07c5"]}]}"#;
    std::fs::write(file.path(), roster).unwrap();
    let path = file.path().to_str().unwrap();
    assert!(spillway(&["load", "snaptrade", path]).contains("1 of them new"));
    assert!(spillway(&["load", "snaptrade", path]).contains("0 of them new"));

    let missing = run("spillway", &["commands", "show", "00000000-0000-4000-8000-000000000000"], &settings);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing).contains("there is no command"), "{}", text(&missing));
}

#[tokio::test]
async fn every_program_explains_itself() {
    for program in ["gateway", "webhook-worker", "spillway", "lab"] {
        let output = run(program, &["--help"], &[]);
        let said = text(&output);

        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("Usage:") && said.len() > 200, "{said}");
    }
}

#[tokio::test]
async fn a_standby_is_named_with_exit_69() {
    let platform = Platform::with_accounts(0).await;
    for (program, arguments, url) in [
        ("gateway", &["--check"][..], "SANMOPIA_GATEWAY_DATABASE_URL"),
        ("webhook-worker", WORKER, "SANMOPIA_WORKER_DATABASE_URL"),
    ] {
        let own = [(url, testkit::standby_url()), ("SANMOPIA_START_BUDGET_SECONDS", "1".to_owned())];
        let settings = with(platform.settings(), own);
        let output = run(program, arguments, &settings);
        let said = text(&output);

        assert_eq!(output.status.code(), Some(69), "{program}: {said}");
        assert!(said.contains("is a standby"), "{program}: {said}");
    }
}

/// How often everything starts at once, and how much that is.
const ROUNDS: u32 = 1;
const GATEWAYS: usize = 2;
const WORKERS: usize = 16;

#[tokio::test]
async fn many_processes_that_start_at_once_start_without_a_complaint() {
    let platform = Platform::with(0, 0).await;
    let settings = platform.settings();
    for round in 0..ROUNDS {
        let log = tempfile::NamedTempFile::new().unwrap();
        let gateways = [("gateway", &[][..]); GATEWAYS];
        let workers = [("webhook-worker", &["--queue", "snaptrade-account-sync"][..]); WORKERS];
        let programs: Vec<Program> = gateways
            .into_iter()
            .chain(workers)
            .map(|(name, arguments)| Program::start_with_log(name, arguments, &settings, log.as_file()))
            .collect();
        eventually("all are in the list of processes", BUDGET, async || {
            let listed = platform.count("spillway.process").await;
            (usize::try_from(listed) == Ok(GATEWAYS + WORKERS)).then_some(())
        })
        .await;
        for program in programs {
            assert_eq!(program.terminate().await, Some(0));
        }

        let log = std::fs::read_to_string(log.path()).unwrap();
        let levels = log.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            line["level"].as_str().unwrap_or_default().to_owned()
        });
        let complaints: Vec<&str> =
            log.lines().zip(levels).filter(|(_, level)| level != "INFO").map(|(line, _)| line).collect();
        assert_eq!(complaints, [""; 0], "round {round}");
        assert_eq!(platform.count("spillway.process").await, 0);
    }
}
