//! Migrating: an empty database, a database that the Supabase CLI migrated, two at once.

use contract::Workload;
use sqlx::migrate::Migrator;
use store::migrate::run;
use testkit::Database;

#[tokio::test]
async fn an_empty_database_ends_with_exactly_the_contracts_queues() {
    let database = Database::empty().await;
    let report = run(&database.options(2)).await.unwrap();

    assert!(report.installed_pgmq && !report.applied.is_empty() && report.adopted.is_empty(), "{report:?}");
    let mut expected: Vec<&str> = Workload::ALL
        .iter()
        .flat_map(|workload| [workload.queue().name, workload.queue().dead_letter])
        .collect();
    expected.sort_unstable();
    assert_eq!(database.texts("select queue_name::text from pgmq.list_queues() order by 1").await, expected);
    store::contract_check::require(&database.pool(1)).await.unwrap();
}

#[tokio::test]
async fn a_second_run_changes_nothing() {
    let database = Database::empty().await;
    run(&database.options(2)).await.unwrap();
    let report = run(&database.options(2)).await.unwrap();

    assert_eq!(report, store::migrate::Report::default());
}

#[tokio::test]
async fn runs_at_the_same_time_wait_for_one_another() {
    let database = Database::empty().await;
    let options = database.options(2);
    let (a, b, c) = tokio::join!(run(&options), run(&options), run(&options));
    let reports = [a.unwrap(), b.unwrap(), c.unwrap()];

    assert_eq!(reports.iter().filter(|report| !report.applied.is_empty()).count(), 1, "{reports:?}");
}

#[tokio::test]
async fn what_the_supabase_cli_applied_is_adopted() {
    let database = Database::empty().await;
    run(&database.options(2)).await.unwrap();
    // The CLI runs the same files and keeps a history of its own.
    let versions = database.texts("select version::text from spillway._sqlx_migrations order by 1").await;
    database.execute("drop table spillway._sqlx_migrations").await;
    database
        .execute(
            "create schema supabase_migrations;
             create table supabase_migrations.schema_migrations (version text primary key, statements text[], name text)",
        )
        .await;
    for version in &versions {
        database
            .execute(&format!(
                "insert into supabase_migrations.schema_migrations values ('{version}', '{{}}', 'x')"
            ))
            .await;
    }
    let report = run(&database.options(2)).await.unwrap();

    assert_eq!(report.adopted.iter().map(ToString::to_string).collect::<Vec<_>>(), versions);
    assert!(report.applied.is_empty(), "{report:?}");
    let embedded: Migrator = sqlx::migrate!("../../migrations");
    assert_eq!(embedded.iter().count(), versions.len());
}

#[tokio::test]
async fn file_names_are_what_the_supabase_cli_accepts() {
    for entry in std::fs::read_dir("../../migrations").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".sql") else { continue };
        let (version, words) = stem.split_once('_').unwrap();
        assert!(version.len() == 14 && version.bytes().all(|b| b.is_ascii_digit()), "{name}");
        assert!(words.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        let text = std::fs::read_to_string(format!("../../migrations/{name}")).unwrap();
        assert!(text.lines().take(8).any(|line| line.starts_with("-- Locks: ")), "{name} says what it locks");
        for word in ["select *", "index concurrently", "begin;", "commit;"] {
            assert!(!text.to_lowercase().contains(word), "{name}: {word}");
        }
    }
}

#[tokio::test]
async fn a_database_that_was_never_migrated_is_named_with_the_cure() {
    let database = Database::empty().await;
    let error = store::contract_check::require(&database.pool(1)).await.expect_err("there is nothing");

    assert!(error.to_string().contains("spillway migrate"), "{error}");
}

#[tokio::test]
async fn a_changed_number_or_a_missing_queue_is_named() {
    for (change, named) in [
        (
            "update spillway.workload set max_attempts = 7 where kind = 'settlement-export'",
            "settlement-export",
        ),
        ("select pgmq.drop_queue('sanmopia_document_rendering_dead')", "sanmopia_document_rendering_dead"),
        ("delete from spillway.workload where kind = 'notification-dispatch'", "notification-dispatch"),
    ] {
        let database = Database::fresh().await;
        database.execute(change).await;
        let error = store::contract_check::require(&database.pool(1)).await.expect_err(change);

        assert!(error.to_string().contains(named), "{error}");
    }
}
