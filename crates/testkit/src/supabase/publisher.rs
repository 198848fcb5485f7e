//! A publisher of signing keys, as small as HTTP allows, that counts how often it is asked.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use url::Url;

use super::SigningKey;

/// What is answered.
#[derive(Clone)]
pub enum Answer {
    /// 200 with this body.
    Body(Vec<u8>),
    /// This status line with this body.
    Status(&'static str, Vec<u8>),
    /// The body, once a permit is there.
    Held(Vec<u8>, Arc<Semaphore>),
}

impl Answer {
    /// A set of these keys.
    pub fn keys<'a>(keys: impl IntoIterator<Item = &'a SigningKey>) -> Self {
        let keys: Vec<_> = keys.into_iter().map(SigningKey::jwk).collect();
        Self::Body(json!({ "keys": keys }).to_string().into_bytes())
    }
}

/// See the module.
pub struct Publisher {
    /// Where the keys are published.
    pub url: Url,
    answer: Arc<Mutex<Answer>>,
    asked: watch::Receiver<usize>,
}

impl Publisher {
    /// Listens on a free port.
    pub async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free local port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let answer = Arc::new(Mutex::new(answer));
        let (count, asked) = watch::channel(0);
        let next = answer.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (next, count) = (next.clone(), count.clone());
                tokio::spawn(async move {
                    // A client that has read enough hangs up, which is no fault of the test.
                    let _ = serve(stream, &next, &count).await;
                });
            }
        });
        Self { url: format!("http://{address}/jwks.json").parse().expect("a URL"), answer, asked }
    }

    /// Answers this from now on.
    pub fn answers(&self, answer: Answer) {
        *self.answer.lock().expect("nobody panics while holding it") = answer;
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until it was asked so often.
    pub async fn is_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        let wait = asked.wait_for(|asked| *asked >= times);
        timeout(Duration::from_secs(10), wait)
            .await
            .expect("asked so often")
            .expect("the publisher is running");
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &Mutex<Answer>,
    count: &watch::Sender<usize>,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let answer = answer.lock().expect("nobody panics while holding it").clone();
    count.send_modify(|asked| *asked += 1);
    let (status, body) = match answer {
        Answer::Body(body) => ("200 OK", body),
        Answer::Status(status, body) => (status, body),
        Answer::Held(body, gate) => {
            gate.acquire().await.expect("never closed").forget();
            ("200 OK", body)
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nLocation: /jwks.json?again\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
