//! What must hold once a fault is over, whatever the fault was: judged from what callers were told, what is committed
//! and what the provider saw.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, bail};
use contract::Workload;
use serde::Deserialize;
use uuid::Uuid;

use super::history::{Operation, Told};
use super::scene::{DEAD_LETTERS, QUEUE, SYNCS, Scene};

/// Of the operations that were planned so many have to reach a promise, or the run has shown nothing.
const FLOOR: f64 = 0.8;

/// Processes that a probe may take along before it is a dead letter.
const MOST_CRASHES: u32 = Workload::PaymentReconciliation.spec().max_crashes;

/// Problems that are named before they are only counted.
const NAMED: usize = 4;

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) operations: Vec<Operation>,
    pub(super) commands: Vec<CommandRow>,
    /// Messages of no command, by table.
    pub(super) strays: Vec<String>,
    pub(super) left: Left,
    pub(super) calls: Vec<Call>,
}

/// A command of the ledger, and its messages.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CommandRow {
    pub(super) id: Uuid,
    pub(super) key: String,
    /// Whether a worker ran: then it has to have ended.
    pub(super) is_job: bool,
    pub(super) status: String,
    pub(super) replays: u32,
    pub(super) attempts: u32,
    pub(super) crashes: u32,
    pub(super) most_attempts: u32,
    /// Milliseconds since 1970 of its end.
    pub(super) finished_ms: Option<f64>,
    /// Messages in the queue, in the archive, among the dead letters' messages, and rows of dead letters.
    pub(super) queued: u32,
    pub(super) archived: u32,
    pub(super) dead: u32,
    pub(super) buried: u32,
    /// The lease of its last message in the archive, `msg_id/read_ct`.
    pub(super) last_lease: Option<String>,
}

/// What nobody should hold any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Left {
    pub(super) holds: u32,
    pub(super) in_use: u32,
    pub(super) lines: u32,
}

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) key: String,
    /// True for the first of its key: the one that has an effect.
    pub(super) is_effect: bool,
    /// Milliseconds since 1970 of its arrival.
    pub(super) at_ms: f64,
    /// The lease that its caller held, or believed to hold.
    pub(super) lease: String,
}

impl Call {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century")]
    fn of(call: &testkit::effects::Call) -> Self {
        let at_ms = call.at.timestamp_micros() as f64 / 1000.0;
        let lease = call.fence.clone().unwrap_or_default();
        Self { key: call.key.clone().unwrap_or_default(), is_effect: call.has_effect(), at_ms, lease }
    }
}

/// How much of what was planned reached a promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) planned: usize,
    pub(super) kept: usize,
}

impl Verdict {
    /// 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share of some thousands")]
    pub(super) fn ratio(self) -> f64 {
        if self.planned == 0 { 0.0 } else { self.kept as f64 / self.planned as f64 }
    }
}

/// Reads what there is and judges it.
pub(super) async fn judge(scene: &Scene) -> anyhow::Result<Verdict> {
    let seen = look(scene).await?;
    let problems = problems(&seen);
    if !problems.is_empty() {
        let more = problems.len().saturating_sub(NAMED);
        let named = problems.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        bail!("{named}{}", if more > 0 { format!("; and {more} more") } else { String::new() });
    }
    let verdict = floor(&seen.operations);
    if verdict.ratio() < FLOOR {
        bail!("only {} of {} operations came to a promise", verdict.kept, verdict.planned);
    }
    Ok(verdict)
}

/// Of the operations by key, those that were promised at last.
fn floor(operations: &[Operation]) -> Verdict {
    let mut last: BTreeMap<&str, bool> = BTreeMap::new();
    for operation in operations {
        *last.entry(&operation.key).or_default() |= operation.told == Told::Ok;
    }
    Verdict { planned: last.len(), kept: last.values().filter(|kept| **kept).count() }
}

/// Everything that does not hold, in sentences.
fn problems(seen: &Seen) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(lost(seen));
    problems.extend(seen.commands.iter().flat_map(unpaired));
    problems.extend(seen.commands.iter().flat_map(|command| outcome(command, seen)));
    problems.extend(seen.strays.iter().cloned());
    if seen.left != Left::default() {
        problems.push(format!("all is over, and there are left {:?}", seen.left));
    }
    problems
}

