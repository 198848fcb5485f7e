//! `spillway migrate`.

use contract::env::keys;
use process::Error;
use serde_json::json;

use crate::show;

pub(crate) async fn run(as_json: bool) -> Result<(), Error> {
    let (_, options, _) = process::load(|env| store::Options::read_direct(env, &keys::DATABASE_URL))?;
    let report = store::migrate::run(&options)
        .await
        .map_err(|error| Error::failed("migrating the database", error))?;
    if as_json {
        show::json(&json!({
            "installed_pgmq": report.installed_pgmq,
            "adopted": report.adopted,
            "applied": report.applied,
        }));
        return Ok(());
    }
    if report.installed_pgmq {
        show::line("installed pgmq's SQL (the server offers no extension)");
    }
    if !report.adopted.is_empty() {
        show::line(&format!("adopted {} migrations that the Supabase CLI had applied", report.adopted.len()));
    }
    match report.applied.len() {
        0 => show::line("the schema is up to date"),
        n => show::line(&format!("applied {n} migrations")),
    }
    Ok(())
}
