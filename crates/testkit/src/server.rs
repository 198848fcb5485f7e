//! The HTTP listener. axum's own can't close a connection without an answer, so this one drives hyper itself.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Marks a response that must not be sent: the server closes the connection instead.
#[derive(Clone)]
pub(crate) struct HangUp;

/// How long to leave the listener alone when it can't accept, usually for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop`, then drops all connections and waits until their calls have ended.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, router.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "can't accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
}

/// Answers one connection's requests. Its errors are those of callers that leave, which is their right.
async fn converse(stream: TcpStream, router: Router) {
    let _ = stream.set_nodelay(true);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let answer = router.call(request);
        async move {
            let response: Response = answer.await.unwrap_or_else(|never| match never {});
            match response.extensions().get::<HangUp>() {
                Some(HangUp) => Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
                None => Ok(response),
            }
        }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
