//! A closed loop over keep-alive connections in as little CPU as can be: requests made beforehand and written whole,
//! one thread, and of an answer only the word that counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What a load came to.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// From the first request to the last answer.
    pub(super) took: Duration,
    /// How long each answer took.
    pub(super) latencies: Vec<Duration>,
    /// Answers by the outcome in them, or by their status where there is none.
    pub(super) answers: BTreeMap<String, usize>,
}

/// Sends each request once: each of the connections sends the next one as soon as its last was answered.
pub(super) async fn run(
    address: String,
    requests: Arc<Vec<Vec<u8>>>,
    connections: usize,
) -> anyhow::Result<Load> {
    // A thread of its own: tasks that move between threads cost more than this load does.
    let thread = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("starting a runtime")?.block_on(closed_loop(&address, &requests, connections))
    });
    thread.await.context("waiting for the load")?
}

async fn closed_loop(
    address: &str,
    requests: &Arc<Vec<Vec<u8>>>,
    connections: usize,
) -> anyhow::Result<Load> {
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true).context("turning Nagle's delay off")?;
        streams.push(stream);
    }
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for stream in streams {
        clients.spawn(client(stream, requests.clone(), next.clone()));
    }
    let mut load = Load::default();
    while let Some(ended) = clients.join_next().await {
        let part = ended.context("waiting for a client")??;
        load.latencies.extend(part.latencies);
        for (word, n) in part.answers {
            *load.answers.entry(word).or_default() += n;
        }
    }
    load.took = began.elapsed();
    Ok(load)
}

async fn client(
    mut stream: TcpStream,
    requests: Arc<Vec<Vec<u8>>>,
    next: Arc<AtomicUsize>,
) -> anyhow::Result<Load> {
    let mut load = Load::default();
    let mut buffer = Vec::with_capacity(4096);
    while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
        let began = Instant::now();
        stream.write_all(request).await.context("sending a request")?;
        buffer.clear();
        let answer = loop {
            let n = stream.read_buf(&mut buffer).await.context("reading an answer")?;
            ensure!(n > 0, "a connection was closed before its answer");
            if let Some(answer) = Answer::parse(&buffer)? {
                break answer;
            }
        };
        load.latencies.push(began.elapsed());
        match load.answers.get_mut(answer.word()) {
            Some(n) => *n += 1,
            None => drop(load.answers.insert(answer.word().to_owned(), 1)),
        }
    }
    Ok(load)
}

/// A complete answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    status: &'a str,
    body: &'a str,
}

impl<'a> Answer<'a> {
    /// Nothing while it is not complete.
    fn parse(bytes: &'a [u8]) -> anyhow::Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&bytes[..end]).context("a header that is no text")?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3));
        let status = status.context("an answer that is not HTTP/1.1")?;
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
        });
        let Some(Ok(length)) = length else { bail!("an answer without its length") };
        let body = bytes.get(end + 4..end + 4 + length);
        let body =
            body.map(|body| std::str::from_utf8(body).context("a body that is no text")).transpose()?;
        Ok(body.map(|body| Self { status, body }))
    }

    /// The outcome that the gateway tells a sender, else the status.
    fn word(&self) -> &'a str {
        let outcome = self.body.split_once(r#""outcome":""#).and_then(|(_, rest)| rest.split('"').next());
        outcome.filter(|_| self.status == "202").unwrap_or(self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(answer: &str) -> Option<&str> {
        Answer::parse(answer.as_bytes()).unwrap().map(|answer| answer.word())
    }

    #[test]
    fn an_answer_counts_by_its_outcome_and_any_other_by_its_status() {
        let queued = "HTTP/1.1 202 Accepted\r\nContent-Length: 20\r\n\r\n{\"outcome\":\"queued\"}";
        let busy = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}";

        assert_eq!(word(queued), Some("queued"));
        assert_eq!(word(busy), Some("503"));
    }

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nabc";

        for end in 0..answer.len() {
            assert_eq!(word(&answer[..end]), None, "{end}");
        }
        assert_eq!(word(answer), Some("404"));
    }

    #[test]
    fn what_is_no_http_answer_is_an_error() {
        assert!(Answer::parse(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
        assert!(Answer::parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
