//! Settings from the environment: taken literally, every mistake in one report, no secret ever shown.
//!
//! Each crate owns its options and reads them with the typed getters of [`Env`], key by key from the
//! contract's table. A getter that fails notes the mistake and answers [`Noted`]; [`Env::finish`] then
//! refuses to go on with all of them in one message. Defaults don't live here: see `.env.example`.

mod env;
mod literal;
mod report;
mod secret;
mod services;

pub use env::{Env, Noted};
pub use report::{Error, Shown};
pub use secret::is_same_secret;
pub use services::Services;
