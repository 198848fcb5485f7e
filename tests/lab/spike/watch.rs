//! Looks at queue and provider four times a second until all is over, and tells the person who waits.

use std::io::{IsTerminal, Write, stdout};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::history::Sample;
use super::provider::Provider;
use super::rows::Reader;
use super::tally::Tally;

const PAUSE: Duration = Duration::from_millis(250);

/// Where nobody sees a line change, a new one comes this often.
const LINE_PAUSE: Duration = Duration::from_secs(10);

/// What the watch needs to know.
pub(super) struct Watch {
    pub(super) tally: Arc<Tally>,
    pub(super) deliveries: usize,
    pub(super) epoch_ms: f64,
    /// No delivery is under way any more.
    pub(super) all_sent: CancellationToken,
    /// How long after that the last command may take to end.
    pub(super) wait: Duration,
    /// The newest sample, for those who need to know what is going on.
    pub(super) newest: tokio::sync::watch::Sender<Sample>,
}

/// What was seen.
pub(super) struct Seen {
    pub(super) samples: Vec<Sample>,
    /// False where the time to wait was over first.
    pub(super) drained: bool,
}

impl Watch {
    pub(super) async fn run(self, reader: &mut Reader, provider: &mut Provider) -> anyhow::Result<Seen> {
        let mut ticks = tokio::time::interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut samples = Vec::new();
        let mut line = Line::new();
        let mut deadline = None;
        let drained = loop {
            ticks.tick().await;
            // Before the sample: what is sent after this look is seen by the next one.
            let all_sent = self.all_sent.is_cancelled();
            let sample = reader.sample().await?;
            provider.look(self.epoch_ms).await?;
            line.show(&self.text(&sample, provider));
            self.newest.send_replace(sample.clone());
            let is_empty =
                sample.open + sample.claimable + sample.in_flight + sample.delayed + sample.parked == 0;
            samples.push(sample);
            if all_sent && is_empty {
                break true;
            }
            if all_sent && Instant::now() > *deadline.get_or_insert_with(|| Instant::now() + self.wait) {
                break false;
            }
        };
        line.end();
        Ok(Seen { samples, drained })
    }

    fn text(&self, sample: &Sample, provider: &Provider) -> String {
        let throttled = provider.calls().iter().filter(|call| call.throttled()).count();
        format!(
            "{}  queued {}  running {}  done {}  calls {}  throttled {throttled}",
            self.tally.line(self.deliveries),
            sample.claimable + sample.delayed + sample.parked,
            sample.in_flight,
            sample.ended,
            provider.calls().len()
        )
    }
}

/// One line that changes in a terminal; elsewhere a line now and then.
struct Line {
    is_terminal: bool,
    shown: Option<Instant>,
}

impl Line {
    fn new() -> Self {
        Self { is_terminal: stdout().is_terminal(), shown: None }
    }

    /// Whether anybody reads it does not matter to the drill.
    fn show(&mut self, text: &str) {
        if self.is_terminal {
            let _ = write!(stdout(), "\r\x1b[2K{text}").and_then(|()| stdout().flush());
        } else if self.shown.is_none_or(|shown| shown.elapsed() >= LINE_PAUSE) {
            let _ = writeln!(stdout(), "{text}");
            self.shown = Some(Instant::now());
        }
    }

    fn end(&self) {
        if self.is_terminal {
            let _ = writeln!(stdout());
        }
    }
}
