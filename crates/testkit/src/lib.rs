//! What tests and drills stand on: a database of their own on a real server, and a sandbox that plays the
//! outside providers at their socket.

pub mod database;
pub mod dice;
pub mod eventually;
pub mod proxy;
pub mod sandbox;
pub mod supabase;

pub use database::Database;
pub use dice::Dice;
pub use eventually::eventually;
pub use proxy::Proxy;
