//! What tests and drills stand on: a database of their own on a real server, and a sandbox that plays the
//! outside providers at their socket, and the signatures of outside senders.

pub mod database;
pub mod dice;
pub mod eventually;
pub mod proxy;
pub mod sandbox;
pub mod session;
pub mod standard;
pub mod supabase;

pub use database::{Database, standby_url};
pub use dice::Dice;
pub use eventually::eventually;
pub use proxy::Proxy;
pub use session::Session;
