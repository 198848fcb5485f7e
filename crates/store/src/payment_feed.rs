//! A payment's facts, numbered in the order in which they were taken in, without gaps.

use std::collections::BTreeMap;

use crate::pool::Connection;
use uuid::Uuid;

/// Numbers facts: (tenant, payment, inbox row) each, in the order of the batch.
pub(crate) async fn append(
    connection: &mut Connection,
    facts: &[(&str, Uuid, Uuid)],
) -> Result<(), sqlx::Error> {
    if facts.is_empty() {
        return Ok(());
    }
    let mut by_payment: BTreeMap<(&str, Uuid), Vec<Uuid>> = BTreeMap::new();
    for (tenant, payment, row) in facts {
        by_payment.entry((tenant, *payment)).or_default().push(*row);
    }
    // Sorted keys: the rows are locked in one order by everybody.
    let rows: Vec<(String, Uuid, Uuid)> = by_payment
        .into_iter()
        .flat_map(|((tenant, payment), rows)| {
            rows.into_iter().map(move |row| (tenant.to_owned(), payment, row))
        })
        .collect();
    sqlx::query_file!(
        "sql/payment_feed/append.sql",
        &rows.iter().map(|(tenant, ..)| tenant.clone()).collect::<Vec<_>>(),
        &rows.iter().map(|(_, payment, _)| *payment).collect::<Vec<_>>(),
        &rows.iter().map(|(.., row)| *row).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await?;
    Ok(())
}