/// What was promised is in the ledger.
fn lost(seen: &Seen) -> Vec<String> {
    let known: HashMap<Uuid, &CommandRow> =
        seen.commands.iter().map(|command| (command.id, command)).collect();
    let promised = seen.operations.iter().filter(|operation| operation.told == Told::Ok);
    promised
        .filter_map(|operation| operation.command)
        .filter(|id| !known.contains_key(id))
        .map(|id| format!("command {id} was promised and is not there"))
        .collect()
}

/// A command has one message: in its queue while it is open, in the archive when it is done; and one more in the archive
/// for each replay. A dead letter has one message of its own beside it, and one row for each of its deaths.
fn unpaired(command: &CommandRow) -> Vec<String> {
    let CommandRow { id, is_job, status, replays, queued, archived, dead, buried, finished_ms, .. } = command;
    let mut problems = Vec::new();
    if *is_job && finished_ms.is_none() {
        problems.push(format!("command {id} is {status} and never ended"));
    }
    if queued + archived != 1 + replays || *queued > 1 {
        problems.push(format!(
            "command {id} ({status}, replays: {replays}) has {queued} messages in its queue and {archived} in the archive"
        ));
    }
    let is_dead = u32::from(status == "dead_lettered");
    if (*dead, *buried) != (is_dead, is_dead + replays) {
        problems.push(format!(
            "command {id} ({status}) has {dead} messages and {buried} rows among the dead letters"
        ));
    }
    problems
}

/// One effect where it succeeded, at most one elsewhere; none after its end; ended by nobody but the holder of its last
/// lease; and no more runs than it may have.
fn outcome(command: &CommandRow, seen: &Seen) -> Vec<String> {
    let calls: Vec<&Call> = seen.calls.iter().filter(|call| call.key == command.key).collect();
    let effects = calls.iter().filter(|call| call.is_effect).count();
    let mut problems = Vec::new();
    if effects > 1 || (command.is_job && effects == 0 && command.status == "succeeded") {
        problems.push(format!("command {} ({}) had {effects} effects", command.id, command.status));
    }
    let late = calls.iter().filter(|call| command.finished_ms.is_some_and(|end| call.at_ms > end)).count();
    if late > 0 {
        problems.push(format!("command {} had {late} calls after its end", command.id));
    }
    // Each run that succeeds has made a call.
    let is_owner = |lease: &String| calls.iter().any(|call| call.lease == *lease);
    if command.is_job && command.status == "succeeded" && !command.last_lease.as_ref().is_some_and(is_owner) {
        problems.push(format!(
            "command {} was ended under lease {:?}, whose holder made no call",
            command.id, command.last_lease
        ));
    }
    if command.attempts > command.most_attempts {
        problems.push(format!(
            "command {} had {} attempts and may have {}",
            command.id, command.attempts, command.most_attempts
        ));
    }
    if command.crashes > MOST_CRASHES {
        problems.push(format!(
            "command {} crashed {} times and may {MOST_CRASHES} times",
            command.id, command.crashes
        ));
    }
    problems
}

