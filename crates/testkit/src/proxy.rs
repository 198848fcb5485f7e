//! A TCP proxy in front of a server that can hold back what the server answers.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A running proxy; it ends when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    holding: watch::Sender<bool>,
    stop: CancellationToken,
}

impl Proxy {
    /// Listens on a free port and passes everything to `server`.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free local port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let holding = watch::Sender::new(false);
        let stop = CancellationToken::new();
        tokio::spawn(stop.clone().run_until_cancelled_owned(accept(
            listener,
            server,
            holding.subscribe(),
            stop.clone(),
        )));
        Self { address, holding, stop }
    }

    /// Where clients connect.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on answers stay in the proxy.
    pub fn hold_answers(&self) {
        self.holding.send_replace(true);
    }

    /// Held and further answers are passed on.
    pub fn release_answers(&self) {
        self.holding.send_replace(false);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept(
    listener: TcpListener,
    server: SocketAddr,
    holding: watch::Receiver<bool>,
    stop: CancellationToken,
) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(server).await else { continue };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::spawn(stop.clone().run_until_cancelled_owned(pass(from_client, to_server, None)));
        tokio::spawn(stop.clone().run_until_cancelled_owned(pass(
            from_server,
            to_client,
            Some(holding.clone()),
        )));
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut holding: Option<watch::Receiver<bool>>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer).await {
        if let Some(holding) = &mut holding
            && holding.wait_for(|holding| !holding).await.is_err()
        {
            return;
        }
        if to.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
    // The other side learns that this one is done.
    let _ = to.shutdown().await;
}
