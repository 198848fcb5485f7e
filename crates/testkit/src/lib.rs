//! What tests and drills stand on: a database of their own on a real server, a sandbox that plays the outside providers
//! at their socket, a provider whose effects are counted, a proxy that harms what passes it, and the signatures of
//! outside senders.

pub mod database;
pub mod dice;
pub mod effects;
pub mod eventually;
pub mod proxy;
pub mod sandbox;
mod server;
pub mod session;
pub mod standard;
pub mod supabase;

pub use database::{Database, standby_url};
pub use dice::Dice;
pub use effects::Effects;
pub use eventually::eventually;
pub use proxy::Proxy;
pub use session::Session;
