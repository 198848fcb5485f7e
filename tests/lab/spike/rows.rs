//! Reads what the platform has committed, past all of its code.

use anyhow::Context;
use contract::Workload;
use serde::de::DeserializeOwned;
use testkit::Session;

use super::history::{Rows, Sample};
use crate::connection::Settings;

const QUEUE: &str = Workload::SnaptradeAccountSync.queue().name;

/// A connection of its own to the database of a drill.
pub(super) struct Reader {
    server: Session,
    epoch_ms: f64,
}

impl Reader {
    /// Tells times from `epoch_ms` on.
    pub(super) async fn connect(settings: &Settings, epoch_ms: f64) -> anyhow::Result<Self> {
        let url = settings.get("SANMOPIA_DATABASE_URL")?;
        let server = Session::connect(url).await.context("connecting to the database")?;
        Ok(Self { server, epoch_ms })
    }

    /// The queue as it is now.
    pub(super) async fn sample(&mut self) -> anyhow::Result<Sample> {
        let (now, began) = (self.ms("clock_timestamp()"), self.epoch_ms);
        let sql = format!(
            "with message as (
               select q.vt, q.vt <= statement_timestamp() as is_due, q.vt = spillway.parked_until() as is_parked,
                 exists (select from spillway.limit_hold h where h.queue = '{QUEUE}' and h.msg_id = q.msg_id) as is_held
               from pgmq.q_{QUEUE} q
             )
             select json_build_object('at_ms', {now},
               'claimable', count(*) filter (where is_due),
               'in_flight', count(*) filter (where not is_due and not is_parked and is_held),
               'delayed', count(*) filter (where not is_due and not is_parked and not is_held),
               'parked', count(*) filter (where is_parked),
               'claimable_age_ms', extract(epoch from statement_timestamp() - min(vt) filter (where is_due)) * 1000,
               'open', (select count(*) from spillway.command where finished_at is null),
               'ended', (select count(*) from spillway.command
                 where finished_at is not null and accepted_at >= to_timestamp({began} / 1000.0)),
               'over_cap', (select count(*) from spillway.limit_key where in_use > least(cap, coalesce(limit_now, cap)))
             )::text from message"
        );
        self.json(&sql).await.context("looking at the queue")
    }

    /// Everything that a check may ask for.
    pub(super) async fn all(&mut self) -> anyhow::Result<Rows> {
        let [accepted, started, finished] =
            ["accepted_at", "started_at", "finished_at"].map(|column| self.ms(column));
        let list = |fields: &str, from: &str| {
            format!("(select coalesce(json_agg(json_build_object({fields})), '[]'::json) from {from})")
        };
        let inbox = list(
            &format!("'identity', identity, 'command', command_id, 'accepted_ms', {accepted}"),
            "spillway.webhook_inbox where state = 'accepted'",
        );
        let commands = list(
            &format!(
                "'id', k.id, 'account', k.payload ->> 'account_id',
                 'status', k.status, 'accepted_ms', {accepted}, 'started_ms', {started}, 'finished_ms', {finished},
                 'request_ids', k.provider_request_ids,
                 'queued', (select count(*) from queued m where m.command = k.id),
                 'archived', (select count(*) from archived m where m.command = k.id),
                 'buried', (select count(*) from spillway.dead_letter d where d.command_id = k.id)"
            ),
            "spillway.command k",
        );
        let syncs = list(
            "'work', work_type, 'account', account_id, 'requested', requested, 'ok_through', ok_through,
             'waiting', waiting_command",
            "spillway.account_sync",
        );
        let sql = format!(
            "with queued as materialized (select spillway.command_of(message) as command from pgmq.q_{QUEUE}),
               archived as materialized (select spillway.command_of(message) as command from pgmq.a_{QUEUE})
             select json_build_object('inbox', {inbox}, 'commands', {commands}, 'syncs', {syncs},
               'left', json_build_object(
                 'messages', (select count(*) from queued),
                 'holds', (select count(*) from spillway.limit_hold),
                 'in_use', (select coalesce(sum(in_use), 0) from spillway.limit_key),
                 'lines', (select count(*) from spillway.limit_wait)))::text"
        );
        self.json(&sql).await.context("reading what was committed")
    }

    fn ms(&self, time: &str) -> String {
        format!("(extract(epoch from {time}) * 1000 - {})", self.epoch_ms)
    }

    async fn json<T: DeserializeOwned>(&mut self, sql: &str) -> anyhow::Result<T> {
        let text = self.server.text(sql).await.context("asking the database")?;
        serde_json::from_str(&text).context("understanding the database")
    }
}
