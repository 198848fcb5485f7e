//! The append-only record of provider calls. Query strings and headers carry secrets, so they are left out.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Error;
use super::script::RuleId;

/// One provider call that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When it arrived, by the wall clock.
    pub at: DateTime<Utc>,
    /// When it arrived, in milliseconds since the sandbox started; monotonic.
    pub at_ms: u64,
    /// How long it took until its answer was ready or its caller gone.
    pub duration_ms: u64,
    /// Whose API was called.
    pub provider: String,
    /// The HTTP method.
    pub method: String,
    /// The path as sent, without the query.
    pub path: String,
    /// The account that the path names.
    pub key: Option<Uuid>,
    /// What `X-Request-ID` told the caller.
    pub request_id: Uuid,
    /// The status of the answer, also of a lost one; none if the caller left before there was one.
    pub status: Option<u16>,
    /// Calls in work at the provider when this one had arrived, with it.
    pub in_flight_provider: u32,
    /// Calls in work for the key when this one had arrived, with it.
    pub in_flight_key: Option<u32>,
    /// Whether the caller proved who it is.
    pub signature_ok: bool,
    /// The caller never saw the answer.
    pub answer_lost: bool,
    /// How many seconds the answer asked the caller to stay away.
    pub asked_wait_s: Option<u64>,
    /// The rule that hit the call.
    pub rule: Option<RuleId>,
}

/// Where calls are kept: always in memory, and in a file if there is one.
pub(super) struct Record(Mutex<Inner>);

struct Inner {
    calls: Vec<Call>,
    file: Option<File>,
}

impl Record {
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Error> {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.map_err(|source| Error::OpenRecord { path: path.to_owned(), source })
        };
        let file = path.map(open).transpose()?;
        Ok(Self(Mutex::new(Inner { calls: Vec::new(), file })))
    }

    /// Adds a call. The line is in the file before the caller sees the answer; a line is one write, so a
    /// reader never meets half of one.
    pub(super) fn push(&self, call: Call) {
        let mut inner = self.lock();
        if let Some(file) = &mut inner.file {
            let mut line = serde_json::to_string(&call).expect("a call has string keys and plain values");
            line.push('\n');
            if let Err(error) = file.write_all(line.as_bytes()) {
                tracing::error!(%error, "a call could not be recorded; the record is incomplete");
            }
        }
        inner.calls.push(call);
    }

    /// The calls behind the first `seen` ones.
    pub(super) fn since(&self, seen: usize) -> Vec<Call> {
        self.lock().calls.get(seen..).unwrap_or_default().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
