//! What `up` prints when everything is ready: where things are, and what to try.

use super::services::GATEWAY;
use crate::home::Home;
use crate::state::{self, Process, State};
use crate::terminal::say;

pub(super) fn print(home: &Home, state: &State, detach: bool) {
    say("\nSpillway is up.\n");
    for process in &state.processes {
        if let Some(line) = address(process) {
            say(format_args!("  {:18} {line}", process.name));
        }
    }
    if let Some(postgres) = &state.postgres {
        say(format_args!(
            "  {:18} 127.0.0.1:{} (version {})",
            state::POSTGRES,
            postgres.port,
            postgres.version
        ));
    }
    say(format_args!("  {:18} {}", "settings, secrets", home.relative(&home.env())));
    say(format_args!("  {:18} {}", "logs", home.relative(&home.logs())));
    say("\nThree things to try:\n");
    for command in things_to_try(home, state) {
        say(format_args!("  {command}"));
    }
    let end = if detach { "`cargo xtask down` ends it" } else { "Ctrl-C ends it" };
    say(format_args!("\n`cargo xtask status` shows how it is; {end}."));
}

fn address(process: &Process) -> Option<String> {
    match (&process.url, &process.internal_url) {
        (Some(url), Some(internal)) => Some(format!("{url}  (internal {internal})")),
        (Some(url), None) | (None, Some(url)) => Some(url.clone()),
        (None, None) => None,
    }
}

/// Commands that work when pasted in the checkout's root. The second one's parentheses keep the settings and
/// their secrets out of the user's shell, where the next `up` would take them as given.
fn things_to_try(home: &Home, state: &State) -> Vec<String> {
    let program = |name: &str| home.relative(&home.program(name));
    let env = home.relative(&home.env());
    let mut commands = vec![
        format!("{} storm --events 200 --accounts 10", program("lab")),
        format!("(set -a; . {env}; {} queues)", program("spillway")),
    ];
    let gateway = state.of_service(GATEWAY).find_map(|process| process.internal_url.as_ref());
    commands.extend(gateway.map(|internal| format!("curl -s {internal}/metrics | grep spillway_")));
    commands
}
