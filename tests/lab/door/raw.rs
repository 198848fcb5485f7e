//! HTTP/1.1 over a bare socket: what goes out is what a case says, byte for byte, also where it is wrong.

use std::io;

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where a listener is.
#[derive(Clone, Debug)]
pub(super) struct Address(String);

impl Address {
    /// Of `http://host:port`. TLS ends in front of a gateway.
    pub(super) fn of(url: &str) -> anyhow::Result<Self> {
        let parsed = url::Url::parse(url).with_context(|| format!("`{url}` is no URL"))?;
        ensure!(parsed.scheme() == "http", "`{url}` doesn't start with http://");
        let host = parsed.host_str().with_context(|| format!("`{url}` has no host"))?;
        Ok(Self(format!("{host}:{}", parsed.port_or_known_default().unwrap_or(80))))
    }

    /// `host:port`.
    pub(super) fn host(&self) -> &str {
        &self.0
    }
}

/// A request in the making. `Host`, and the length of a body, are added when it is written.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    is_chunked: bool,
}

impl Request {
    pub(super) fn new(method: &'static str, target: impl Into<String>) -> Self {
        Self { method, target: target.into(), headers: Vec::new(), body: Vec::new(), is_chunked: false }
    }

    pub(super) fn get(target: impl Into<String>) -> Self {
        Self::new("GET", target)
    }

    pub(super) fn post(target: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", target).with_body(body)
    }

    pub(super) fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Adds a header, beside those of the same name.
    pub(super) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name, value.as_ref().to_vec()));
        self
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Sends the body in chunks, without announcing its length.
    pub(super) fn chunked(self) -> Self {
        Self { is_chunked: true, ..self }
    }

    pub(super) fn value(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_slice())
    }

    /// The head alone, with an announced length where there is a body or the method usually has one.
    pub(super) fn head(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {host}\r\n", self.method, self.target).into_bytes();
        for (name, value) in &self.headers {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        if self.is_chunked {
            head.extend_from_slice(b"transfer-encoding: chunked\r\n");
        } else if !self.body.is_empty() || self.method == "POST" {
            head.extend_from_slice(format!("content-length: {}\r\n", self.body.len()).as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    pub(super) fn bytes(&self, host: &str) -> Vec<u8> {
        let mut bytes = self.head(host);
        if self.is_chunked {
            for piece in self.body.chunks(self.body.len() / 2 + 1) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

/// An answer, read whole.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn parse_head(head: &[u8]) -> anyhow::Result<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default();
        let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        let status = status.with_context(|| format!("`{line:.60}` is no status line of HTTP/1"))?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        Ok(Self { status, headers: headers.collect(), body: Vec::new() })
    }

    fn has_body(&self, to_head: bool) -> bool {
        !to_head && self.status >= 200 && self.status != 204 && self.status != 304
    }
}

/// One connection to a listener.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: &Address) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address.host()).await;
        let stream = stream.with_context(|| format!("connecting to {}", address.host()))?;
        stream.set_nodelay(true).context("sending small pieces at once")?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Fails where the other side has closed.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Says that nothing more will come, and goes on listening.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Whether something came, or the end, without waiting for it.
    pub(super) fn has_said_something(&mut self) -> bool {
        match self.stream.try_read_buf(&mut self.buffer) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// The next answer; nothing where the connection ended before one began.
    pub(super) async fn answer(&mut self, to_head: bool) -> anyhow::Result<Option<Answer>> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if !self.read_more().await {
                let rest = String::from_utf8_lossy(&self.buffer);
                ensure!(rest.is_empty(), "the connection ended in the middle of a head: {rest:.60}");
                return Ok(None);
            }
        };
        let mut answer = Answer::parse_head(&self.buffer[..end])?;
        self.buffer.drain(..end + 4);
        if answer.has_body(to_head) {
            answer.body = self.body(&answer).await?;
        }
        Ok(Some(answer))
    }

    /// Every answer until the other side closes.
    pub(super) async fn answers(&mut self) -> anyhow::Result<Vec<Answer>> {
        let mut answers = Vec::new();
        while let Some(answer) = self.answer(false).await? {
            answers.push(answer);
        }
        Ok(answers)
    }

    async fn body(&mut self, answer: &Answer) -> anyhow::Result<Vec<u8>> {
        if answer.header("transfer-encoding").is_some() {
            return self.chunks().await;
        }
        if let Some(length) = answer.header("content-length") {
            return self.take(length.parse().with_context(|| format!("content-length `{length}`"))?).await;
        }
        while self.read_more().await {}
        Ok(std::mem::take(&mut self.buffer))
    }

    async fn chunks(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                match find(&self.buffer, b"\r\n") {
                    Some(end) => break self.take(end + 2).await?,
                    None if self.read_more().await => {}
                    None => bail!("the connection ended in the middle of a chunked body"),
                }
            };
            let line = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .with_context(|| format!("chunk size `{line:.20}`"))?;
            body.extend(self.take(size).await?);
            self.take(2).await?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    async fn take(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        while self.buffer.len() < length {
            ensure!(self.read_more().await, "the connection ended in the middle of a body");
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// False at the end. A reset is an end too: it is how a refusal of unread bytes looks from here.
    async fn read_more(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.buffer).await, Ok(n) if n > 0)
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What a client reads from a server that says `bytes` and closes.
    async fn read(bytes: &'static [u8]) -> anyhow::Result<Vec<Answer>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = Address::of(&format!("http://{}", listener.local_addr()?))?;
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            stream.write_all(bytes).await
        });
        let answers = Connection::open(&address).await?.answers().await;
        server.await??;
        answers
    }

    #[tokio::test]
    async fn answers_are_told_apart_by_their_lengths() {
        let answers = read(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}\
              HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\n\r\n\
              HTTP/1.1 404 Not Found\r\n\r\nto the end",
        )
        .await
        .unwrap();
        let seen: Vec<(u16, &[u8])> =
            answers.iter().map(|answer| (answer.status, answer.body.as_slice())).collect();

        assert_eq!(seen, [(100, &b""[..]), (202, b"{}"), (200, b"abcde"), (404, b"to the end")]);
    }

    #[tokio::test]
    async fn half_an_answer_is_none() {
        assert!(read(b"").await.unwrap().is_empty());
        for half in
            [&b"HTTP/1.1 200"[..], b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", b"SSH-2.0\r\n\r\n"]
        {
            assert!(read(half).await.is_err());
        }
    }

    #[test]
    fn a_request_is_written_as_it_was_built() {
        let request = Request::post("/a", "12345").header("x", b"\xff").header("x", "2");
        let tail = b"x: \xff\r\nx: 2\r\ncontent-length: 5\r\n\r\n12345";

        assert_eq!(request.bytes("h"), [&b"POST /a HTTP/1.1\r\nhost: h\r\n"[..], tail].concat());
        let chunked = request.chunked().bytes("h");
        assert!(chunked.ends_with(b"transfer-encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n"));
    }
}
