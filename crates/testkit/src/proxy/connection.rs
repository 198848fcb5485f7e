//! One connection: its two directions, and the orders that end it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::flow::{Chunk, Outlet, Way, read};
use super::loss::Search;
use super::state::State;

/// Chunks of one direction on their way, so that late ones don't hold those behind them.
const UNDER_WAY: usize = 64;

/// An answer that is lost has ended when nothing has come for so long.
const QUIET: Duration = Duration::from_millis(20);

/// What may end a connection from outside, counted from when it was accepted.
pub(super) struct Orders {
    resets: watch::Receiver<u64>,
    half_closes: watch::Receiver<u64>,
}

impl Orders {
    pub(super) fn of(state: &State) -> Self {
        Self { resets: state.resets.subscribe(), half_closes: state.half_closes.subscribe() }
    }
}

/// What the two directions of a connection know of each other.
#[derive(Default)]
pub(super) struct Fate {
    /// It has lost bytes: nothing that comes later makes sense any more.
    is_silent: AtomicBool,
    /// Its next answer is to be lost.
    is_doomed: AtomicBool,
}

impl Fate {
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    pub(super) fn silence(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    pub(super) fn doom(&self) {
        self.is_doomed.store(true, Ordering::Relaxed);
    }
}

/// Passes everything until both sides have ended, or until it is reset.
pub(super) async fn converse(
    mut client: TcpStream,
    mut server: TcpStream,
    orders: Orders,
    state: Arc<State>,
) {
    let Orders { mut resets, half_closes } = orders;
    // Halves that are owned would end the connection before it is reset.
    let is_reset = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let fate = Fate::default();
        let requests = async {
            requests(from_client, to_server, &state, &fate).await;
            Ok(())
        };
        let answers = answers(from_server, to_client, half_closes, &state, &fate);
        tokio::select! {
            passed = async { tokio::try_join!(requests, answers) } => {
                if passed.is_err() {
                    state.count(|fired| fired.answers_lost += 1);
                }
                passed.is_err()
            }
            _ = resets.changed() => {
                state.count(|fired| fired.reset += 1);
                true
            }
        }
    };
    if is_reset {
        super::refuse(client);
        super::refuse(server);
    }
}

/// A connection of the black hole: the client may say what it likes.
pub(super) async fn swallow(mut client: TcpStream, mut orders: Orders, state: Arc<State>) {
    let is_reset = tokio::select! {
        () = async { while !read(&mut client).await.is_empty() {} } => false,
        _ = orders.resets.changed() => true,
    };
    if is_reset {
        state.count(|fired| fired.reset += 1);
        super::refuse(client);
    }
}

/// The answer was lost: the connection has to be reset.
struct Lost;

async fn requests(mut from: ReadHalf<'_>, to: WriteHalf<'_>, state: &State, fate: &Fate) {
    let (sender, chunks) = mpsc::channel(UNDER_WAY);
    let reading = async {
        // Owned, so that whoever waits at the other end of the channel learns that this one has stopped.
        let sender = sender;
        loop {
            let bytes = read(&mut from).await;
            let is_end = bytes.is_empty();
            if sender.send(Chunk { arrived: Instant::now(), bytes }).await.is_err() || is_end {
                break;
            }
        }
    };
    let writing = async {
        let mut chunks = chunks;
        Outlet::new(to, Way::Request(Search::default()), state, fate).write(&mut chunks).await;
    };
    tokio::join!(reading, writing);
}

async fn answers(
    mut from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    mut half_closes: watch::Receiver<u64>,
    state: &State,
    fate: &Fate,
) -> Result<(), Lost> {
    let (sender, chunks) = mpsc::channel(UNDER_WAY);
    let reading = async {
        let sender = sender;
        loop {
            let bytes = read(&mut from).await;
            let is_end = bytes.is_empty();
            if fate.is_doomed.load(Ordering::Relaxed) && !is_end {
                while let Ok(more) = tokio::time::timeout(QUIET, read(&mut from)).await
                    && !more.is_empty()
                {}
                return Err(Lost);
            }
            if sender.send(Chunk { arrived: Instant::now(), bytes }).await.is_err() || is_end {
                return Ok(());
            }
        }
    };
    let writing = async {
        let (mut chunks, mut outlet) = (chunks, Outlet::new(to, Way::Answer, state, fate));
        tokio::select! {
            () = outlet.write(&mut chunks) => {}
            _ = half_closes.changed() => {
                outlet.end().await;
                state.count(|fired| fired.half_closed += 1);
                while chunks.recv().await.is_some() {}
            }
        }
        Ok(())
    };
    tokio::try_join!(reading, writing).map(|((), ())| ())
}
