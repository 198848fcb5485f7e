//! What is known of payments: each one's facts in the order of its feed, and what they come to.
//!
//! `applied_seq` is raised under the payment's row lock, over numbers whose facts are there. A wake-up may therefore take
//! in what others announced, in any number of workers; whoever comes later finds nothing left.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use contract::killbill::Fact;
use policy::payment::fold;
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::{Connection, Pool};
use crate::queue::Fence;

/// An entry of a payment's feed that is to be read.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number.
    pub seq: i64,
    /// The webhook's JSON; absent where it is kept no longer, or where jsonb can't hold it.
    pub body: Option<String>,
    /// True where it is the one that made the command.
    pub is_own: bool,
}

/// What a payment's next entries say.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Which of our tenants at Kill Bill.
    pub tenant: String,
    /// Kill Bill's id of the payment.
    pub payment_id: Uuid,
    /// Each entry's number with its fact, or with the word for why it can't be read.
    pub facts: Vec<(i64, Result<Fact, &'static str>)>,
}

/// The entries that were not taken in yet, in order, at most `limit`; and beside them the command's own one where it
/// could not be read before.
pub async fn waiting(
    pool: &Pool,
    tenant: &str,
    payment_id: Uuid,
    command: Uuid,
    limit: u32,
) -> Result<Vec<Entry>, Error> {
    pool.bounded("reading a payment's feed", async {
        let mut session = pool.session().await?;
        let entries = sqlx::query_file_as!(
            Entry,
            "sql/payment/waiting.sql",
            tenant,
            payment_id,
            command,
            i64::from(limit)
        )
        .fetch_all(&mut *session)
        .await?;
        session.release().await?;
        Ok(entries)
    })
    .await
}

/// Takes facts in, in mid-run. False where the lease had gone to another worker: then nothing was changed.
pub async fn take_in(pool: &Pool, fence: Fence, facts: &Facts) -> Result<bool, Error> {
    pool.bounded("taking a payment's facts in", async {
        let mut session = pool.session().await?;
        let mut transaction = session.begin().await?;
        let Fence { queue, msg_id, read_ct } = fence;
        let ours = sqlx::query_file_scalar!("sql/queue/lock.sql", queue, msg_id, read_ct)
            .fetch_one(&mut *transaction)
            .await?;
        if ours {
            apply(&mut transaction, facts).await?;
        }
        transaction.commit().await?;
        session.release().await?;
        Ok(ours)
    })
    .await
}

