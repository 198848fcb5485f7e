//! What surrounds a process: its settings, and the trace context of its requests.

use contract::env::keys;
use settings::Env;
use telemetry::Trace;
use telemetry::trace::id_of;

use crate::harness::{Cases, twice};

/// Reads a value as everything that it could be. Answers what would be printed.
fn read(value: &str) -> String {
    let mut env = Env::of_pairs(keys::ALL.iter().map(|key| (key.name, value)));
    let _ = env.switch(&keys::LOG);
    let count = env.count(&keys::DATABASE_POOL, 1..=500);
    assert!(count.is_err() || count.is_ok_and(|count| (1..=500).contains(&count)));
    let _ = env.duration(&keys::DATABASE_DEADLINE_MS, 100..=600_000);
    let _ = env.listen(&keys::GATEWAY_LISTEN);
    let _ = env.url(&keys::SNAPTRADE_BASE_URL);
    let _ = env.secret(&keys::SERVICE_TOKEN);
    let _ = env.secret_list(&keys::STANDARD_WEBHOOK_SECRETS);
    let _ = env.secret_key(&keys::DATA_KEY);
    let _ = env.database_url(&keys::GATEWAY_DATABASE_URL, &keys::DATABASE_URL);
    let _ = providers::supabase::Options::read(&mut env);
    let _ = intake::Options::read(&mut env);
    env.finish().map_or_else(|mistakes| mistakes.to_string(), |shown| shown.to_string())
}

/// The same with secrets only: nothing of them may be printed.
fn read_secrets(value: &str) -> String {
    let secrets = keys::ALL.iter().filter(|key| key.unit.is_secret()).map(|key| (key.name, value));
    let mut env = Env::of_pairs(secrets.chain([(keys::ENV_STRICT.name, "false")]));
    let _ = env.secret(&keys::SERVICE_TOKEN);
    let _ = webhook::standard::Sources::read(&mut env);
    let _ = env.secret_key(&keys::DATA_KEY);
    let _ = env.database_url(&keys::GATEWAY_DATABASE_URL, &keys::DATABASE_URL);
    env.finish().map_or_else(|mistakes| mistakes.to_string(), |shown| shown.to_string())
}

#[test]
fn a_setting_is_read_or_refused_and_no_secret_is_printed() {
    let examples = [
        "true",
        "500",
        "127.0.0.1:8080",
        "[::1]:0",
        "https://ref.supabase.co/auth/v1",
        "postgres://user:password@localhost:5432/spillway?options=-c%20role%3Dx",
        "shop=whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz,shop=whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz",
        "ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGQ=",
        "app_metadata.branch",
        "info,store=debug",
    ];
    Cases::new("settings", examples).check(|case| {
        let value = case.text();
        twice(|| read(&value));
        let printed = twice(|| read_secrets(&value));
        // Of a list, the names are no secret.
        let secrets = value.split(',').map(|pair| pair.split_once('=').map_or(pair, |(_, secret)| secret));
        for secret in secrets.filter(|secret| secret.len() >= 16) {
            assert!(!printed.contains(secret), "{printed}");
        }
    });
}

#[test]
fn a_trace_is_followed_or_started_anew() {
    let examples = [
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\nvendor=1,other=a b",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what\na@b=1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff\n",
    ];
    Cases::new("traces", examples).check(|case| {
        let text = case.text();
        let (parent, rest) = text.split_once('\n').unwrap_or((&text, ""));
        // No header holds anything else.
        let state: String = rest.chars().filter(|c| matches!(c, ' '..='~')).collect();
        let trace = Trace::follow(Some(parent), Some(&state));
        let written = trace.traceparent();
        assert_eq!((written.len(), id_of(&written)), (55, Some(trace.id().as_str())));
        let followed = Trace::follow(Some(&written), Some(&trace.tracestate()));
        assert_eq!(followed.id(), trace.id());
        assert_eq!(followed.tracestate(), trace.tracestate(), "what is written is read again");
        assert!(!trace.tracestate().contains(char::is_control), "{:?}", trace.tracestate());
        if let Some(id) = twice(|| id_of(parent)) {
            assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    });
}
