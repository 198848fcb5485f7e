//! The gate under simulation: seeded senders, claimers, ends, deaths, hand-backs, pauses and caps that change, one by
//! one and many at once. What happens at once may happen in another order when the same seed runs again.

mod model;
mod world;

use crate::seeds::{self, Violation};

use model::Breach;
use world::World;

const SEEDS: [u64; 4] = [1, 2, 3, 4];
const STEPS: u64 = 250;

/// Runs a world to its end, in which a part of one of the gate's functions is replaced.
async fn simulate(seed: u64, steps: u64, sabotage: Option<Sabotage>) -> Result<(), Violation<Breach>> {
    let mut world = World::new(seed, &sabotage.map(Sabotage::sql).unwrap_or_default()).await;
    let outcome = async {
        for _ in 0..steps {
            world.step().await?;
        }
        world.heal().await
    };
    let outcome = outcome.await;
    outcome.map_err(|violation| violation.after(&world.story))
}

/// A mistake in one of the gate's functions.
#[derive(Clone, Copy)]
struct Sabotage {
    function: &'static str,
    part: &'static str,
    by: &'static str,
}

impl Sabotage {
    /// Makes the mistake in this database.
    fn sql(self) -> String {
        let Self { function, part, by } = self;
        format!(
            "do $sabotage$
             declare
               was text := pg_get_functiondef('spillway.{function}'::regproc);
             begin
               if strpos(was, $part${part}$part$) = 0 then
                 raise exception 'there is no such part in {function}';
               end if;
               execute replace(was, $part${part}$part$, $part${by}$part$);
             end
             $sabotage$"
        )
    }
}

/// The breach by which the first seed finds a mistake.
async fn breach_of(function: &'static str, part: &'static str, by: &'static str) -> Breach {
    let violation = simulate(1, STEPS, Some(Sabotage { function, part, by })).await;
    violation.expect_err("the mistake is found").breach
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_cap_is_passed_and_nobody_waits_for_nothing_whatever_dies_in_between() {
    seeds::run(&SEEDS, STEPS, |seed, steps| simulate(seed, steps, None)).await;
}

#[tokio::test]
async fn a_cap_that_nobody_looks_at_is_caught() {
    assert_eq!(breach_of("limit_admit", "room[place] <= 0", "false").await, Breach::OverCap);
}

#[tokio::test]
async fn a_place_that_is_given_back_twice_is_caught() {
    let breach = breach_of("limit_drop", "k.in_use - g.n", "k.in_use - 2 * g.n").await;

    // A sweep or a claim at the same moment may have shown it already.
    assert!(matches!(breach, Breach::Miscounted | Breach::Mended | Breach::OverCap), "{breach:?}");
}

#[tokio::test]
async fn a_place_that_is_given_back_without_a_call_is_caught() {
    let breach = breach_of("limit_release", "perform spillway.limit_wake(names)", "null").await;

    assert_eq!(breach, Breach::NotCalled);
}

#[tokio::test]
async fn a_pause_that_holds_nobody_is_caught() {
    let breach = breach_of("limit_admit", "case when k.paused_at is null and", "case when").await;

    assert_eq!(breach, Breach::LetInWhilePaused);
}