/// Takes facts in, behind those that were taken in before.
pub(crate) async fn apply(connection: &mut Connection, facts: &Facts) -> Result<(), sqlx::Error> {
    let Facts { tenant, payment_id, facts } = facts;
    // One run of a payment at a time, from here to the commit.
    sqlx::query_file!("sql/payment/lock.sql", tenant, payment_id).execute(&mut *connection).await?;
    let read: Vec<Option<&Fact>> = facts.iter().map(|(_, fact)| fact.as_ref().ok()).collect();
    let refusal =
        |fact: &Result<Fact, &'static str>| fact.as_ref().err().map(|refusal| (*refusal).to_owned());
    let added = sqlx::query_file!(
        "sql/payment/insert_facts.sql",
        tenant,
        payment_id,
        &facts.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
        &read.iter().map(|fact| Some((*fact)?.transaction_id)).collect::<Vec<_>>() as &[Option<Uuid>],
        &read.iter().map(|fact| Some((*fact)?.transaction_type.to_string())).collect::<Vec<_>>()
            as &[Option<String>],
        &read.iter().map(|fact| Some((*fact)?.status.to_string())).collect::<Vec<_>>() as &[Option<String>],
        &read.iter().map(|fact| (*fact)?.amount).collect::<Vec<_>>() as &[Option<Decimal>],
        &read.iter().map(|fact| (*fact)?.currency.clone()).collect::<Vec<_>>() as &[Option<String>],
        &read.iter().map(|fact| (*fact)?.effective_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &facts.iter().map(|(_, fact)| refusal(fact)).collect::<Vec<_>>() as &[Option<String>],
    )
    .execute(&mut *connection)
    .await?;
    if added.rows_affected() == 0 {
        return Ok(());
    }
    let state = fold(&known(&mut *connection, tenant, *payment_id).await?);
    let conflict = state.conflict().map(<&str>::from);
    sqlx::query_file_scalar!("sql/payment/advance.sql", tenant, payment_id, <&str>::from(state), conflict)
        .fetch_one(connection)
        .await?;
    Ok(())
}

/// The facts of a payment that differ from one another.
async fn known(
    connection: &mut Connection,
    tenant: &str,
    payment_id: Uuid,
) -> Result<Vec<Fact>, sqlx::Error> {
    let rows = sqlx::query_file!("sql/payment/facts.sql", tenant, payment_id).fetch_all(connection).await?;
    rows.into_iter()
        .map(|row| {
            Ok(Fact {
                payment_id,
                transaction_id: row.transaction_id,
                transaction_type: parsed(&row.transaction_type)?,
                status: parsed(&row.status)?,
                amount: row.amount,
                currency: row.currency,
                effective_at: None,
            })
        })
        .collect()
}

/// A newer worker may know words that this one doesn't: then it must not fold without them.
fn parsed<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(word: &str) -> Result<T, sqlx::Error> {
    word.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// A payment whose facts contradict one another.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.payment, explained in its migration")]
pub struct ToReconcile {
    pub tenant: String,
    pub payment_id: Uuid,
    pub conflict: String,
    /// Facts that were taken in.
    pub facts: i64,
    pub changed_at: DateTime<Utc>,
}

/// Where a payment stands.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "the columns of spillway.payment and payment_fact, explained in their migration"
)]
pub struct Payment {
    /// Entries of its feed.
    pub last_seq: i64,
    pub applied_seq: i64,
    pub state: String,
    pub conflict: Option<String>,
    pub changed_at: Option<DateTime<Utc>>,
    /// In the order of the feed.
    pub timeline: Vec<Told>,
}

/// What one entry of a payment's feed said.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of spillway.payment_fact, explained in its migration")]
pub struct Told {
    pub seq: i64,
    pub transaction_id: Option<Uuid>,
    pub transaction_type: Option<String>,
    pub status: Option<String>,
    pub amount: Option<Decimal>,
    pub currency: Option<String>,
    pub effective_at: Option<DateTime<Utc>>,
    pub refusal: Option<String>,
    pub taken_in_at: DateTime<Utc>,
}

/// Payments that wait for a person; of which something was told last comes last.
pub async fn list_to_reconcile(pool: &Pool, limit: u32) -> Result<Vec<ToReconcile>, Error> {
    pool.bounded("listing payments to reconcile", async {
        let mut session = pool.session().await?;
        let payments =
            sqlx::query_file_as!(ToReconcile, "sql/payment/list_to_reconcile.sql", i64::from(limit))
                .fetch_all(&mut *session)
                .await?;
        session.release().await?;
        Ok(payments)
    })
    .await
}

/// Where a payment stands, where anything was ever told of it.
pub async fn get(pool: &Pool, tenant: &str, payment_id: Uuid) -> Result<Option<Payment>, Error> {
    pool.bounded("reading a payment", async {
        let mut session = pool.session().await?;
        let row = sqlx::query_file!("sql/payment/get.sql", tenant, payment_id)
            .fetch_optional(&mut *session)
            .await?;
        let timeline = sqlx::query_file_as!(Told, "sql/payment/timeline.sql", tenant, payment_id)
            .fetch_all(&mut *session)
            .await?;
        session.release().await?;
        Ok(row.map(|row| Payment {
            last_seq: row.last_seq,
            applied_seq: row.applied_seq,
            state: row.state,
            conflict: row.conflict,
            changed_at: row.changed_at,
            timeline,
        }))
    })
    .await
}

/// How many payments wait for a person because their facts contradict one another.
pub async fn to_reconcile(pool: &Pool) -> Result<i64, Error> {
    pool.bounded("counting payments to reconcile", async {
        let mut session = pool.session().await?;
        let payments =
            sqlx::query_file_scalar!("sql/payment/to_reconcile.sql").fetch_one(&mut *session).await?;
        session.release().await?;
        Ok(payments)
    })
    .await
}
