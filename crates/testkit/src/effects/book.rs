//! The calls, the effects of keys and the groups, under one lock: they are of one moment.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use chrono::{DateTime, Utc};
use tokio::sync::watch;
use uuid::Uuid;

use super::call::{Answer, Call, header};
use super::script::Script;

pub(super) struct Book {
    inner: Mutex<Inner>,
    pub(super) script: watch::Sender<Script>,
    /// Signals whenever a call begins or ends.
    pub(super) changed: watch::Sender<()>,
}

#[derive(Default)]
struct Inner {
    calls: Vec<Call>,
    effects: HashMap<String, Uuid>,
    groups: HashMap<String, Group>,
    file: Option<File>,
}

/// The calls of one group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    pub(super) now: u32,
    pub(super) peak: u32,
    pub(super) last_start: Option<DateTime<Utc>>,
}

impl Book {
    pub(super) fn open(record: Option<&Path>) -> Self {
        let open = |path: &Path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.unwrap_or_else(|error| panic!("opening the record {}: {error}", path.display()))
        };
        let inner = Mutex::new(Inner { file: record.map(open), ..Inner::default() });
        Self { inner, script: watch::Sender::default(), changed: watch::Sender::default() }
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub(super) fn count(&self, counts: impl Fn(&Call) -> bool) -> usize {
        self.lock().calls.iter().filter(|call| counts(call)).count()
    }

    pub(super) fn group(&self, name: &str) -> Group {
        self.lock().groups.get(name).copied().unwrap_or_default()
    }

    /// Counts a call in: from here on its effect is there.
    pub(super) fn enter(self: &Arc<Self>, headers: &HeaderMap) -> Visit {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut answer = Answer::Given;
        self.script.send_modify(|script| answer = script.next());
        let mut call = Call {
            at: DateTime::default(),
            key: text(header::KEY),
            group: text(header::GROUP),
            fence: text(header::FENCE),
            attempt: text(header::ATTEMPT).and_then(|attempt| attempt.parse().ok()),
            effect: None,
            is_repeat: false,
            in_flight_group: None,
            answer,
        };
        self.lock().add(&mut call);
        self.changed.send_replace(());
        Visit { book: self.clone(), call }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, call: &mut Call) {
        // Its time is that of its place among the others.
        call.at = Utc::now();
        if let Some(name) = &call.group {
            let group = self.groups.entry(name.clone()).or_default();
            group.now += 1;
            group.peak = group.peak.max(group.now);
            group.last_start = Some(call.at);
            call.in_flight_group = Some(group.now);
        }
        if !matches!(call.answer, Answer::Failed(_)) {
            let own = Uuid::now_v7();
            let effect = call.key.as_ref().map_or(own, |key| *self.effects.entry(key.clone()).or_insert(own));
            call.effect = Some(effect);
            call.is_repeat = effect != own;
        }
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_string(call).expect("a call has string keys and plain values");
            line.push('\n');
            if let Err(error) = file.write_all(line.as_bytes()) {
                tracing::error!(%error, "a call could not be recorded; the record is incomplete");
            }
        }
        self.calls.push(call.clone());
    }
}

/// A call in work. Dropping it counts the call out of its group.
pub(super) struct Visit {
    book: Arc<Book>,
    pub(super) call: Call,
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(name) = &self.call.group
            && let Some(group) = self.book.lock().groups.get_mut(name)
        {
            group.now -= 1;
        }
        self.book.changed.send_replace(());
    }
}
