//! Seeded simulations on the real store. After every step a record of the simulation's own says whether what was
//! promised still holds.
//!
//! `SPILLWAY_SIM_SEED` runs one seed, `SPILLWAY_SIM_STEPS` so many steps of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod coalescing;
mod gate;
mod seeds;
