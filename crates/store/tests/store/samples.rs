//! Deliveries and commands as the gateway makes them.

use bytes::Bytes;
use contract::killbill::PaymentFacts;
use contract::snaptrade::{AccountSync, WorkType};
use contract::{Actor, Job, NewCommand, Origin, QueueSpec};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, raw_sql};
use store::command::Enqueued;
use store::inbox::{Delivery, Fate, Outcome, Receipt};
use store::intake::{Item, Taken, take_in};
use store::queue::{Ask, Claimed};
use store::{Error, Pool};
use testkit::Database;
use uuid::Uuid;

pub(crate) const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The queue of [`command`]'s commands.
pub(crate) const QUEUE: &str = "sanmopia_snaptrade_account_sync";

/// The queue of [`delivery`]'s commands.
pub(crate) const FACTS: &str = "sanmopia_payment_webhook_processing";

fn command_of<J: Job>(job: &J, key: &str) -> NewCommand {
    let origin = Origin {
        idempotency_key: key.to_owned(),
        actor: Actor::provider("test"),
        traceparent: TRACEPARENT.to_owned(),
        tracestate: String::new(),
        correlation_id: "correlation-1".to_owned(),
    };
    NewCommand::new(Uuid::now_v7(), job, origin)
}

/// A command with this idempotency key that syncs an account.
pub(crate) fn command(key: &str, account_id: Uuid) -> NewCommand {
    command_of(&AccountSync { work_type: WorkType::Holdings, account_id }, key)
}

/// A command with this idempotency key that takes a payment's facts in.
pub(crate) fn facts(key: &str) -> NewCommand {
    command_of(&PaymentFacts { tenant: "main".to_owned(), payment_id: Uuid::from_u128(1) }, key)
}

/// A delivery with this identity that starts a command.
pub(crate) fn delivery(identity: &str) -> Delivery {
    fact(identity, "main", Uuid::from_u128(1))
}

/// A delivery with this identity that is a fact about a payment.
pub(crate) fn fact(identity: &str, tenant: &str, payment_id: Uuid) -> Delivery {
    let job = PaymentFacts { tenant: tenant.to_owned(), payment_id };
    let command = Box::new(command_of(&job, identity));
    Delivery {
        id: Uuid::now_v7(),
        source: "killbill",
        tenant: tenant.to_owned(),
        identity: identity.to_owned(),
        event_type: Some("PAYMENT_SUCCESS".to_owned()),
        body: Bytes::from_static(b"{\"a\":1.10}"),
        sha256: [7; 32],
        is_clean_json: true,
        fate: Fate::Fact { payment_id, command },
        traceparent: TRACEPARENT.to_owned(),
        correlation_id: "correlation-1".to_owned(),
    }
}

/// A delivery with this identity that asks for a sync of an account.
pub(crate) fn sync(identity: &str, account_id: Uuid) -> Delivery {
    let command = Box::new(command(identity, account_id));
    let fate = Fate::Sync { work_type: WorkType::Holdings, account_id, connection_id: None, command };
    Delivery { source: "snaptrade", tenant: String::new(), fate, ..delivery(identity) }
}

/// Takes deliveries in, in one batch.
pub(crate) async fn accept(pool: &Pool, deliveries: &[Delivery]) -> Result<Vec<Receipt>, Error> {
    let items = deliveries.iter().map(|delivery| Item::Webhook(Box::new(delivery.clone()))).collect();
    let taken = take_in(pool, &[], |_| items).await?;
    let receipt = |taken| match taken {
        Taken::Webhook(receipt) => receipt,
        Taken::Command(enqueued) => panic!("a webhook was answered {enqueued:?}"),
    };
    Ok(taken.into_iter().map(receipt).collect())
}

/// Takes commands in, in one batch.
pub(crate) async fn enqueue(pool: &Pool, commands: &[NewCommand]) -> Result<Vec<Enqueued>, Error> {
    let items = commands.iter().map(|command| Item::Command(Box::new(command.clone()))).collect();
    let taken = take_in(pool, &[], |_| items).await?;
    let enqueued = |taken| match taken {
        Taken::Command(enqueued) => enqueued,
        Taken::Webhook(receipt) => panic!("a command was answered {receipt:?}"),
    };
    Ok(taken.into_iter().map(enqueued).collect())
}

/// What became of each.
pub(crate) fn outcomes(receipts: &[Receipt]) -> Vec<Outcome> {
    receipts.iter().map(|receipt| receipt.outcome).collect()
}

/// An account that may be synced.
pub(crate) async fn account(database: &Database) -> Uuid {
    let account = Uuid::now_v7();
    let sql = format!(
        "insert into spillway.snaptrade_user values ('u', '') on conflict do nothing;
         insert into spillway.snaptrade_account (account_id, user_id) values ('{account}', 'u')"
    );
    database.execute(&sql).await;
    account
}

/// Claims up to so many messages.
pub(crate) async fn claim(pool: &Pool, queue: &QueueSpec, limit: u32) -> Result<Vec<Claimed>, Error> {
    store::queue::claim(pool, queue, &Ask::up_to(limit)).await.map(|claims| claims.messages)
}

/// A connection with the rights of one role and no others.
pub(crate) async fn connect_as(database: &Database, role: &str) -> PgConnection {
    PgConnection::connect(&database.url_as(role)).await.unwrap()
}

/// What Postgres says to a statement that it refuses, behind its SQLSTATE.
pub(crate) async fn refusal(connection: &mut PgConnection, sql: &str) -> String {
    match raw_sql(sql).execute(connection).await {
        Err(sqlx::Error::Database(error)) => {
            format!("{} {}", error.code().unwrap_or_default(), error.message())
        }
        other => panic!("{sql}: {other:?}"),
    }
}
