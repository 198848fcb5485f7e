//! An outside provider that does something once per idempotency key, at its socket: what drills compare with what the
//! platform says of its commands.
//!
//! `POST /effects` with a JSON body and the header `Idempotency-Key` answers `{"effect":"<id>"}`: the first call of a
//! key has an effect, each further one is told of it again. Without a key each call has an effect of its own.

mod book;
mod call;
mod routes;
mod script;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::book::Book;
pub use self::call::{Answer, Call, header};
use self::script::Script;
use crate::server;

/// A running provider; it ends when it is dropped, and forgets everything.
pub struct Effects {
    address: SocketAddr,
    book: Arc<Book>,
    stop: CancellationToken,
}

impl Effects {
    /// Serves on a free local port.
    pub async fn start() -> Self {
        Self::open(None).await
    }

    /// The same, with a file that each call is appended to, a line of JSON like [`Call`], before it is answered.
    pub async fn start_with_record(path: &Path) -> Self {
        Self::open(Some(path)).await
    }

    async fn open(record: Option<&Path>) -> Self {
        let book = Arc::new(Book::open(record));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free local port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let stop = CancellationToken::new();
        tokio::spawn(server::serve(listener, routes::router(book.clone()), stop.clone()));
        Self { address, book, stop }
    }

    /// Where it answers, such as `http://127.0.0.1:41000`, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its address, for a proxy in front of it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every call, in the order in which they came.
    pub fn calls(&self) -> Vec<Call> {
        self.book.calls()
    }

    /// How many effects there are, with keys and without.
    pub fn effects(&self) -> usize {
        self.book.count(Call::has_effect)
    }

    /// How many effects calls with this key had.
    pub fn effects_of(&self, key: &str) -> usize {
        self.book.count(|call| call.has_effect() && call.key.as_deref() == Some(key))
    }

    /// The most calls of the group that were in work at once. A call is in work until its answer is ready or its caller
    /// gone.
    pub fn most_at_once(&self, group: &str) -> u32 {
        self.book.group(group).peak
    }

    /// How many calls of the group are in work.
    pub fn in_work(&self, group: &str) -> u32 {
        self.book.group(group).now
    }

    /// When the last call of the group came, by the wall clock.
    pub fn last_start(&self, group: &str) -> Option<DateTime<Utc>> {
        self.book.group(group).last_start
    }

    /// From now on every answer takes so long; the effect is there at once.
    pub fn answer_late(&self, by: Duration) {
        self.script(|script| script.late = by);
    }

    /// The next so many calls have their effect, and lose their connection in place of the answer.
    pub fn lose_answers(&self, calls: u32) {
        self.script(|script| script.lose = calls);
    }

    /// The next so many calls have no effect and are answered with this status.
    pub fn fail(&self, calls: u32, status: u16) {
        self.script(|script| script.fail = (calls, status));
    }

    /// From now on calls have their effect, and no answer before [`Effects::heal`].
    pub fn hang(&self) {
        self.script(|script| script.is_hanging = true);
    }

    /// Calls that hang are answered, and further ones like at the start.
    pub fn heal(&self) {
        self.script(|script| *script = Script::default());
    }

    fn script(&self, change: impl FnOnce(&mut Script)) {
        self.book.script.send_modify(change);
    }

    /// Waits until something holds; it is asked again whenever a call begins or ends. Set a time limit around it.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut changes = self.book.changed.subscribe();
        while !holds(self) {
            changes.changed().await.expect("the book, which signals changes, lives as long as the provider");
        }
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests;
