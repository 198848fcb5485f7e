//! Wake-ups: whoever puts a message in says so after the commit, and an idle worker listens. They carry nothing and
//! promise nothing: a worker that hears none finds its work by looking.

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::postgres::PgListener;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::pool::{Options, Pool};

/// A queue is called at most once in this time: a commit that notifies takes a lock that all of them share.
const PACE: Duration = Duration::from_millis(20);

/// Calls the workers of queues: the first of a burst at once, the rest together at its end.
#[derive(Clone, Debug)]
pub struct Notifier(mpsc::UnboundedSender<&'static str>);

impl Notifier {
    /// Starts. The task ends when every clone is gone and everything was called. Behind a transaction pooler nobody
    /// listens, so there is none.
    pub fn start(pool: Pool) -> Self {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        if !pool.can_call() {
            return Self(sender);
        }
        tokio::spawn(async move {
            while let Some(first) = receiver.recv().await {
                let mut queues = BTreeSet::from([first]);
                while let Ok(queue) = receiver.try_recv() {
                    queues.insert(queue);
                }
                // A call that fails is a poll later.
                let _ = call(&pool, queues).await;
                tokio::time::sleep(PACE).await;
            }
        });
        Self(sender)
    }

    /// Says that something new is in a queue.
    pub fn notify(&self, queue: &'static str) {
        // Nobody takes it where the runtime is gone or nobody is called.
        let _ = self.0.send(queue);
    }
}

async fn call(pool: &Pool, queues: BTreeSet<&'static str>) -> Result<(), Error> {
    let queues: Vec<String> = queues.into_iter().map(str::to_owned).collect();
    pool.bounded("calling workers", async {
        let mut session = pool.session().await?;
        sqlx::query_file!("sql/notify.sql", &queues).fetch_all(&mut *session).await?;
        session.release().await?;
        Ok(())
    })
    .await
}

/// Hears the calls of one queue, on a connection of its own.
pub struct Listener {
    inner: PgListener,
}

/// How long a listener waits for a call before it makes its connection prove that it is alive.
const PROOF: Duration = Duration::from_secs(15);

impl Listener {
    /// Connects and listens.
    pub async fn start(options: &Options, queue: &'static str) -> Result<Self, Error> {
        let pool = Pool::prepare(options, "listen", 1)?;
        pool.bounded("listening for calls", async {
            let mut inner = PgListener::connect_with(&pool.sqlx()).await?;
            inner.listen(&format!("spillway_{queue}")).await?;
            Ok(Self { inner })
        })
        .await
    }

    /// Returns at the next call. An error means that calls may have been missed: look, and listen anew.
    pub async fn heard(&mut self, deadline: Duration) -> Result<(), Error> {
        let operation = "listening for calls";
        loop {
            match tokio::time::timeout(PROOF, self.inner.try_recv()).await {
                Ok(Ok(Some(_))) => return Ok(()),
                Ok(Ok(None)) => return Err(Error::Query { operation, source: sqlx::Error::PoolClosed }),
                Ok(Err(source)) => return Err(Error::Query { operation, source }),
                // Silence: an answer to a question shows that the connection still leads somewhere.
                Err(_) => {
                    let proof = sqlx::query_file!("sql/ping.sql").fetch_one(&mut self.inner);
                    match tokio::time::timeout(deadline, proof).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(source)) => return Err(Error::Query { operation, source }),
                        Err(_) => return Err(Error::Deadline { operation, limit: deadline }),
                    }
                }
            }
        }
    }
}
