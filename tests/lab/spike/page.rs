//! A page that explains a drill to somebody who was not there: one file, without scripts and without anything from
//! elsewhere.

mod chart;
mod figures;

use std::fmt::Write;

use super::history::History;
use super::report::{Curve, Scenario};
use super::runs::Runs;
use figures::Figure;

const STYLE: &str = include_str!("page/style.css");

/// The whole page; `about` says what the drill ran on.
pub(super) fn render(history: &History, runs: &Runs<'_>, scenario: &Scenario, about: &str) -> String {
    let verdict = if scenario.passed { "passed" } else { "failed" };
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{name}: {verdict}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{name} <b class=\"{verdict}\">{verdict}</b></h1>\n\
         <p class=\"about\">{}</p>\n{}\n{}\n<h2>What had to hold</h2>\n{}\n",
        escape(about),
        story(history),
        tiles(history, runs, scenario),
        checks(scenario),
        name = scenario.name,
    );
    // A String takes any text.
    for Figure { title, note, chart } in figures::all(history) {
        let _ = writeln!(
            page,
            "<h2>{0}</h2>\n<figure>{1}<figcaption>{2}</figcaption></figure>",
            escape(title),
            chart.render(title),
            escape(&note)
        );
    }
    page + "<h2>How long things took</h2>\n" + &latencies(scenario) + "\n</body></html>\n"
}

/// What was done to the platform.
fn story(history: &History) -> String {
    let size = history.plan.size;
    let mut story = format!(
        "<p>{} webhooks were sent to the platform within {:.0} seconds. They tell {} events about {} accounts; all \
         others repeat one of those, some at the same moment at another gateway. Each event asks for a sync of its \
         account, which makes calls to a provider. The provider let in {} calls in any {} seconds and answered 429 to \
         more, failed 5 in 100 of the others with 500 or 503, and closed the connection instead of answering 2 in \
         100.</p>",
        size.deliveries,
        size.over.as_secs_f64(),
        size.events,
        size.accounts,
        size.quota,
        history.quota_period.as_secs(),
    );
    if !history.kills.is_empty() {
        let killed: Vec<String> = history
            .kills
            .iter()
            .map(|kill| format!("{} after {:.1} s", kill.process, kill.at_ms / 1000.0))
            .collect();
        let _ = write!(
            story,
            "<p>In the middle of it processes were killed (<code>kill -9</code>) and started again: {}.</p>",
            escape(&killed.join(", "))
        );
    }
    story
}

fn tiles(history: &History, runs: &Runs<'_>, scenario: &Scenario) -> String {
    let whole = runs.all.iter().filter(|run| run.is_complete()).count();
    let throttled = scenario.providers.iter().map(|provider| provider.throttled).sum::<usize>();
    let tiles = [
        (scenario.offered, "deliveries offered".to_owned()),
        (scenario.duplicate, "answered “duplicate”: on record, nothing more to do".to_owned()),
        (scenario.coalesced, "answered “coalesced”: part of a sync that waited already".to_owned()),
        (scenario.accepted, "answered “queued”: a command of their own".to_owned()),
        (scenario.shed, "given up by their senders".to_owned()),
        (history.rows.commands.len(), format!("commands, of which {} succeeded", scenario.succeeded)),
        (runs.all.len(), format!("runs, of which {whole} were whole")),
        (history.calls.len(), format!("provider calls, of which {throttled} were throttled")),
        (scenario.lost, "events lost".to_owned()),
        (scenario.doubled, "events done twice".to_owned()),
    ];
    let tiles = tiles.map(|(n, what)| format!("<div><b>{n}</b><span>{what}</span></div>"));
    format!("<div class=\"tiles\">{}</div>", tiles.concat())
}

fn checks(scenario: &Scenario) -> String {
    let rows = scenario.checks.iter().map(|check| {
        let (class, word) = if check.held { ("passed", "held") } else { ("failed", "broken") };
        format!(
            "<tr><td><code>{}</code></td><td class=\"{class}\">{word}</td><td>{}</td></tr>",
            check.name,
            escape(&check.detail)
        )
    });
    format!(
        "<table><tr><th>check</th><th></th><th>what was seen</th></tr>{}</table>",
        rows.collect::<String>()
    )
}

fn latencies(scenario: &Scenario) -> String {
    let rows = [
        ("a delivery, from when it was due to its 2xx, retries of its sender included", &scenario.accept_ms),
        ("a command, from its acceptance to the start of its first run", &scenario.start_ms),
        ("an event, from its acceptance to the end of its command", &scenario.complete_ms),
    ];
    let rows = rows.into_iter().filter_map(|(what, curve)| {
        let Curve { p50, p95, p99 } = (*curve)?;
        let cells = [p50, p95, p99].map(|ms| format!("<td class=\"n\">{ms:.1}</td>"));
        Some(format!("<tr><td>{what}</td>{}</tr>", cells.concat()))
    });
    format!(
        "<table><tr><th>in milliseconds</th><th class=\"n\">p50</th><th class=\"n\">p95</th><th class=\"n\">p99</th></tr>{}</table>",
        rows.collect::<String>()
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::checks::{self, Ends};
    use super::super::history::sample;
    use super::*;

    #[test]
    fn the_page_stands_alone_and_tells_checks_and_what_it_ran_on() {
        let history = sample::history();
        let (runs, ends) = (Runs::of(&history.calls), Ends::of(&history));
        let scenario = Scenario::of("a-drill", &history, &ends, checks::all(&history, &runs, &ends));

        let page = render(&history, &runs, &scenario, "commit <abc>");

        assert!(page.contains("commit &lt;abc&gt;") && page.contains("<title>a-drill: passed</title>"));
        for check in &scenario.checks {
            assert!(page.contains(check.name) && page.contains(&escape(&check.detail)), "{check:?}");
        }
        for foreign in ["http://", "https://", "<script", "<link", "@import", "url("] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }
}
