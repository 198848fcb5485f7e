//! What `lab` does: plays the providers, sends load, drills, measures, and checks that the parts of the platform agree.
//!
//! `lab` is a program of the repository, not of the product: nothing that is shipped uses it.

mod accounts;
pub mod bench;
mod caller;
pub mod chaos;
pub mod connection;
pub mod door;
mod figures;
pub mod probe;
pub mod sandbox;
pub mod spike;
pub mod stage;
pub mod storm;
