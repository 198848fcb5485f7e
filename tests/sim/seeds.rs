//! What the simulations share: their seeds, and how a broken invariant is told.

use std::fmt::Debug;

/// A broken invariant.
#[derive(Debug)]
pub(crate) struct Violation<B> {
    pub(crate) breach: B,
    pub(crate) what: String,
}

impl<B> Violation<B> {
    /// With the last of what led to it.
    pub(crate) fn after(self, story: &[String]) -> Self {
        let last = story[story.len().saturating_sub(25)..].join("\n  ");
        Self { what: format!("{}, after {} acts, at last:\n  {last}", self.what, story.len()), ..self }
    }
}

/// Answers the violation unless `holds`.
pub(crate) fn ensure<B>(holds: bool, breach: B, what: impl FnOnce() -> String) -> Result<(), Violation<B>> {
    if holds { Ok(()) } else { Err(Violation { breach, what: what() }) }
}

/// Runs a world for each of the seeds, side by side, or for the one that the environment names.
///
/// # Panics
/// With the seed of a world in which an invariant broke.
pub(crate) async fn run<B, F>(seeds: &[u64], steps: u64, simulate: impl Fn(u64, u64) -> F)
where
    B: Debug + Send + 'static,
    F: Future<Output = Result<(), Violation<B>>> + Send + 'static,
{
    let steps = number("SPILLWAY_SIM_STEPS").unwrap_or(steps);
    let seeds = number("SPILLWAY_SIM_SEED").map_or(seeds.to_vec(), |seed| vec![seed]);
    let worlds: Vec<_> = seeds.into_iter().map(|seed| (seed, tokio::spawn(simulate(seed, steps)))).collect();
    for (seed, world) in worlds {
        if let Err(Violation { breach, what }) = world.await.unwrap() {
            panic!("SPILLWAY_SIM_SEED={seed}: {breach:?}: {what}");
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}
