use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Fired, Mode, Proxy};

const LONG: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_millis(1);
const BUDGET: Duration = Duration::from_secs(20);

/// What a server has heard on all its connections.
#[derive(Default)]
struct Heard {
    text: String,
    ends: usize,
    resets: usize,
}

/// A server that says what it is told.
struct Echo {
    address: SocketAddr,
    heard: watch::Receiver<Heard>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heard) = watch::channel(Heard::default());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(echo(stream, sender.clone()));
            }
        });
        Self { address, heard }
    }

    async fn until(&mut self, holds: impl FnMut(&Heard) -> bool) {
        soon(self.heard.wait_for(holds)).await.unwrap();
    }

    fn text(&self) -> String {
        self.heard.borrow().text.clone()
    }
}

async fn echo(mut stream: TcpStream, heard: watch::Sender<Heard>) {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => return heard.send_modify(|heard| heard.ends += 1),
            Ok(n) => {
                heard.send_modify(|heard| heard.text += std::str::from_utf8(&buffer[..n]).unwrap());
                let _ = stream.write_all(&buffer[..n]).await;
            }
            Err(_) => return heard.send_modify(|heard| heard.resets += 1),
        }
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BUDGET, future).await.expect("within the budget")
}

async fn proxied() -> (Echo, Proxy) {
    let server = Echo::start().await;
    let proxy = Proxy::start(server.address).await;
    (server, proxy)
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

/// A connection that is known to be through.
async fn living(proxy: &Proxy) -> TcpStream {
    let mut client = connect(proxy).await;
    assert_eq!(ask(&mut client, "hello ").await, "hello ");
    client
}

async fn say(client: &mut TcpStream, text: &str) {
    client.write_all(text.as_bytes()).await.unwrap();
}

async fn hear(client: &mut TcpStream, length: usize) -> String {
    let mut buffer = vec![0; length];
    soon(client.read_exact(&mut buffer)).await.unwrap();
    String::from_utf8(buffer).unwrap()
}

async fn ask(client: &mut TcpStream, text: &str) -> String {
    say(client, text).await;
    hear(client, text.len()).await
}

/// What comes until the end.
async fn rest(client: &mut TcpStream) -> String {
    let mut rest = String::new();
    soon(client.read_to_string(&mut rest)).await.unwrap();
    rest
}

async fn broken(client: &mut TcpStream) -> ErrorKind {
    soon(client.read(&mut [0; 1])).await.unwrap_err().kind()
}

async fn until(proxy: &Proxy, holds: impl FnMut(&Fired) -> bool) {
    soon(proxy.until(holds)).await;
}

#[tokio::test]
async fn what_is_said_passes_both_ways_and_so_do_ends() {
    let (mut server, proxy) = proxied().await;
    let mut client = living(&proxy).await;
    client.shutdown().await.unwrap();

    server.until(|heard| heard.ends == 1).await;
    assert_eq!(rest(&mut client).await, "");
    assert_eq!(proxy.fired(), Fired::default());
}

#[tokio::test]
async fn late_bytes_come_when_their_time_has_passed_or_the_mode_changes() {
    let (server, proxy) = proxied().await;
    let mut client = living(&proxy).await;
    proxy.set(Mode::Delay(SHORT));
    assert_eq!(ask(&mut client, "late").await, "late");
    assert!(proxy.fired().delayed >= 2, "{:?}", proxy.fired());

    proxy.set(Mode::Delay(LONG));
    let before = proxy.fired().delayed;
    say(&mut client, " later").await;
    until(&proxy, |fired| fired.delayed > before).await;
    assert_eq!(server.text(), "hello late");
    proxy.set(Mode::Pass);
    assert_eq!(hear(&mut client, 6).await, " later");
}

#[tokio::test]
async fn held_answers_come_when_they_are_released() {
    let (server, proxy) = proxied().await;
    let (mut ended, mut client) = (living(&proxy).await, living(&proxy).await);
    proxy.set(Mode::HoldAnswers);
    say(&mut ended, "held").await;
    until(&proxy, |fired| fired.held == 1).await;
    assert_eq!(server.text(), "hello hello held");
    proxy.half_close();
    assert_eq!(rest(&mut ended).await, "", "the answer was in the proxy");
    assert_eq!(rest(&mut client).await, "");

    proxy.set(Mode::Pass);
    let mut client = living(&proxy).await;
    proxy.set(Mode::HoldAnswers);
    say(&mut client, "released").await;
    until(&proxy, |fired| fired.held == 2).await;
    proxy.set(Mode::Pass);
    assert_eq!(hear(&mut client, 8).await, "released");
}

#[tokio::test]
async fn a_black_hole_accepts_everything_answers_nothing_and_tells_nobody() {
    let (mut server, proxy) = proxied().await;
    let (mut old, leaving) = (living(&proxy).await, living(&proxy).await);
    proxy.set(Mode::BlackHole);
    say(&mut old, "lost").await;
    until(&proxy, |fired| fired.swallowed == 1).await;
    let mut new = connect(&proxy).await;
    say(&mut new, "lost").await;
    until(&proxy, |fired| fired.swallowed == 2).await;
    drop(leaving);

    proxy.set(Mode::Pass);
    server.until(|heard| heard.ends == 1).await;
    say(&mut old, "lost too").await;
    until(&proxy, |fired| fired.swallowed == 3).await;
    living(&proxy).await;
    for silent in [&mut old, &mut new] {
        silent.shutdown().await.unwrap();
        assert_eq!(rest(silent).await, "");
    }
    server.until(|heard| heard.ends == 3).await;
    assert_eq!(server.text(), "hello hello hello ");
}

#[tokio::test]
async fn refused_connections_are_reset_and_living_ones_go_on() {
    let (_server, proxy) = proxied().await;
    let mut old = living(&proxy).await;
    proxy.set(Mode::Refuse);
    let mut new = connect(&proxy).await;

    assert_eq!(broken(&mut new).await, ErrorKind::ConnectionReset);
    assert_eq!(proxy.fired().refused, 1);
    assert_eq!(ask(&mut old, "still").await, "still");
    proxy.set(Mode::Pass);
    living(&proxy).await;
}

#[tokio::test]
async fn a_reset_breaks_both_ends_of_the_living_connections() {
    let (mut server, proxy) = proxied().await;
    let (mut one, mut other) = (living(&proxy).await, living(&proxy).await);
    proxy.reset();

    assert_eq!(broken(&mut one).await, ErrorKind::ConnectionReset);
    assert_eq!(broken(&mut other).await, ErrorKind::ConnectionReset);
    server.until(|heard| heard.resets == 2).await;
    assert_eq!(proxy.fired(), Fired { reset: 2, ..Fired::default() });
    living(&proxy).await;
}

#[tokio::test]
async fn a_reset_reaches_connections_in_every_mode() {
    let (_server, proxy) = proxied().await;
    for mode in [Mode::HoldAnswers, Mode::BlackHole, Mode::Delay(LONG), Mode::Drip { bytes: 1, every: LONG }]
    {
        proxy.set(Mode::Pass);
        let mut client = living(&proxy).await;
        proxy.set(mode);
        say(&mut client, "never answered").await;
        proxy.reset();

        assert_eq!(broken(&mut client).await, ErrorKind::ConnectionReset, "{mode:?}");
    }
}

#[tokio::test]
async fn a_half_closed_client_reads_an_end_and_is_still_heard() {
    let (mut server, proxy) = proxied().await;
    let mut client = living(&proxy).await;
    proxy.half_close();

    assert_eq!(rest(&mut client).await, "");
    until(&proxy, |fired| fired.half_closed == 1).await;
    say(&mut client, "goodbye").await;
    server.until(|heard| heard.text == "hello goodbye").await;
    client.shutdown().await.unwrap();
    server.until(|heard| heard.ends == 1).await;
}

#[tokio::test]
async fn drops_come_one_after_the_other() {
    let (_server, proxy) = proxied().await;
    let mut client = living(&proxy).await;
    proxy.set(Mode::Drip { bytes: 2, every: SHORT });
    assert_eq!(ask(&mut client, "abcdef").await, "abcdef");
    let dripped = proxy.fired().dripped;
    assert!(dripped >= 6, "{dripped}");

    proxy.set(Mode::Drip { bytes: 2, every: LONG });
    say(&mut client, "ghi").await;
    proxy.set(Mode::Pass);
    assert_eq!(hear(&mut client, 3).await, "ghi");
}

#[tokio::test]
async fn a_lost_answer_was_given_by_the_server_and_is_not_heard_by_the_client() {
    let (mut server, proxy) = proxied().await;
    let (mut client, mut other) = (living(&proxy).await, living(&proxy).await);
    proxy.lose_answer(["COMMIT"]);
    assert_eq!(ask(&mut client, "update; COM").await, "update; COM");
    say(&mut client, "MIT").await;

    assert_eq!(broken(&mut client).await, ErrorKind::ConnectionReset);
    server.until(|heard| heard.resets == 1).await;
    assert_eq!(server.text(), "hello hello update; COMMIT");
    assert_eq!(proxy.fired(), Fired { answers_lost: 1, ..Fired::default() });
    assert_eq!(ask(&mut other, "COMMIT").await, "COMMIT");
}

#[tokio::test]
async fn answers_before_the_last_word_are_heard() {
    let (_server, proxy) = proxied().await;
    let mut client = living(&proxy).await;
    proxy.lose_answer(["settle", "execute"]);

    assert_eq!(ask(&mut client, "execute, prepare settle").await, "execute, prepare settle");
    say(&mut client, "execute").await;
    assert_eq!(broken(&mut client).await, ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn new_connections_go_where_the_switch_points_and_old_ones_break() {
    let (one, proxy) = proxied().await;
    let mut other = Echo::start().await;
    let mut old = living(&proxy).await;
    proxy.switch(other.address);

    assert_eq!(broken(&mut old).await, ErrorKind::ConnectionReset);
    living(&proxy).await;
    other.until(|heard| heard.text == "hello ").await;
    assert_eq!(one.text(), "hello ");
}

#[tokio::test]
async fn without_a_server_a_connection_is_reset() {
    let (_server, proxy) = proxied().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    proxy.switch(nobody.local_addr().unwrap());
    drop(nobody);

    assert_eq!(broken(&mut connect(&proxy).await).await, ErrorKind::ConnectionReset);
}
