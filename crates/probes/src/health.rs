//! What a process knows about its own state: checks that make it ready, pulses that prove its loops alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The state of one process, shared by its parts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Name → why it is not ready; nothing where it is.
    checks: BTreeMap<&'static str, Option<String>>,
    /// Name → last sign of life and the longest silence allowed.
    pulses: BTreeMap<&'static str, (Instant, Duration)>,
    is_stopping: bool,
}

/// Reports on one dependency.
#[derive(Clone, Debug)]
pub struct Check {
    health: Health,
    name: &'static str,
}

/// Reports on one loop that must never stand still.
#[derive(Clone, Debug)]
pub struct Pulse {
    health: Health,
    name: &'static str,
    silence: Duration,
}

impl Health {
    /// A process without checks, which counts as ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// A dependency that is not ready until it says so.
    pub fn check(&self, name: &'static str) -> Check {
        self.with(|state| state.checks.insert(name, Some("not checked yet".to_owned())));
        Check { health: self.clone(), name }
    }

    /// A loop that shows itself at least every `silence`.
    pub fn pulse(&self, name: &'static str, silence: Duration) -> Pulse {
        let pulse = Pulse { health: self.clone(), name, silence };
        pulse.beat();
        pulse
    }

    /// The process takes no new work from now on.
    pub fn stopping(&self) {
        self.with(|state| state.is_stopping = true);
    }

    /// What keeps the process from being ready, by name.
    pub fn unready(&self) -> Vec<(&'static str, String)> {
        self.with(|state| {
            let failing = state.checks.iter().filter_map(|(name, why)| Some((*name, why.clone()?)));
            let stopping = state.is_stopping.then(|| ("process", "stopping".to_owned()));
            failing.chain(stopping).collect()
        })
    }

    /// The loops that have been silent for too long.
    pub fn silent(&self, now: Instant) -> Vec<&'static str> {
        self.with(|state| {
            let late =
                |(last, silence): &(Instant, Duration)| now.saturating_duration_since(*last) > *silence;
            state.pulses.iter().filter(|(_, pulse)| late(pulse)).map(|(name, _)| *name).collect()
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Check {
    /// The dependency answers.
    pub fn ready(&self) {
        self.health.with(|state| state.checks.insert(self.name, None));
    }

    /// The dependency fails, and why. The reason is shown on `/readyz`.
    pub fn failing(&self, why: impl Into<String>) {
        self.health.with(|state| state.checks.insert(self.name, Some(why.into())));
    }
}

impl Pulse {
    /// A sign of life.
    pub fn beat(&self) {
        self.health.with(|state| state.pulses.insert(self.name, (Instant::now(), self.silence)));
    }

    /// The loop ended as it should.
    pub fn end(&self) {
        self.health.with(|state| state.pulses.remove(self.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_unready_until_it_says_otherwise() {
        let health = Health::new();
        assert!(health.unready().is_empty());
        let check = health.check("postgres");

        assert_eq!(health.unready(), [("postgres", "not checked yet".to_owned())]);
        check.ready();
        assert!(health.unready().is_empty());
        check.failing("connection refused");
        assert_eq!(health.unready(), [("postgres", "connection refused".to_owned())]);
    }

    #[test]
    fn a_stopping_process_is_not_ready() {
        let health = Health::new();
        health.stopping();

        assert_eq!(health.unready(), [("process", "stopping".to_owned())]);
    }

    #[test]
    fn a_loop_that_stands_still_is_named() {
        let health = Health::new();
        let pulse = health.pulse("claims", Duration::from_secs(30));

        assert!(health.silent(Instant::now()).is_empty());
        assert_eq!(health.silent(Instant::now() + Duration::from_secs(31)), ["claims"]);
        pulse.end();
        assert!(health.silent(Instant::now() + Duration::from_secs(31)).is_empty());
    }
}
