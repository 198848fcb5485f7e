//! A small history in which all is well, for tests to break at one place.

use std::time::Duration;

use contract::Status;
use contract::snaptrade::WorkType;
use uuid::Uuid;

use super::super::plan::{Delivery, Event, Plan, Size};
use super::{
    Accepted, Call, CommandRow, Delivered, History, InboxRow, Key, Left, PlannedFault, Read, Rows, Sample,
    SyncRow,
};

pub(in crate::spike) const KEY: Key = Key { work: WorkType::Holdings, account: Uuid::from_u128(7) };

/// Two commands: the first of one event, the second of two, which came while the first one ran.
pub(in crate::spike) const FIRST: Uuid = Uuid::from_u128(101);
pub(in crate::spike) const SECOND: Uuid = Uuid::from_u128(102);

/// A call of five milliseconds that went well.
pub(in crate::spike) fn call(key: Key, step: usize, at_ms: f64) -> Call {
    Call {
        key,
        step,
        at_ms,
        took_ms: 5.0,
        status: Some(200),
        answered: true,
        request_id: format!("request at {at_ms}"),
        in_flight: 1,
        asked_wait_s: None,
        fault: None,
    }
}

/// Three events of one account, the first of them delivered twice. The first run meets a throttle, an error and a
/// lost answer before it gets through.
pub(in crate::spike) fn history() -> History {
    let event = |id: &str| Event { id: id.to_owned(), key: KEY, body: String::new() };
    let delivery = |ms, event| Delivery { at: Duration::from_millis(ms), event, gateway: event };
    let size = Size { deliveries: 4, events: 3, accounts: 1, over: Duration::from_millis(50), quota: 100 };
    let plan = Plan {
        size,
        accounts: vec![KEY.account],
        events: ["one", "two", "three"].map(event).into(),
        deliveries: vec![delivery(0, 0), delivery(1, 0), delivery(42, 1), delivery(44, 2)],
        kills: Vec::new(),
    };
    let delivered = |event, at_ms, outcome: &str, command| Delivered {
        due_ms: at_ms - 1.0,
        event,
        accepted: Some(Accepted { at_ms, outcome: outcome.to_owned(), command: Some(command) }),
        refused: 0,
        unanswered: 0,
    };
    let mut calls = vec![
        call(KEY, 0, 5.0),
        call(KEY, 0, 11.0),
        call(KEY, 0, 17.0),
        call(KEY, 0, 40.0),
        call(KEY, 1, 46.0),
        call(KEY, 2, 52.0),
        call(KEY, 0, 60.0),
        call(KEY, 1, 66.0),
        call(KEY, 2, 72.0),
    ];
    (calls[0].status, calls[0].asked_wait_s) = (Some(429), Some(1));
    (calls[1].status, calls[1].fault) = (Some(503), Some(PlannedFault::ServerError));
    (calls[2].answered, calls[2].fault) = (false, Some(PlannedFault::LostAnswer));
    let requests = |calls: &[Call]| calls.iter().map(|call| call.request_id.clone()).collect::<Vec<_>>();
    let command = |id, (accepted_ms, started_ms, finished_ms), request_ids| CommandRow {
        id,
        account: KEY.account,
        status: Status::Succeeded,
        accepted_ms,
        started_ms: Some(started_ms),
        finished_ms: Some(finished_ms),
        request_ids,
        queued: 0,
        archived: 1,
        buried: 0,
    };
    let commands = vec![
        command(FIRST, (0.5, 40.0, 58.0), [requests(&calls[..2]), requests(&calls[3..6])].concat()),
        command(SECOND, (42.5, 59.0, 78.0), requests(&calls[6..])),
    ];
    let inbox = |identity: &str, command, accepted_ms| InboxRow {
        identity: identity.to_owned(),
        command: Some(command),
        accepted_ms,
    };
    let sync = SyncRow { work: KEY.work, account: KEY.account, requested: 3, ok_through: 3, waiting: None };
    let read = |due_ms| Read { due_ms, took: Some(Duration::from_millis(2)) };
    History {
        plan,
        delivered: vec![
            delivered(0, 1.0, "queued", FIRST),
            delivered(0, 2.0, "duplicate", FIRST),
            delivered(1, 43.0, "queued", SECOND),
            delivered(2, 45.0, "coalesced", SECOND),
        ],
        rows: Rows {
            inbox: vec![inbox("one", FIRST, 0.5), inbox("two", SECOND, 42.5), inbox("three", SECOND, 44.5)],
            commands,
            syncs: vec![sync],
            left: Left::default(),
        },
        calls,
        idle_reads: vec![read(-100.0), read(-50.0)],
        storm_reads: vec![read(0.0), read(50.0)],
        samples: vec![Sample { at_ms: 50.0, in_flight: 1, open: 2, ..Sample::default() }],
        kills: Vec::new(),
        cap: 2,
        quota_period: Duration::from_mins(1),
        drained: true,
    }
}
