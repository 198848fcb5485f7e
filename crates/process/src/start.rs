//! Reading settings and starting the log.

use std::time::Duration;

use contract::env::keys;
use settings::{Env, Noted, Shown};
use telemetry::log;

use crate::exit::Error;

/// What every process is told.
#[derive(Clone, Debug)]
pub struct Options {
    log: log::Options,
    /// How long a required dependency may take to answer.
    pub start_budget: Duration,
    /// How long work may go on after a stop.
    pub stop_grace: Duration,
}

impl Options {
    /// Short times and no log, for tests that run a process' parts in their own.
    pub fn brief() -> Self {
        Self {
            log: log::Options::off(),
            start_budget: Duration::from_secs(20),
            stop_grace: Duration::from_secs(5),
        }
    }

    /// Reads the settings that every process has.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let log = log::Options::read(env);
        let start_budget = env.duration(&keys::START_BUDGET_SECONDS, 1..=3600);
        let stop_grace = env.duration(&keys::STOP_GRACE_SECONDS, 1..=3600);
        Ok(Self { log: log?, start_budget: start_budget?, stop_grace: stop_grace? })
    }
}

/// Reads a process' settings from its environment and starts its log. All mistakes are in one error.
pub fn load<T>(read: impl FnOnce(&mut Env) -> Result<T, Noted>) -> Result<(Options, T, Shown), Error> {
    let mut env = Env::of_process();
    let common = Options::read(&mut env);
    let own = read(&mut env);
    let shown = env.finish()?;
    let (Ok(common), Ok(own)) = (common, own) else {
        unreachable!("a getter that fails notes its mistake, and `finish` has seen none");
    };
    log::init(&common.log);
    for name in shown.unknown() {
        tracing::warn!(setting = name, "unknown setting, ignored");
    }
    Ok((common, own, shown))
}
