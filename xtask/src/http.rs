//! Asks a local process one thing over HTTP. Enough for `/livez` and `/readyz`, and no HTTP client.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, bail};

const TIMEOUT: Duration = Duration::from_secs(2);
/// A probe's answer is a few lines; more than this is somebody else's server.
const MAX_ANSWER: u64 = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// `GET base/path`, where `base` is `http://HOST:PORT`.
pub(crate) fn get(base: &str, path: &str) -> anyhow::Result<Answer> {
    let authority =
        base.strip_prefix("http://").with_context(|| format!("`{base}` is no http:// address"))?;
    let mut addresses =
        authority.to_socket_addrs().with_context(|| format!("`{authority}` is no HOST:PORT"))?;
    let address = addresses.next().with_context(|| format!("`{authority}` has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // One write, so that the request arrives in one piece.
    let request = format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    let end = stream.take(MAX_ANSWER).read_to_end(&mut answer);
    // A server may reset the connection, or keep it open, after a complete answer.
    parse(&String::from_utf8_lossy(&answer)).map_err(|fault| end.err().map_or(fault, Into::into))
}

/// Whether a probe says yes. A process that does not answer says no.
pub(crate) fn says_ok(base: &str, path: &str) -> bool {
    get(base, path).is_ok_and(|answer| answer.status == 200)
}

fn parse(answer: &str) -> anyhow::Result<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of headers")?;
    let mut words = head.split_whitespace();
    let (Some(protocol), Some(status)) = (words.next(), words.next()) else { bail!("the answer is empty") };
    if !protocol.starts_with("HTTP/1.") {
        bail!("`{protocol}` is not HTTP/1");
    }
    Ok(Answer { status: status.parse().context("the status is no number")?, body: body.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn status_and_body_are_told_apart() {
        let answer =
            parse("HTTP/1.1 503 Service Unavailable\r\nx: y\r\n\r\npostgres: down\n").expect("well formed");

        assert_eq!((answer.status, answer.body.as_str()), (503, "postgres: down"));
    }

    #[test]
    fn something_that_is_not_http_is_an_error() {
        assert!(parse("SSH-2.0-OpenSSH\r\n\r\n").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn a_server_on_this_machine_is_asked_for_the_path() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("our own call");
            let mut request = [0; 1024];
            let length = stream.read(&mut request).expect("a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nok").expect("the caller waits");
            String::from_utf8_lossy(&request[..length]).into_owned()
        });

        assert!(says_ok(&base, "/livez"));
        assert!(server.join().expect("no panic").starts_with("GET /livez HTTP/1.1\r\n"));
    }
}
