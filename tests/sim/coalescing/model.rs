//! What must hold, by a record of the simulation's own. The store's tables are only compared with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use contract::snaptrade::WorkType;
use uuid::Uuid;

use crate::seeds::{self, ensure};

/// What is synced: which data of which account.
pub(crate) type Key = (&'static str, Uuid);

/// The name of a kind of data, as rows have it.
pub(crate) fn key(work_type: WorkType, account: Uuid) -> Key {
    (work_type.into(), account)
}

/// How an invariant was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// An event was accepted and no run will start after it.
    Lost,
    /// More than one command waits for the same events.
    Doubled,
    /// The store's numbers are not those of what happened.
    Miscounted,
    /// All is quiet, and something accepted was neither done nor taken back.
    Undone,
}

pub(crate) type Violation = seeds::Violation<Breach>;

/// A row of the store's table, with what ledger and queue say about the command that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) requested: i64,
    pub(crate) ok_through: i64,
    pub(crate) waiting: Option<Uuid>,
    /// The waiting command is open and has a message.
    pub(crate) is_live: bool,
}

/// The history of one key. Events are numbered from 1 in the order in which they were accepted.
#[derive(Debug, Default)]
struct Track {
    /// The last event.
    accepted: i64,
    /// The last event that came before some start.
    seen: i64,
    /// The last event that came before the start of a run whose effect was stored.
    done: i64,
    /// The last event that somebody gave up together with its command, or that there was nothing to do for.
    given_up: i64,
    /// Callers' requests that were given up before they started: each by itself, since no event is part of them.
    taken_back: BTreeSet<i64>,
    waiting: Option<Uuid>,
}

impl Track {
    /// The last event up to which nothing is owed, given the last one that is seen to.
    fn settled(&self, seen_to: i64) -> i64 {
        let from = seen_to.max(self.given_up);
        (from + 1..=self.accepted).take_while(|n| self.taken_back.contains(n)).last().unwrap_or(from)
    }
}

#[derive(Debug)]
struct Command {
    key: Key,
    /// Put in for an event, and not by a caller.
    is_events: bool,
    /// The number of a caller's request.
    asked: Option<i64>,
    /// For later, and not shown as anything else yet: it becomes a request when it starts.
    is_for_later: bool,
    /// The last event that came before its last start.
    started: Option<i64>,
    has_ended: bool,
}

impl Command {
    const fn new(key: Key) -> Self {
        Self { key, is_events: false, asked: None, is_for_later: false, started: None, has_ended: false }
    }
}

/// The record.
#[derive(Debug, Default)]
pub(crate) struct Model {
    tracks: BTreeMap<Key, Track>,
    commands: HashMap<Uuid, Command>,
}

impl Model {
    /// The number of the last accepted event.
    pub(crate) fn accepted(&self, key: Key) -> i64 {
        self.tracks.get(&key).map_or(0, |track| track.accepted)
    }

    /// An event was accepted; `new` is the command that was put in for it, if one was.
    pub(crate) fn event(&mut self, key: Key, new: Option<Uuid>) {
        let track = self.tracks.entry(key).or_default();
        track.accepted += 1;
        if let Some(id) = new {
            track.waiting = Some(id);
            self.commands.insert(id, Command { is_events: true, ..Command::new(key) });
        }
    }

    /// A caller put a command in: a request like an event's, of which no event becomes part.
    pub(crate) fn by_hand(&mut self, key: Key, id: Uuid) {
        let track = self.tracks.entry(key).or_default();
        track.accepted += 1;
        self.commands.insert(id, Command { asked: Some(track.accepted), ..Command::new(key) });
    }

    /// A caller put a command in that is for later.
    pub(crate) fn for_later(&mut self, key: Key, id: Uuid) {
        self.commands.insert(id, Command { is_for_later: true, ..Command::new(key) });
    }

    /// How many requests the start of a command adds.
    pub(crate) fn adds(&self, id: Uuid) -> i64 {
        i64::from(self.commands.get(&id).is_some_and(|command| command.is_for_later && !command.has_ended))
    }

    /// A command is shown as running, retrying or blocked.
    pub(crate) fn shown(&mut self, id: Uuid) {
        self.commands.entry(id).and_modify(|command| command.is_for_later = false);
    }

    /// A run has started and sees all events up to `mark`.
    pub(crate) fn started(&mut self, id: Uuid, mark: i64) {
        let adds = self.adds(id);
        self.starts(id, mark, adds);
    }

