//! Which charts the page of a drill has, and what they are made of.

use std::time::Duration;

use super::super::checks::FLOOR_MS;
use super::super::history::{Accepted, Call, Delivered, History, Sample};
use super::super::report::Latencies;
use super::chart::{Axis, Chart, Series, Shape, stacked};
use crate::figures::{count, milliseconds};

/// A chart with its words.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) note: String,
    pub(super) chart: Chart,
}

/// In the order of the page.
pub(super) fn all(history: &History) -> Vec<Figure> {
    vec![
        offered(history),
        queue(history),
        age(history),
        latency_curves(history),
        calls(history),
        quota(history),
        in_flight(history),
        status_reads(history),
    ]
}

/// Seconds of a drill, one place for each.
struct Seconds(usize);

impl Seconds {
    fn of(history: &History) -> Self {
        let last = history.samples.last().map_or(0.0, |sample| sample.at_ms);
        Self(second(last) + 1)
    }

    fn xs(&self) -> Vec<f64> {
        (0..self.0).map(count).collect()
    }

    fn axis(&self) -> Axis {
        Axis::exactly(count(self.0), "seconds since the first delivery")
    }

    /// How many of the moments lie in each second.
    fn count(&self, moments_ms: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut counts = vec![0.0; self.0];
        for at in moments_ms {
            if let Some(n) = counts.get_mut(second(at)) {
                *n += 1.0;
            }
        }
        counts
    }
}

fn second(ms: f64) -> usize {
    usize::try_from(Duration::from_secs_f64(ms.max(0.0) / 1000.0).as_secs()).unwrap_or(usize::MAX)
}

fn highest(series: &[(&str, Vec<f64>)]) -> f64 {
    let n = series.first().map_or(0, |(_, values)| values.len());
    (0..n).map(|i| series.iter().map(|(_, values)| values[i]).sum()).fold(0.0, f64::max)
}

fn stacked_by_second(history: &History, unit: &'static str, series: &[(&str, Vec<f64>)]) -> Chart {
    let seconds = Seconds::of(history);
    Chart {
        x: seconds.axis(),
        y: Axis::linear(highest(series), unit),
        series: stacked(&seconds.xs(), series),
        limit: None,
        marks: marks(history),
    }
}

fn marks(history: &History) -> Vec<(f64, String)> {
    history.kills.iter().map(|kill| (kill.at_ms / 1000.0, format!("kill -9 {}", kill.process))).collect()
}

fn offered(history: &History) -> Figure {
    let seconds = Seconds::of(history);
    let accepted: Vec<&Accepted> =
        history.delivered.iter().filter_map(|delivered| delivered.accepted.as_ref()).collect();
    let answered = |word: &'static str| {
        let answers = accepted.iter().filter(|accepted| accepted.outcome == word);
        (word, seconds.count(answers.map(|accepted| accepted.at_ms)))
    };
    let series = [answered("queued"), answered("coalesced"), answered("duplicate")];
    let again: u32 =
        history.delivered.iter().map(|Delivered { refused, unanswered, .. }| refused + unanswered).sum();
    Figure {
        title: "What was offered, and what it was answered",
        note: format!(
            "Deliveries by the second of their answer. {again} tries were refused or got no answer, and were made again."
        ),
        chart: stacked_by_second(history, "deliveries a second", &series),
    }
}

fn queue(history: &History) -> Figure {
    let xs: Vec<f64> = history.samples.iter().map(|sample| sample.at_ms / 1000.0).collect();
    let of = |count_of: fn(&Sample) -> usize| {
        history.samples.iter().map(|sample| count(count_of(sample))).collect()
    };
    let series: [(&str, Vec<f64>); 4] = [
        ("running", of(|sample| sample.in_flight)),
        ("claimable", of(|sample| sample.claimable)),
        ("told to wait: retries, and what the provider throttled", of(|sample| sample.delayed)),
        ("in line behind a run of the same account", of(|sample| sample.parked)),
    ];
    let y = Axis::linear(highest(&series), "messages");
    Figure {
        title: "Queue depth",
        note: "Messages that were not done yet. The provider's quota decides how fast this falls.".to_owned(),
        chart: Chart {
            x: Seconds::of(history).axis(),
            y,
            series: stacked(&xs, &series),
            limit: None,
            marks: marks(history),
        },
    }
}

