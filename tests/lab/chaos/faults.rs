//! The faults, by what they strike.

mod gate;
mod intake;
mod operators;
mod postgres;
mod worker;

use futures_util::future::LocalBoxFuture;

use super::Tier;
use super::scene::Scene;

/// One way to break the platform.
#[derive(Clone, Copy)]
pub(super) struct Fault {
    /// Its id in the catalogue of faults, which stays.
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) tier: Tier,
    /// True where it strikes what other scenes stand on too.
    pub(super) is_alone: bool,
    /// Breaks and heals.
    pub(super) run: for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, anyhow::Result<Fired>>,
}

/// What most faults have in common.
const FAULT: Fault = Fault {
    id: "",
    name: "",
    tier: Tier::Full,
    is_alone: false,
    run: |_| Box::pin(async { Ok(Fired(false)) }),
};

/// The same of faults of money and loss.
const SMOKE: Fault = Fault { tier: Tier::Smoke, ..FAULT };

/// Whether a fault happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fired(pub(super) bool);

/// All of them, in the order of their ids.
pub(super) fn all() -> Vec<&'static Fault> {
    let mut all: Vec<_> =
        [worker::ALL, postgres::ALL, intake::ALL, gate::ALL, operators::ALL].into_iter().flatten().collect();
    all.sort_by_key(|fault| fault.id);
    all
}