async fn look(scene: &Scene) -> anyhow::Result<Seen> {
    #[derive(Deserialize)]
    struct Rows {
        commands: Vec<CommandRow>,
        strays: Vec<String>,
        left: Left,
    }
    let all = |prefix: &str, tables: &[&str]| {
        let parts = tables.iter().map(|table| {
            format!("select '{prefix}_{table}' as place, msg_id, read_ct, spillway.command_of(message) as command from pgmq.{prefix}_{table}")
        });
        parts.collect::<Vec<_>>().join(" union all ")
    };
    let sql = format!(
        "with queued as materialized ({}), archived as materialized ({}), dead as materialized ({})
         select json_build_object(
           'commands', (select coalesce(json_agg(json_build_object(
               'id', k.id, 'key', k.idempotency_key, 'is_job', k.queue = '{QUEUE}', 'status', k.status,
               'replays', k.replays, 'attempts', k.attempts,
               'crashes', k.crashes, 'most_attempts', k.max_attempts,
               'finished_ms', extract(epoch from k.finished_at) * 1000,
               'queued', (select count(*) from queued m where m.command = k.id),
               'archived', (select count(*) from archived m where m.command = k.id),
               'dead', (select count(*) from dead m where m.command = k.id),
               'last_lease', (select m.msg_id || '/' || m.read_ct from archived m where m.command = k.id
                 order by m.msg_id desc limit 1),
               'buried', (select count(*) from spillway.dead_letter d where d.command_id = k.id))), '[]'::json)
             from spillway.command k),
           'strays', (select coalesce(json_agg(m.place || ' has message ' || m.msg_id || ' of no command'), '[]'::json)
             from (select * from queued union all select * from archived union all select * from dead) m
             where not exists (select from spillway.command k where k.id = m.command)),
           'left', json_build_object('holds', (select count(*) from spillway.limit_hold),
             'in_use', (select coalesce(sum(in_use), 0) from spillway.limit_key),
             'lines', (select count(*) from spillway.limit_wait)))::text",
        all("q", &[QUEUE, SYNCS]),
        all("a", &[QUEUE, SYNCS]),
        all("q", &[DEAD_LETTERS]),
    );
    let text = scene.database.texts(&sql).await.pop().context("the database answers one row")?;
    let rows: Rows = serde_json::from_str(&text).context("understanding the database")?;
    Ok(Seen {
        operations: scene.history.operations(),
        commands: rows.commands,
        strays: rows.strays,
        left: rows.left,
        calls: scene.effects.calls().iter().map(Call::of).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> Seen {
        let id = Uuid::now_v7();
        let key = "k".to_owned();
        Seen {
            operations: vec![Operation { key: key.clone(), command: Some(id), told: Told::Ok }],
            commands: vec![CommandRow {
                id,
                key: key.clone(),
                is_job: true,
                status: "succeeded".to_owned(),
                attempts: 1,
                most_attempts: 3,
                finished_ms: Some(100.0),
                archived: 1,
                last_lease: Some("7/1".to_owned()),
                ..CommandRow::default()
            }],
            calls: vec![Call { key, is_effect: true, at_ms: 50.0, lease: "7/1".to_owned() }],
            ..Seen::default()
        }
    }

    #[test]
    fn a_history_in_which_all_is_well_has_no_problem() {
        assert_eq!(problems(&well()), [""; 0]);
        assert_eq!(floor(&well().operations), Verdict { planned: 1, kept: 1 });
    }

    #[test]
    fn each_promise_that_is_broken_is_seen() {
        type Break = fn(&mut Seen);
        let broken: [(&str, Break); 12] = [
            ("was promised", |seen| seen.operations[0].command = Some(Uuid::nil())),
            ("never ended", |seen| seen.commands[0].finished_ms = None),
            ("1 messages in its queue and 1", |seen| seen.commands[0].queued = 1),
            ("0 messages in its queue and 0", |seen| seen.commands[0].archived = 0),
            ("0 messages and 0 rows", |seen| seen.commands[0].status = "dead_lettered".to_owned()),
            ("had 0 effects", |seen| seen.calls.clear()),
            ("had 2 effects", |seen| seen.calls.push(seen.calls[0].clone())),
            ("calls after its end", |seen| seen.calls[0].at_ms = 101.0),
            ("whose holder made no call", |seen| seen.commands[0].last_lease = Some("7/2".to_owned())),
            ("may have 3", |seen| seen.commands[0].attempts = 4),
            ("crashed 4 times", |seen| seen.commands[0].crashes = 4),
            ("there are left", |seen| seen.left.holds = 1),
        ];
        for (said, break_it) in broken {
            let mut seen = well();
            break_it(&mut seen);
            let problems = problems(&seen);
            assert!(problems.iter().any(|problem| problem.contains(said)), "{said}: {problems:?}");
        }
    }

    #[test]
    fn what_was_refused_and_then_promised_counts_as_kept() {
        let told = |told| Operation { key: "k".to_owned(), command: None, told };

        assert_eq!(floor(&[told(Told::Unknown), told(Told::Ok)]), Verdict { planned: 1, kept: 1 });
        assert_eq!(floor(&[told(Told::Refused)]), Verdict { planned: 1, kept: 0 });
    }
}
