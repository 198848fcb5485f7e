//! Runs faults and controls, several at a time where they don't strike what others stand on.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};

use super::catalogue::{self, Chosen};
use super::checker::{self, Verdict};
use super::controls::Control;
use super::faults::{Fault, Fired};
use super::report::{ControlReport, FaultReport, Report};
use super::scene::{Lack, Scene};

/// Scenes at a time.
const TOGETHER: usize = 4;

/// The longest that a scene may take, healing and judging included.
const LIMIT: Duration = Duration::from_mins(4);

/// What became of one fault.
struct Round {
    fired: Fired,
    verdict: anyhow::Result<Verdict>,
    seconds: f64,
    /// Points and guards that processes said they acted at.
    acted: String,
    logs: String,
}

/// All that was chosen, in the order of the catalogue.
pub(super) async fn all(chosen: Chosen, seed: u64) -> anyhow::Result<Report> {
    let (alone, together): (Vec<_>, Vec<_>) = chosen.faults.into_iter().partition(|fault| fault.is_alone);
    let mut rounds: Vec<_> = stream::iter(together)
        .map(|fault| async move { (fault, round(fault, seed, Lack::default()).await) })
        .buffer_unordered(TOGETHER)
        .inspect(|(fault, round)| tell(fault.id, round))
        .collect()
        .await;
    let mut controls: Vec<_> = stream::iter(chosen.controls)
        .map(|control| control_round(control, seed))
        .buffer_unordered(TOGETHER)
        .inspect_ok(|report| say(&format!("without {}: {}", report.name, report.detail)))
        .try_collect()
        .await?;
    for fault in alone {
        let round = round(fault, seed, Lack::default()).await;
        tell(fault.id, &round);
        rounds.push((fault, round));
    }
    rounds.sort_by_key(|(fault, _)| fault.id);
    controls.sort_by_key(|report| report.name);
    let verdicts = rounds.iter().filter_map(|(_, round)| round.verdict.as_ref().ok());
    let sum = verdicts.fold(Verdict { planned: 0, kept: 0 }, |sum, verdict| Verdict {
        planned: sum.planned + verdict.planned,
        kept: sum.kept + verdict.kept,
    });
    Ok(Report {
        seed,
        faults: rounds.into_iter().map(|(fault, round)| fault_report(fault, &round)).collect(),
        controls,
        operations_ok_ratio: sum.ratio(),
    })
}

/// One scene under random faults.
pub(super) async fn soak(seed: u64, time: Duration) -> Report {
    let began = Instant::now();
    let judged = async {
        let scene = Scene::new(seed, Lack::default()).await?;
        let soaked = AssertUnwindSafe(super::soak::soak(&scene, time)).catch_unwind().await;
        let soaked = soaked.unwrap_or_else(|panic| Err(anyhow!("panicked: {}", said(panic.as_ref()))));
        let judged = async {
            let (fired, struck) = soaked?;
            ensure!(fired.0, "no fault happened");
            Ok((checker::judge(&scene).await?, struck))
        };
        judged.await.inspect_err(|_| say(&scene.logs()))
    };
    let judged: anyhow::Result<_> = judged.await;
    let (detail, ratio) = match &judged {
        Ok((verdict, struck)) => {
            let strikes = struck.iter().map(|(name, times)| format!("{name} {times} ×")).collect::<Vec<_>>();
            (format!("{} operations; {}", verdict.planned, strikes.join(", ")), verdict.ratio())
        }
        Err(error) => (format!("{error:#}"), 0.0),
    };
    let fault = FaultReport {
        id: "soak",
        name: "random faults under load",
        fired: true,
        passed: judged.is_ok(),
        seconds: began.elapsed().as_secs_f64().round(),
        detail,
    };
    Report { seed, faults: vec![fault], controls: Vec::new(), operations_ok_ratio: ratio }
}

/// The fault, the healing, and the judgement. A scene that panics or takes for ever has failed like any other.
async fn round(fault: &Fault, seed: u64, lacks: Lack) -> Round {
    let began = Instant::now();
    let scene = match Scene::new(seed, lacks).await {
        Ok(scene) => scene,
        Err(error) => {
            let (acted, logs) = (String::new(), String::new());
            return Round { fired: Fired(false), verdict: Err(error), seconds: 0.0, acted, logs };
        }
    };
    let struck = AssertUnwindSafe(async {
        let fired = (fault.run)(&scene).await?;
        Ok((fired, checker::judge(&scene).await))
    });
    let limited = tokio::time::timeout(LIMIT, struck.catch_unwind()).await;
    let (fired, verdict) = match limited {
        Ok(Ok(Ok((fired, verdict)))) => (fired, verdict),
        Ok(Ok(Err(error))) => (Fired(true), Err(error)),
        Ok(Err(panic)) => (Fired(true), Err(anyhow!("panicked: {}", said(panic.as_ref())))),
        Err(_) => (Fired(true), Err(anyhow!("not over within {LIMIT:?}"))),
    };
    let verdict = verdict.and_then(|verdict| {
        ensure!(fired.0, "the fault never happened");
        Ok(verdict)
    });
    let acted = scene.fired();
    let logs = if verdict.is_err() { scene.logs() } else { String::new() };
    // Its database waits for logins that other scenes are in the middle of: this thread has to go on with them.
    let _ = tokio::task::spawn_blocking(move || drop(scene)).await;
    Round { fired, verdict, seconds: began.elapsed().as_secs_f64(), acted, logs }
}

/// What became of a fault without the guard that should have held.
async fn control_round(control: &Control, seed: u64) -> anyhow::Result<ControlReport> {
    let fault = catalogue::fault(control.fault)?;
    let round = round(fault, seed, control.lacks).await;
    let detail = match &round.verdict {
        Ok(_) => "all held without it".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    let is_missed = control.lacks.guard.is_none_or(|guard| round.acted.contains(guard));
    let detail = if is_missed { detail } else { format!("no process was without it; {detail}") };
    let caught = is_missed && round.verdict.is_err() && detail.contains(control.breaks);
    Ok(ControlReport { name: control.name, caught, detail })
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn fault_report(fault: &Fault, round: &Round) -> FaultReport {
    FaultReport {
        id: fault.id,
        name: fault.name,
        fired: round.fired.0,
        passed: round.verdict.is_ok(),
        seconds: (round.seconds * 10.0).round() / 10.0,
        detail: round.verdict.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default(),
    }
}

/// Progress, and the logs where they are needed.
fn tell(id: &str, round: &Round) {
    match &round.verdict {
        Ok(_) => say(&format!("{id} held after {:.1} s", round.seconds)),
        Err(error) => say(&format!("{id}: {error:#}\n{}", round.logs)),
    }
}

#[expect(clippy::print_stderr, reason = "progress is for whoever watches")]
fn say(text: &str) {
    eprintln!("{text}");
}