fn age(history: &History) -> Figure {
    let points: Vec<(f64, f64)> = history
        .samples
        .iter()
        .map(|sample| (sample.at_ms / 1000.0, sample.claimable_age_ms.unwrap_or_default() / 1000.0))
        .collect();
    let most = points.iter().map(|(_, age)| *age).fold(0.0, f64::max);
    let series = vec![Series {
        label: "age of the oldest message that is due".to_owned(),
        colour: 0,
        shape: Shape::Line(points),
    }];
    Figure {
        title: "Claimable age",
        note: "How long the oldest message has been due without a worker taking it. What waits for the provider is not \
               due, and does not count."
            .to_owned(),
        chart: Chart {
            x: Seconds::of(history).axis(),
            y: Axis::linear(most, "seconds"),
            series,
            limit: None,
            marks: marks(history),
        },
    }
}

/// Where a share lies on an axis that gives the slowest the most room: each nine is as wide as the last.
fn nines(share: f64) -> f64 {
    -(1.0 - share).max(1e-4).log10()
}

fn latency_curves(history: &History) -> Figure {
    let Latencies { accept, start, complete } = Latencies::of(history);
    let named = [("accept", accept), ("start", start), ("complete", complete)];
    let curves: Vec<(&str, Vec<(f64, f64)>)> =
        named.into_iter().map(|(name, durations)| (name, curve(durations))).collect();
    let heights = || curves.iter().flat_map(|(_, points)| points.iter().map(|(_, ms)| *ms));
    let y = Axis::log(heights().fold(f64::INFINITY, f64::min), heights().fold(0.0, f64::max), "milliseconds");
    let ticks = [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.95, "95"), (0.99, "99"), (0.999, "99.9")];
    let x = Axis {
        from: 0.0,
        to: nines(0.9995),
        is_log: false,
        unit: "of 100, the fastest first",
        ticks: ticks.map(|(share, text)| (nines(share), text.to_owned())).into(),
    };
    let series = curves.into_iter().enumerate().map(|(colour, (name, points))| Series {
        label: name.to_owned(),
        colour,
        shape: Shape::Line(points),
    });
    Figure {
        title: "Latency",
        note: "Accept: from when a delivery was due to its 2xx. Start: from a command's acceptance to its first run. \
               Complete: from an event's acceptance to the end of its command, waits for the provider included."
            .to_owned(),
        chart: Chart { x, y, series: series.collect(), limit: None, marks: Vec::new() },
    }
}

/// Each duration, in milliseconds, at the share that is no slower.
fn curve(mut durations: Vec<Duration>) -> Vec<(f64, f64)> {
    durations.sort_unstable();
    let n = count(durations.len());
    let share = |i: usize| (count(i) + 0.5) / n;
    durations.iter().enumerate().map(|(i, took)| (nines(share(i)), milliseconds(*took))).collect()
}

fn calls(history: &History) -> Figure {
    let seconds = Seconds::of(history);
    let of = |is: fn(&Call) -> bool| {
        seconds.count(history.calls.iter().filter(|call| is(call)).map(|call| call.at_ms))
    };
    let series = [
        ("answered", of(Call::succeeded)),
        ("failed or lost", of(|call| !call.succeeded() && !call.throttled())),
        ("throttled", of(Call::throttled)),
    ];
    Figure {
        title: "Provider calls",
        note: "Calls by the second in which they came. Throttled ones were answered 429 at once.".to_owned(),
        chart: stacked_by_second(history, "calls a second", &series),
    }
}

