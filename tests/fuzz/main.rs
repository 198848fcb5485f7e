//! Every parser that reads what others wrote, on valid examples that were damaged at random: none panics, all read
//! the same twice, a proof never holds for other bytes, and what was authentic always comes to something.
//!
//! The parts share `SPILLWAY_FUZZ_SECONDS`. `SPILLWAY_FUZZ_SEED` changes the damage, and with `SPILLWAY_FUZZ_CASE` one
//! case of a part runs alone; a failure names both.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "each part says how far it came")]

mod door;
mod harness;
mod mutate;
mod payloads;
mod process;
mod tokens;
mod webhooks;
