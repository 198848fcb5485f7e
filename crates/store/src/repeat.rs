//! Statistics of deliveries that started nothing of their own, under the row that stands for them. They are
//! written off the answer path and decide nothing; a crash loses the last second of them.

use chrono::{DateTime, Utc};
use serde_json::json;
use uuid::Uuid;

use crate::error::Error;
use crate::pool::Pool;

/// How a delivery was answered without starting anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// The same event again.
    Duplicate,
    /// Another event that a waiting command will see to.
    Coalesced,
}

/// One such delivery.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The row that stands for it.
    pub inbox_id: Uuid,
    /// How it was answered.
    pub kind: Kind,
    /// When it arrived, by the gateway's clock.
    pub at: DateTime<Utc>,
    /// The id that its sender was shown.
    pub correlation_id: String,
}

/// Adds deliveries to the statistics.
pub async fn note(pool: &Pool, repeats: &[Repeat]) -> Result<(), Error> {
    let latest: Vec<_> = repeats.iter().map(|repeat| {
        json!([{ "at": repeat.at, "kind": <&'static str>::from(repeat.kind), "correlation_id": repeat.correlation_id }])
    }).collect();
    pool.bounded("noting repeated deliveries", async {
        let mut session = pool.session().await?;
        sqlx::query_file!(
            "sql/repeat/note.sql",
            &repeats.iter().map(|repeat| repeat.inbox_id).collect::<Vec<_>>(),
            &repeats.iter().map(|repeat| repeat.kind == Kind::Coalesced).collect::<Vec<_>>(),
            &repeats.iter().map(|repeat| repeat.at).collect::<Vec<_>>(),
            &latest,
        )
        .execute(&mut *session)
        .await?;
        session.release().await?;
        Ok(())
    })
    .await
}