fn quota(history: &History) -> Figure {
    let seconds = Seconds::of(history);
    let let_in = seconds.count(history.calls.iter().filter(|call| !call.throttled()).map(|call| call.at_ms));
    let period = usize::try_from(history.quota_period.as_secs()).unwrap_or(usize::MAX).max(1);
    let trailing = |i: usize| let_in[(i + 1).saturating_sub(period)..=i].iter().sum::<f64>();
    let points: Vec<(f64, f64)> = (0..let_in.len()).map(|i| (count(i), trailing(i))).collect();
    let cap = f64::from(history.plan.size.quota);
    let most = points.iter().map(|(_, n)| *n).fold(cap, f64::max);
    let series = vec![Series {
        label: format!("calls let in during the last {period} s"),
        colour: 0,
        shape: Shape::Line(points),
    }];
    Figure {
        title: "The provider's quota",
        note: "Calls let in against the quota. At the line, everything more is throttled until the oldest calls are \
               out of the window."
            .to_owned(),
        chart: Chart {
            x: seconds.axis(),
            y: Axis::linear(most, "calls"),
            series,
            limit: Some((cap, format!("quota: {cap}"))),
            marks: marks(history),
        },
    }
}

fn in_flight(history: &History) -> Figure {
    let seconds = Seconds::of(history);
    let mut peaks = vec![0.0; seconds.0];
    for call in &history.calls {
        if let Some(peak) = peaks.get_mut(second(call.at_ms)) {
            *peak = f64::max(*peak, f64::from(call.in_flight));
        }
    }
    let cap = f64::from(history.cap);
    let most = peaks.iter().copied().fold(cap, f64::max);
    let points = seconds.xs().into_iter().zip(peaks).collect();
    let series = vec![Series {
        label: "the most calls in flight at once in each second".to_owned(),
        colour: 0,
        shape: Shape::Line(points),
    }];
    Figure {
        title: "Provider calls in flight against the cap",
        note:
            "The cap is the number of runs that the workers have places for; a run makes one call at a time."
                .to_owned(),
        chart: Chart {
            x: seconds.axis(),
            y: Axis::linear(most, "calls"),
            series,
            limit: Some((cap, format!("cap: {cap}"))),
            marks: marks(history),
        },
    }
}

fn status_reads(history: &History) -> Figure {
    let points: Vec<(f64, f64)> = history
        .storm_reads
        .iter()
        .filter_map(|read| Some((read.due_ms / 1000.0, milliseconds(read.took?))))
        .collect();
    let most = points.iter().map(|(_, ms)| *ms).fold(FLOOR_MS, f64::max);
    let last = points.last().map_or(0.0, |(at, _)| *at);
    let series = vec![Series {
        label: "how long each of 20 reads a second took".to_owned(),
        colour: 0,
        shape: Shape::Line(points),
    }];
    let marks = marks(history).into_iter().filter(|(at, _)| *at <= last).collect();
    Figure {
        title: "Status reads while deliveries were made",
        note: "Each read counts from when it was due, whether or not earlier ones were answered. 99 of 100 have to \
               stay below the line."
            .to_owned(),
        chart: Chart {
            x: Axis::exactly(last, "seconds since the first delivery"),
            y: Axis::log(0.5, most, "milliseconds"),
            series,
            limit: Some((FLOOR_MS, format!("{FLOOR_MS} ms"))),
            marks,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::history::sample;
    use super::*;

    #[test]
    fn every_figure_of_a_history_has_something_to_show() {
        for Figure { title, chart, .. } in all(&sample::history()) {
            let shown = |series: &Series| match &series.shape {
                Shape::Line(points) => !points.is_empty(),
                Shape::Area(points) => !points.is_empty(),
            };
            assert!(!chart.series.is_empty() && chart.series.iter().all(shown), "{title}");
            assert!(!chart.render(title).contains("NaN"), "{title}");
        }
    }

    #[test]
    fn a_history_in_which_nothing_happened_can_be_drawn() {
        let mut history = sample::history();
        (history.samples, history.calls, history.delivered) = (Vec::new(), Vec::new(), Vec::new());
        history.storm_reads = Vec::new();
        (history.rows.commands, history.rows.inbox) = (Vec::new(), Vec::new());

        for Figure { title, chart, .. } in all(&history) {
            let svg = chart.render(title);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{title}: {svg}");
        }
    }

    #[test]
    fn moments_are_counted_in_their_seconds() {
        let seconds = Seconds(3);

        assert_eq!(seconds.count([-5.0, 0.0, 999.0, 2000.0, 3000.0].into_iter()), [3.0, 0.0, 1.0]);
    }
}
