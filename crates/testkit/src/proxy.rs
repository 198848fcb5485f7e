//! A TCP proxy in front of a server, which harms what passes it on command and counts what it did. It knows no
//! protocol: Postgres, Redis, HTTP and OTLP are all the same to it.

mod connection;
mod flow;
mod loss;
mod mode;
mod state;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use self::connection::Orders;
use self::loss::Trap;
pub use self::mode::{Fired, Mode};
use self::state::State;

/// How long to leave the listener alone when it can't accept, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running proxy; it ends when it is dropped, and its connections with it.
pub struct Proxy {
    address: SocketAddr,
    state: Arc<State>,
    stop: CancellationToken,
}

impl Proxy {
    /// Listens on a free port and passes everything to `server`.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free local port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (state, stop) = (Arc::new(State::new(server)), CancellationToken::new());
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept(listener, state.clone(), stop.clone())));
        Self { address, state, stop }
    }

    /// Where clients connect.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it does this, to new connections and to the living ones.
    pub fn set(&self, mode: Mode) {
        self.state.mode.send_replace(mode);
    }

    /// Resets the living connections, both ends of each. New ones are welcome.
    pub fn reset(&self) {
        self.state.resets.send_modify(|orders| *orders += 1);
    }

    /// Ends the answers of the living connections: their clients read an end, while the server still hears them.
    pub fn half_close(&self) {
        self.state.half_closes.send_modify(|orders| *orders += 1);
    }

    /// New connections go to this server; the living ones are reset.
    pub fn switch(&self, server: SocketAddr) {
        self.state.server.send_replace(server);
        self.reset();
    }

    /// The next connection whose client says all of `words`, one after the other, is heard by the server; once the
    /// server has answered, the answer is thrown away and the connection reset. Replaces what was asked before.
    ///
    /// Answers to what the client said before the last word are passed on. One word is enough for a simple query such
    /// as `COMMIT`. A prepared statement is named in its `Parse` message and answered before it is executed: there the
    /// statement's name is followed by [`Proxy::EXECUTE`]. A connection that has it prepared already does not say its
    /// name again.
    pub fn lose_answer<W: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = W>) {
        let trap = Trap::new(words.into_iter().map(|word| word.as_ref().to_vec()).collect());
        self.state.trap.send_replace(Some(Arc::new(trap)));
    }

    /// What a Postgres client says to execute the unnamed portal to its end.
    pub const EXECUTE: &[u8] = b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00";

    /// How often each fault has acted since the start.
    pub fn fired(&self) -> Fired {
        *self.state.fired.borrow()
    }

    /// Waits until faults have acted. Set a time limit around it.
    pub async fn until(&self, holds: impl FnMut(&Fired) -> bool) {
        let mut fired = self.state.fired.subscribe();
        fired.wait_for(holds).await.expect("the counters live as long as the proxy");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = client.set_nodelay(true);
        let mode = *state.mode.borrow();
        match mode {
            Mode::Refuse => {
                refuse(client);
                state.count(|fired| fired.refused += 1);
            }
            Mode::BlackHole => {
                state.count(|fired| fired.swallowed += 1);
                let silence = connection::swallow(client, Orders::of(&state), state.clone());
                tokio::spawn(stop.clone().run_until_cancelled_owned(silence));
            }
            Mode::Pass | Mode::HoldAnswers | Mode::Delay(_) | Mode::Drip { .. } => {
                let passed = pass(client, Orders::of(&state), state.clone());
                tokio::spawn(stop.clone().run_until_cancelled_owned(passed));
            }
        }
    }
}

async fn pass(client: TcpStream, orders: Orders, state: Arc<State>) {
    match connect(&state).await {
        Ok(server) => connection::converse(client, server, orders, state).await,
        // Nobody is there: the client shall not take it for a server that has said goodbye.
        Err(_) => refuse(client),
    }
}

async fn connect(state: &State) -> io::Result<TcpStream> {
    let address = *state.server.borrow();
    let server = TcpStream::connect(address).await?;
    server.set_nodelay(true)?;
    Ok(server)
}

/// Closes a connection by a reset, not by an end.
fn refuse(connection: TcpStream) {
    let _ = connection.set_zero_linger();
    drop(connection);
}

#[cfg(test)]
mod tests;