    /// A remote worker has claimed a command, which is its start and adds nothing.
    pub(crate) fn started_remotely(&mut self, id: Uuid) -> i64 {
        let mark = self.commands.get(&id).map_or(0, |command| self.accepted(command.key));
        self.starts(id, mark, 0);
        mark
    }

    fn starts(&mut self, id: Uuid, mark: i64, adds: i64) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.started = Some(mark);
        let Some(track) = self.tracks.get_mut(&command.key) else { return };
        track.accepted += adds;
        track.waiting = track.waiting.filter(|waiting| *waiting != id);
        // The run of a command that was taken back stores nothing.
        if !command.has_ended {
            track.seen = track.seen.max(mark);
        }
    }

    /// A run has found that everything is done.
    pub(crate) fn found_done(&mut self, id: Uuid, accepted: i64) -> Result<(), Violation> {
        let done = self.commands.get(&id).and_then(|command| self.tracks.get(&command.key));
        let done = done.map_or(0, |track| track.done);
        ensure(done >= accepted, Breach::Lost, || {
            format!("{id} says that all is done, and that is {done} of {accepted}")
        })?;
        self.started(id, accepted);
        Ok(())
    }

    /// A run has succeeded; `stored` says whether it had something to store.
    pub(crate) fn succeeded(&mut self, id: Uuid, mark: i64, stored: bool) {
        // What was given up went with its command, and its run stores nothing.
        let Some(command) = self.commands.get_mut(&id).filter(|command| !command.has_ended) else { return };
        let track = self.tracks.entry(command.key).or_default();
        let reached = if stored { &mut track.done } else { &mut track.given_up };
        *reached = mark.max(*reached);
        command.has_ended = true;
    }

    /// A command was cancelled, superseded or dead-lettered: what it would have seen goes with it.
    pub(crate) fn given_up(&mut self, id: Uuid) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.has_ended = true;
        let track = self.tracks.entry(command.key).or_default();
        let waited = track.waiting == Some(id);
        let with_it = if waited { track.accepted } else { command.started.unwrap_or(0) };
        track.given_up = track.given_up.max(with_it);
        track.taken_back.extend(command.asked.filter(|_| command.started.is_none()));
        track.waiting = track.waiting.filter(|waiting| *waiting != id);
    }

    /// The command that waits.
    pub(crate) fn waiting(&self, key: Key) -> Option<Uuid> {
        self.tracks.get(&key)?.waiting
    }

    /// Commands that may still be cancelled or run.
    pub(crate) fn open(&self) -> Vec<Uuid> {
        let open = self.commands.iter().filter(|(_, command)| !command.has_ended);
        let mut open: Vec<Uuid> = open.map(|(id, _)| *id).collect();
        // A map's order would make equal seeds differ.
        open.sort();
        open
    }

    /// Compares the store's tables with the record.
    pub(crate) fn check(&self, rows: &BTreeMap<Key, Row>) -> Result<(), Violation> {
        for (key, track) in &self.tracks {
            let row = rows.get(key);
            let waiting = row.and_then(|row| row.waiting.filter(|_| row.is_live));
            let will_start = self.commands.iter().any(|(id, command)| {
                let starts = waiting == Some(*id) || command.asked.is_some();
                starts && command.key == *key && command.started.is_none() && !command.has_ended
            });
            let is_covered = track.accepted <= track.settled(track.seen);
            ensure(is_covered || will_start, Breach::Lost, || {
                format!("no run will start after event {}: {track:?}, {row:?}", track.accepted)
            })?;
            let numbers = row.map_or((0, 0), |row| (row.requested, row.ok_through));
            ensure(numbers == (track.accepted, track.done), Breach::Miscounted, || {
                format!("{track:?}, {row:?}")
            })?;
        }
        for (id, command) in &self.commands {
            let may_wait = command.is_events && command.started.is_none() && !command.has_ended;
            let waits = rows.get(&command.key).is_some_and(|row| row.waiting == Some(*id));
            ensure(!may_wait || waits, Breach::Doubled, || {
                format!("{id} has never started and does not wait: {:?}", rows.get(&command.key))
            })?;
        }
        Ok(())
    }

    /// The same when nothing is left to run.
    pub(crate) fn check_end(&self, rows: &BTreeMap<Key, Row>) -> Result<(), Violation> {
        self.check(rows)?;
        for (key, track) in &self.tracks {
            let waits = rows.get(key).is_some_and(|row| row.waiting.is_some());
            let is_done = track.accepted <= track.settled(track.done);
            ensure(is_done && !waits, Breach::Undone, || format!("{track:?}, {:?}", rows.get(key)))?;
        }
        ensure(self.open().is_empty(), Breach::Undone, || format!("open: {:?}", self.open()))
    }
}
