//! `spillway payments`: what is known of payments by what Kill Bill says, and which ones need a person.

use clap::Subcommand;
use process::Error;
use serde_json::{Value, json};
use store::payment::{Payment, ToReconcile, Told, get, list_to_reconcile};
use uuid::Uuid;

use crate::{database, show};

/// Shown at most.
const MOST: u32 = 1000;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Show where one payment stands, and every fact about it in the order in which it was taken in.
    Show {
        /// Our tenant at Kill Bill, as in the callback's address.
        tenant: String,
        /// Kill Bill's id of the payment.
        payment_id: Uuid,
    },
}

pub(crate) async fn run(args: &Args, as_json: bool) -> Result<(), Error> {
    match &args.action {
        None => show_waiting(as_json).await,
        Some(Action::Show { tenant, payment_id }) => show_one(tenant, *payment_id, as_json).await,
    }
}

async fn show_waiting(as_json: bool) -> Result<(), Error> {
    let payments = list_to_reconcile(&database()?, MOST)
        .await
        .map_err(|error| Error::failed("reading payments to reconcile", error))?;
    if as_json {
        show::json(&payments.iter().map(object).collect::<Vec<_>>());
    } else if payments.is_empty() {
        show::line("no payment waits for a person");
    } else {
        show::table(
            &["tenant", "payment", "facts differ in", "facts>", "changed>"],
            payments.iter().map(row).collect(),
        );
    }
    Ok(())
}

async fn show_one(tenant: &str, payment_id: Uuid, as_json: bool) -> Result<(), Error> {
    let payment = get(&database()?, tenant, payment_id)
        .await
        .map_err(|error| Error::failed(format!("reading payment {payment_id}"), error))?
        .ok_or_else(|| {
            Error::failed("reading payments", format!("nothing was told of payment {payment_id} of {tenant}"))
        })?;
    if as_json {
        show::json(&whole(&payment));
        return Ok(());
    }
    show::facts(&[
        ("state", Some(payment.state.clone())),
        ("facts differ in", payment.conflict.clone()),
        ("taken in", Some(format!("{} of {} facts", payment.applied_seq, payment.last_seq))),
        ("changed", payment.changed_at.map(|at| format!("{} ago", show::ago(at)))),
    ]);
    show::line("");
    show::table(
        &["fact>", "transaction", "type", "status", "amount>", "currency", "since", "taken in>"],
        payment.timeline.iter().map(told).collect(),
    );
    Ok(())
}

fn row(payment: &ToReconcile) -> Vec<String> {
    vec![
        payment.tenant.clone(),
        payment.payment_id.to_string(),
        payment.conflict.clone(),
        payment.facts.to_string(),
        format!("{} ago", show::ago(payment.changed_at)),
    ]
}

fn told(told: &Told) -> Vec<String> {
    let text = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let status =
        told.status.clone().or_else(|| told.refusal.as_ref().map(|why| format!("not readable: {why}")));
    vec![
        told.seq.to_string(),
        text(told.transaction_id.map(|id| id.to_string())),
        text(told.transaction_type.clone()),
        text(status),
        text(told.amount.map(|amount| amount.to_string())),
        text(told.currency.clone()),
        text(told.effective_at.map(|at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string())),
        format!("{} ago", show::ago(told.taken_in_at)),
    ]
}

fn object(payment: &ToReconcile) -> Value {
    json!({
        "tenant": payment.tenant,
        "payment_id": payment.payment_id,
        "conflict": payment.conflict,
        "facts": payment.facts,
        "changed_at": payment.changed_at,
    })
}

fn whole(payment: &Payment) -> Value {
    json!({
        "state": payment.state,
        "conflict": payment.conflict,
        "applied_seq": payment.applied_seq,
        "last_seq": payment.last_seq,
        "changed_at": payment.changed_at,
        "facts": payment.timeline.iter().map(fact).collect::<Vec<_>>(),
    })
}

fn fact(told: &Told) -> Value {
    json!({
        "seq": told.seq,
        "transaction_id": told.transaction_id,
        "transaction_type": told.transaction_type,
        "status": told.status,
        // Digit for digit, which a JSON number would not promise.
        "amount": told.amount.map(|amount| amount.to_string()),
        "currency": told.currency,
        "effective_at": told.effective_at,
        "refusal": told.refusal,
        "taken_in_at": told.taken_in_at,
    })
}
