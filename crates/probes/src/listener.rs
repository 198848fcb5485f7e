//! Serves HTTP/1 with deadlines.
//!
//! `axum::serve` sets no timer, so a client that stops in the middle of its header would stay for ever, and a
//! graceful stop would wait for it.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// How patient a listener is.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From the first byte of a connection (or the end of the last answer) to the end of a request's header.
    pub header: Duration,
    /// How long requests in work may go on once the listener stops.
    pub stop: Duration,
}

/// Serves `router` until `stop` is cancelled, then lets requests in work finish within the deadline.
pub async fn serve(listener: TcpListener, router: Router, deadlines: Deadlines, stop: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(deadlines.header);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, _)) => {
                // Small answers must not wait for more of them.
                let _ = stream.set_nodelay(true);
                let router = router.clone();
                let service = hyper::service::service_fn(
                    move |request: hyper::Request<hyper::body::Incoming>| {
                        let answer = router.clone().oneshot(request.map(axum::body::Body::new));
                        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
                    },
                );
                let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
                // How a client leaves is the client's affair.
                connections.spawn(async move { drop(connection.await) });
            }
            Err(error) => pause_after(&error).await,
        }
    }
    drop(listener);
    if tokio::time::timeout(deadlines.stop, graceful.shutdown()).await.is_err() {
        tracing::warn!(open = connections.len(), "closing connections that did not finish in time");
    }
    connections.shutdown().await;
}

/// A connection that died before it was accepted is nothing; running out of file descriptors passes.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};

    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "accepting a connection");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
