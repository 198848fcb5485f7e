//! One direction of a connection: what was read goes out when and as the mode says.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::WriteHalf;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::connection::Fate;
use super::loss::Search;
use super::mode::Mode;
use super::state::State;

const BUFFER: usize = 16 * 1024;

/// What was read at once; nothing at the end.
pub(super) struct Chunk {
    pub(super) arrived: Instant,
    pub(super) bytes: Vec<u8>,
}

/// The next bytes; none at the end, and none of a side that has broken off.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BUFFER);
    match from.read_buf(&mut bytes).await {
        Ok(_) => bytes,
        Err(_) => Vec::new(),
    }
}

/// Which direction it is.
pub(super) enum Way {
    /// From the client to the server, whose words may be waited for.
    Request(Search),
    /// From the server to the client.
    Answer,
}

/// What the mode lets a chunk do.
enum Passage {
    Whole,
    /// So many bytes.
    Part(usize),
    /// It is lost.
    Never,
}

/// The end of a direction that writes.
pub(super) struct Outlet<'a> {
    to: WriteHalf<'a>,
    way: Way,
    mode: watch::Receiver<Mode>,
    state: &'a State,
    fate: &'a Fate,
}

impl<'a> Outlet<'a> {
    pub(super) fn new(to: WriteHalf<'a>, way: Way, state: &'a State, fate: &'a Fate) -> Self {
        Self { to, way, mode: state.mode.subscribe(), state, fate }
    }

    /// Writes chunks until their end, or until nobody reads them any more.
    pub(super) async fn write(&mut self, chunks: &mut mpsc::Receiver<Chunk>) {
        while let Some(chunk) = chunks.recv().await {
            if chunk.bytes.is_empty() {
                self.may_end(chunk.arrived).await;
                return self.end().await;
            }
            if self.pass(&chunk).await.is_err() {
                return;
            }
        }
    }

    /// The other side reads an end.
    pub(super) async fn end(&mut self) {
        let _ = self.to.shutdown().await;
    }

    async fn pass(&mut self, chunk: &Chunk) -> io::Result<()> {
        let mut rest = &chunk.bytes[..];
        while !rest.is_empty() {
            let n = match self.passage(chunk.arrived).await {
                Passage::Whole => rest.len(),
                Passage::Part(n) => {
                    self.state.count(|fired| fired.dripped += 1);
                    n.clamp(1, rest.len())
                }
                Passage::Never => break,
            };
            self.listen(&rest[..n]);
            self.to.write_all(&rest[..n]).await?;
            rest = &rest[n..];
        }
        Ok(())
    }

    /// Before the server can answer, it is known whether the answer is to be lost.
    fn listen(&mut self, bytes: &[u8]) {
        if let Way::Request(search) = &mut self.way
            && search.springs(self.state.trap.borrow().as_ref(), bytes)
        {
            self.fate.doom();
        }
    }

    async fn passage(&mut self, arrived: Instant) -> Passage {
        loop {
            let mode = *self.mode.borrow_and_update();
            if mode == Mode::BlackHole || self.fate.is_silent() {
                self.fate.silence();
                self.state.count(|fired| fired.swallowed += 1);
                return Passage::Never;
            }
            let passage = if let Mode::Drip { bytes, every } = mode {
                self.has_passed(every).await.then_some(Passage::Part(bytes))
            } else {
                self.is_free(mode, arrived).await.then_some(Passage::Whole)
            };
            if let Some(passage) = passage {
                return passage;
            }
        }
    }

    /// Waits until the other side may learn of the end.
    async fn may_end(&mut self, arrived: Instant) {
        loop {
            let mode = *self.mode.borrow_and_update();
            if mode == Mode::BlackHole {
                self.changed().await;
            } else if self.is_free(mode, arrived).await {
                return;
            }
        }
    }

    /// Waits while this mode stops what came at that time. False where the mode has changed meanwhile.
    async fn is_free(&mut self, mode: Mode, arrived: Instant) -> bool {
        match mode {
            Mode::HoldAnswers if matches!(self.way, Way::Answer) => {
                self.state.count(|fired| fired.held += 1);
                self.changed().await;
                false
            }
            Mode::Delay(by) => {
                let left = (arrived + by).saturating_duration_since(Instant::now());
                if !left.is_zero() {
                    self.state.count(|fired| fired.delayed += 1);
                }
                self.has_passed(left).await
            }
            Mode::Pass | Mode::HoldAnswers | Mode::BlackHole | Mode::Refuse | Mode::Drip { .. } => true,
        }
    }

    /// Lets the time pass. False where the mode has changed meanwhile.
    async fn has_passed(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = tokio::time::sleep(time) => true,
            () = self.changed() => false,
        }
    }

    async fn changed(&mut self) {
        self.mode.changed().await.expect("the state, which is borrowed, holds the sender");
    }
}
