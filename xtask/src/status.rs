//! `cargo xtask status`: what of the platform runs, for people as a table and for programs as JSON.

mod report;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::home::Home;
use crate::private_file;
use crate::terminal::say;
use report::{Condition, Report};

/// Show what runs and where; exits 0 only when all of it is up and ready
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the report as JSON to FILE, or to standard output for `-`
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
}

pub(crate) fn run(home: &Home, args: &Args) -> anyhow::Result<ExitCode> {
    let report = Report::of(home)?;
    match args.json.as_deref() {
        Some("-") => say(json(&report)?),
        // It names the database with its password.
        Some(file) => private_file::write(Path::new(file), &format!("{}\n", json(&report)?))?,
        None => print(&report),
    }
    Ok(if report.state == Condition::Up { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json(report: &Report) -> anyhow::Result<String> {
    serde_json::to_string(report).context("writing the report as JSON")
}

fn print(report: &Report) {
    say(match report.state {
        Condition::Up => "up",
        Condition::Partly => "partly up",
        Condition::Down => "down: `cargo xtask up` starts the platform",
    });
    let word = |ready: bool| if ready { "ready" } else { "not ready" };
    for gateway in &report.gateways {
        row("gateway", word(gateway.ready), &format!("{}  (internal {})", gateway.url, gateway.internal_url));
    }
    for worker in &report.workers {
        row(&worker.name, word(worker.ready), &format!("{}  (pid {})", worker.url, worker.pid));
    }
    if let Some(sandbox) = &report.sandbox {
        row("sandbox", "", &sandbox.url);
    }
    if let Some(postgres) = &report.postgres {
        row("postgres", "", &without_password(&postgres.url));
    }
    if let Some(file) = &report.env_file {
        row("settings, secrets", "", file);
    }
    for missing in &report.not_started {
        row(&missing.name, "not up", &format!("{}; cure: {}", missing.why, missing.cure));
    }
}

fn row(name: &str, condition: &str, rest: &str) {
    say(format_args!("  {name:18} {condition:10} {rest}"));
}

fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((login, server)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{server}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_no_password() {
        assert_eq!(without_password("postgres://me:se@cret@127.0.0.1:1/db"), "postgres://me@127.0.0.1:1/db");
        assert_eq!(without_password("postgres://127.0.0.1:1/db"), "postgres://127.0.0.1:1/db");
    }
}
