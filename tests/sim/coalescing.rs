//! Coalescing under simulation: seeded events, runs, deaths, lost leases and cancellations, and whether some accepted
//! event will be missed.

mod model;
mod world;

use crate::seeds;

use model::{Breach, Violation};
use world::World;

const SEEDS: [u64; 6] = [1, 2, 3, 4, 5, 6];
const STEPS: u64 = 300;

/// Restores the waiting command whenever a worker takes it away, so that a start makes no room.
const START_MAKES_NO_ROOM: &str = "
    create function spillway.sabotage() returns trigger language plpgsql as $$
    begin
      new.waiting_command := old.waiting_command;
      return new;
    end $$;
    create trigger sabotage before update on spillway.account_sync for each row
    when (current_user = 'spillway_worker' and old.waiting_command is not null)
    execute function spillway.sabotage()";

/// Leaves the number of requests as it is where a command waits already.
const COALESCING_COUNTS_NOTHING: &str = "
    create function spillway.sabotage() returns trigger language plpgsql as $$
    begin
      new.requested := old.requested;
      return new;
    end $$;
    create trigger sabotage before update on spillway.account_sync for each row
    when (old.waiting_command is not null and new.requested > old.requested)
    execute function spillway.sabotage()";

/// Runs a world to its end.
///
/// # Errors
/// The first broken invariant, with what led to it.
async fn simulate(seed: u64, steps: u64, sabotage: &str) -> Result<(), Violation> {
    let mut world = World::new(seed, sabotage).await;
    let mut outcome = Ok(());
    for _ in 0..steps {
        outcome = world.step().await;
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok() {
        outcome = world.heal().await;
    }
    outcome.map_err(|violation| violation.after(&world.story))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_accepted_event_is_missed_whatever_dies_in_between() {
    seeds::run(&SEEDS, STEPS, |seed, steps| simulate(seed, steps, "")).await;
}

#[tokio::test]
async fn a_start_that_makes_no_room_is_caught_as_a_lost_event() {
    let violation = simulate(1, STEPS, START_MAKES_NO_ROOM).await.expect_err("an event is swallowed");

    assert_eq!(violation.breach, Breach::Lost);
}

#[tokio::test]
async fn coalescing_that_counts_nothing_is_caught() {
    let violation = simulate(1, STEPS, COALESCING_COUNTS_NOTHING).await.expect_err("an event is not counted");

    // A start at the same moment may have shown already that the event will be missed.
    assert!(matches!(violation.breach, Breach::Miscounted | Breach::Lost), "{violation:?}");
}
