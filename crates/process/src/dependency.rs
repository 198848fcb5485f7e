//! Required dependencies: waited for at start, watched ever after.

use std::error::Error as StdError;
use std::future::Future;
use std::time::{Duration, Instant};

use probes::{Check, Health};
use settings::Shown;
use store::Pool;
use telemetry::log::chain;
use tokio_util::sync::CancellationToken;

use crate::exit::Error;
use crate::start::Options;

/// The pause between two tries.
const RETRY: Duration = Duration::from_millis(500);

/// How often a dependency is asked for a sign of life.
const WATCH: Duration = Duration::from_secs(2);

/// Tries until `dependency` answers, not ready meanwhile, and gives up by name when the budget is used up.
/// Nothing where the process was told to stop first.
pub async fn require<E, F>(
    health: &Health,
    dependency: &'static str,
    budget: Duration,
    stop: &CancellationToken,
    mut attempt: impl FnMut() -> F,
) -> Result<Option<Check>, Error>
where
    E: StdError + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    let check = health.check(dependency);
    let deadline = Instant::now() + budget;
    loop {
        let Some(answer) = stop.run_until_cancelled(attempt()).await else { return Ok(None) };
        match answer {
            Ok(()) => {
                check.ready();
                return Ok(Some(check));
            }
            Err(error) if Instant::now() + RETRY >= deadline => {
                return Err(Error::Missing { dependency, source: Box::new(error) });
            }
            Err(error) => {
                tracing::warn!(dependency, error = chain(&error), "not there yet; trying again");
                check.failing(chain(&error));
                stop.run_until_cancelled(tokio::time::sleep(RETRY)).await;
            }
        }
    }
}

/// What `--check` does: the settings in force, masked, if Postgres answers with the right schema.
#[expect(clippy::print_stdout, reason = "the caller asked to see them")]
pub async fn check(common: &Options, database: &store::Options, shown: &Shown) -> Result<(), Error> {
    let pool = Pool::prepare(database, "check", 1)
        .map_err(|error| Error::failed("preparing a connection", error))?;
    let health = Health::new();
    let never = CancellationToken::new();
    require(&health, "Postgres", common.start_budget, &never, || store::contract_check::require(&pool))
        .await?;
    print!("{shown}");
    Ok(())
}

/// Keeps `check` true to what Postgres answers on a connection of its own, until `stop`.
pub async fn keep_checking(pool: Pool, check: Check, stop: CancellationToken) {
    let mut was_ready = true;
    while stop.run_until_cancelled(tokio::time::sleep(WATCH)).await.is_some() {
        match pool.ping().await {
            Ok(()) => {
                if !was_ready {
                    tracing::info!("Postgres answers again");
                }
                check.ready();
                was_ready = true;
            }
            Err(error) => {
                if was_ready {
                    tracing::error!(error = chain(&error), "Postgres does not answer");
                }
                check.failing(chain(&error));
                was_ready = false;
            }
        }
    }
}
