//! What an operator does with dead letters, typed into the command line beside a running platform.

use std::io::Write;
use std::process::Output;

use serde_json::{Value, json};
use testkit::eventually;
use testkit::sandbox::{Fault, Rule};

use crate::platform::{BUDGET, Platform, QUEUE};
use crate::program::{Program, run};

const FACTS: &str = "sanmopia_payment_webhook_processing";

/// The operators' program, with an operator's name in its settings.
struct Desk(Vec<(String, String)>);

impl Desk {
    fn of(platform: &Platform) -> Self {
        let mut settings = platform.settings();
        settings.push(("SANMOPIA_OPERATOR".to_owned(), "kim".to_owned()));
        Self(settings)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run("spillway", &[&["dead-letters"], arguments].concat(), &self.0)
    }

    /// What it prints where it succeeds.
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn answers(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.says(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// What it says where it refuses.
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    fn only_letter(&self) -> String {
        let letters = self.answers(&["list"]);
        assert_eq!(letters.as_array().map(Vec::len), Some(1), "{letters}");
        letters[0]["id"].as_str().unwrap().to_owned()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn becomes(platform: &Platform, command: &str, status: &str) -> Value {
    eventually(&format!("the command is {status}"), BUDGET, async || {
        let command = platform.command(command).await;
        (command["status"] == status).then_some(command)
    })
    .await
}

/// The account is gone at the provider, until the script is cleared.
fn deny(platform: &Platform) {
    let gone = Fault::Status {
        status: 404,
        code: "1011".to_owned(),
        detail: "The requested resource does not exist.".to_owned(),
        retry_after: None,
        reset_s: None,
    };
    platform.sandbox.script(Rule::on("GET", "/accounts/{id}/positions/all").answer(gone));
}

/// Commands that died without a worker, as the ledger would show them: each has a dead letter and its message.
async fn bury(platform: &Platform, queue: &str, reason: &str, policies: &str) {
    platform
        .database
        .execute(&format!(
            "with given_up as (
               update spillway.command set status = 'dead_lettered', finished_at = now()
               where queue = '{queue}' and finished_at is null returning id, workload
             ), gone as (delete from pgmq.q_{queue})
             insert into spillway.dead_letter (id, command_id, workload, queue, msg_id, dead_msg_id, reason,
               detail_code, detail, policies, message, attempts, crashes)
             select spillway.uuid_v7(), id, workload, '{queue}', row_number() over (),
               pgmq.send('{queue}_dead', jsonb_build_object('command', id)), '{reason}', 'x', 'x', '{policies}', '{{}}', 1, 0
             from given_up;
             update spillway.account_sync set waiting_command = null"
        ))
        .await;
}

#[tokio::test]
async fn a_dead_letter_is_replayed_once_its_cause_is_mended() {
    let platform = Platform::with_accounts(1).await;
    let desk = Desk::of(&platform);
    deny(&platform);
    let worker =
        Program::start("webhook-worker", &["--queue", "snaptrade-account-sync"], &platform.settings());
    let command = platform.deliver(&platform.holdings_event("evt-1", 0)).await["command_id"]
        .as_str()
        .unwrap()
        .to_owned();
    becomes(&platform, &command, "dead_lettered").await;
    let first = desk.only_letter();
    assert!(desk.says(&["replay", &first, "--why", "try", "--dry-run"]).starts_with("would replay"));
    assert_eq!(platform.command(&command).await["status"], "dead_lettered");
    assert!(desk.says(&["replay", &first, "--why", "try"]).contains(&command));

    // Nothing was mended: it dies again, as a new dead letter of the same line.
    let second = eventually("it dies again", BUDGET, async || {
        let letters = desk.answers(&["list"]);
        letters[0]["id"].as_str().filter(|id| *id != first).map(str::to_owned)
    })
    .await;
    let shown = desk.answers(&["show", &second]);
    assert_eq!((&shown["first_dead_letter"], &shown["replays"]), (&json!(first), &json!(1)));
    assert!(desk.refuses(&["replay", &first, "--why", "again"]).contains("already replayed by kim"));
    platform.sandbox.clear_script();
    desk.says(&["replay", &second, "--why", "the account is back", "--as", "lee"]);
    becomes(&platform, &command, "succeeded").await;

    assert_eq!(worker.terminate().await, Some(0));
    assert_eq!(platform.count("spillway.snaptrade_account where holdings_synced_at is not null").await, 1);
    let story = desk.says(&["show", &second]);
    assert!(
        story.contains("replayed") && story.contains("lee") && story.contains("the account is back"),
        "{story}"
    );
    assert!(desk.says(&["list"]).contains("no open dead letters"));
}

#[tokio::test]
async fn a_bulk_replay_prints_what_it_did_and_needs_a_filter() {
    let platform = Platform::with_accounts(3).await;
    let desk = Desk::of(&platform);
    for account in 0..3 {
        platform.deliver(&platform.holdings_event(&format!("evt-{account}"), account)).await;
    }
    bury(&platform, QUEUE, "provider_cooldown", "{replay_same_input,suppress}").await;
    let bulk = [
        "replay",
        "--workload",
        "snaptrade-account-sync",
        "--reason",
        "provider_cooldown",
        "--why",
        "quota raised",
    ];
    let unfiltered = desk.run(&["replay", "--why", "all of it"]);
    assert_eq!(unfiltered.status.code(), Some(2), "{}", text(&unfiltered));
    let misspelt = desk.run(&["replay", "--reason", "cooldown", "--why", "x"]);
    assert!(text(&misspelt).contains("provider_cooldown"), "{}", text(&misspelt));
    assert!(desk.says(&[&bulk[..], &["--dry-run"]].concat()).ends_with("would replay 3, refused 0\n"));
    assert!(desk.says(&[&bulk[..], &["--older-than", "1h"]].concat()).ends_with("replayed 0, refused 0\n"));
    let answer = desk.answers(&[&bulk[..], &["--limit", "2"]].concat());
    assert_eq!(
        (&answer["acted"], &answer["refused"], &answer["dry_run"]),
        (&json!(2), &json!(0), &json!(false))
    );
    assert!(desk.says(&["replay", "--all", "--why", "the rest"]).ends_with("replayed 1, refused 0\n"));

    assert_eq!(platform.count(&format!("pgmq.q_{QUEUE}")).await, 3);
    assert_eq!(platform.count("spillway.operator_action where actor = 'kim'").await, 3);
}

#[tokio::test]
async fn a_repair_is_checked_shown_and_sent() {
    let platform = Platform::with_accounts(0).await;
    let desk = Desk::of(&platform);
    let payment = "45a3056a-eef6-4904-a68e-d3f90c3e07c5";
    let submit = format!(
        "select spillway.submit('payment-webhook-processing', 'key-1', '{{\"tenat\": \"main\", \"payment_id\": \"{payment}\"}}', 'shop', 'hq')"
    );
    platform.database.execute(&submit).await;
    bury(&platform, FACTS, "payload_invalid", "{repair_then_replay,suppress,manual_reconcile}").await;
    let letter = desk.only_letter();
    assert!(desk.refuses(&["replay", &letter, "--why", "x"]).contains("repair_then_replay"));
    let input = desk.says(&["input", &letter, "--why", "to repair it"]);
    assert!(input.contains("tenat"), "{input}");

    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(input.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let repair = ["repair", &letter, "--input", &path, "--why", "a misspelt field"];
    assert!(desk.refuses(&repair).contains("unknown field"));
    std::fs::write(&path, input.replace("tenat", "tenant")).unwrap();
    let preview = desk.says(&[&repair[..], &["--dry-run"]].concat());
    assert!(preview.contains("gone /tenat") && preview.contains("new /tenant"), "{preview}");
    assert!(!preview.contains("main"), "payloads are not printed: {preview}");
    desk.says(&repair);

    assert_eq!(
        platform.count("spillway.command where status = 'queued' and payload ->> 'tenant' = 'main'").await,
        1
    );
    assert_eq!(platform.count(&format!("pgmq.q_{FACTS}")).await, 1);
    assert_eq!(platform.count("spillway.replay where original ? 'tenat' and repaired ? 'tenant'").await, 1);
    let audit = platform.database.texts("select action from spillway.operator_action order by id").await;
    assert_eq!(audit, ["reveal", "repair_then_replay"]);
}

#[tokio::test]
async fn what_is_suppressed_or_reconciled_has_ended_and_a_name_is_needed_for_it() {
    let platform = Platform::with_accounts(0).await;
    let desk = Desk::of(&platform);
    for (key, action, status) in [("key-1", "suppress", "suppressed"), ("key-2", "reconcile", "reconciled")] {
        let submit =
            format!("select spillway.submit('payment-webhook-processing', '{key}', '{{}}', 'shop', 'hq')");
        platform.database.execute(&submit).await;
        bury(&platform, FACTS, "payload_invalid", "{repair_then_replay,suppress,manual_reconcile}").await;
        let letter = desk.only_letter();
        let nobody = run("spillway", &["dead-letters", action, &letter, "--why", "x"], &platform.settings());
        assert_eq!(nobody.status.code(), Some(64), "{}", text(&nobody));
        assert!(text(&nobody).contains("--as NAME"), "{}", text(&nobody));
        let answer = desk.answers(&[action, &letter, "--why", "settled with the bank"]);

        assert_eq!((&answer["acted"], &answer["refused"]), (&json!(true), &Value::Null));
        let command = answer["command_id"].as_str().unwrap();
        assert_eq!(platform.command(command).await["status"], status);
    }
}

#[tokio::test]
async fn the_help_teaches_what_may_be_done() {
    for (action, taught) in [
        ("replay", "--dry-run"),
        ("repair", "dead-letters input"),
        ("suppress", "--why"),
        ("reconcile", "--as"),
    ] {
        let output = run("spillway", &["dead-letters", action, "--help"], &[]);

        assert!(output.status.success() && text(&output).contains(taught), "{}", text(&output));
    }
}
