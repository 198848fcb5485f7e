//! Charts as inline SVG, coloured by the page's style sheet. Only what the page of a drill needs.

use std::fmt::Write;

use super::escape;
use crate::figures::count;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 34.0;

/// About as many ticks as an axis gets.
const TICKS: f64 = 5.0;

/// A range that is mapped onto one side of a chart.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) is_log: bool,
    pub(super) unit: &'static str,
    /// Where ticks are, with their texts.
    pub(super) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From nothing to at least `most`, with round ticks.
    pub(super) fn linear(most: f64, unit: &'static str) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round_step(most / TICKS);
        let to = (most / step).ceil() * step;
        let ticks = multiples(step, to).map(|at| (at, number(at))).collect();
        Self { from: 0.0, to, is_log: false, unit, ticks }
    }

    /// From nothing to exactly `most`, with round ticks.
    pub(super) fn exactly(most: f64, unit: &'static str) -> Self {
        let mut axis = Self::linear(most, unit);
        axis.to = if most > 0.0 { most } else { axis.to };
        axis.ticks.retain(|(at, _)| *at <= axis.to);
        axis
    }

    /// Powers of ten around what is shown.
    pub(super) fn log(least: f64, most: f64, unit: &'static str) -> Self {
        let low = least.max(0.01).log10().floor();
        let high = most.max(0.1).log10().ceil().max(low + 1.0);
        let ticks =
            multiples(1.0, high - low).map(|n| 10f64.powf(low + n)).map(|at| (at, number(at))).collect();
        Self { from: 10f64.powf(low), to: 10f64.powf(high), is_log: true, unit, ticks }
    }

    /// From 0 to 1 along the axis.
    fn place(&self, value: f64) -> f64 {
        let place = if self.is_log {
            (value.max(self.from).log10() - self.from.log10()) / (self.to.log10() - self.from.log10())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        place.clamp(0.0, 1.0)
    }
}

fn multiples(step: f64, to: f64) -> impl Iterator<Item = f64> {
    (0..=1000u32).map(move |n| f64::from(n) * step).take_while(move |at| *at <= to * (1.0 + 1e-9))
}

/// 1, 2 or 5 times a power of ten, and no less than `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

fn number(value: f64) -> String {
    if value >= 1.0 || value == 0.0 {
        return format!("{value:.0}");
    }
    format!("{value:.2}").trim_end_matches('0').to_owned()
}

/// What is drawn, in the colour with that number.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) label: String,
    pub(super) colour: usize,
    pub(super) shape: Shape,
}

#[derive(Clone, Debug)]
pub(super) enum Shape {
    Line(Vec<(f64, f64)>),
    /// Between two heights at each place.
    Area(Vec<(f64, f64, f64)>),
}

/// Heights on top of one another; each series has its values at `xs`.
pub(super) fn stacked(xs: &[f64], series: &[(&str, Vec<f64>)]) -> Vec<Series> {
    let mut base = vec![0.0; xs.len()];
    let mut layers = Vec::new();
    for (colour, (label, values)) in series.iter().enumerate() {
        let mut area = Vec::with_capacity(xs.len());
        for ((x, base), value) in xs.iter().zip(&mut base).zip(values) {
            area.push((*x, *base, *base + value));
            *base += value;
        }
        layers.push(Series { label: (*label).to_owned(), colour, shape: Shape::Area(area) });
    }
    layers
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    /// A height that matters.
    pub(super) limit: Option<(f64, String)>,
    /// Moments that matter.
    pub(super) marks: Vec<(f64, String)>,
}

impl Chart {
    /// The drawing, and the words for its colours below it.
    pub(super) fn render(&self, title: &str) -> String {
        let mut svg =
            format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}">"#, escape(title));
        self.axes(&mut svg);
        for series in &self.series {
            self.draw(&mut svg, series);
        }
        self.lines(&mut svg);
        svg += "</svg>";
        svg + &self.legend()
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        // A String takes any text, here and below.
        for (at, text) in &self.y.ticks {
            let y = self.down(*at);
            let _ = write!(
                svg,
                r#"<line class="grid" x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
                LEFT - 6.0,
                y + 4.0
            );
        }
        for (at, text) in &self.x.ticks {
            let x = self.across(*at);
            let _ = write!(
                svg,
                r#"<line class="tick" x1="{x:.1}" y1="{bottom}" x2="{x:.1}" y2="{:.1}"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
                bottom + 4.0,
                bottom + 17.0
            );
        }
        let _ = write!(
            svg,
            r#"<text class="unit" x="{right}" y="{:.1}" text-anchor="end">{}</text><text class="unit" x="4" y="11">{}</text>"#,
            HEIGHT - 3.0,
            self.x.unit,
            self.y.unit
        );
    }

    fn draw(&self, svg: &mut String, series: &Series) {
        let at = |x: f64, y: f64| format!("{:.1},{:.1}", self.across(x), self.down(y));
        let colour = series.colour;
        match &series.shape {
            Shape::Line(points) => {
                let points: Vec<String> = points.iter().map(|(x, y)| at(*x, *y)).collect();
                let _ = write!(svg, r#"<polyline class="l{colour}" points="{}"/>"#, points.join(" "));
            }
            Shape::Area(points) => {
                let above = points.iter().map(|(x, _, high)| at(*x, *high));
                let below = points.iter().rev().map(|(x, low, _)| at(*x, *low));
                let points: Vec<String> = above.chain(below).collect();
                let _ = write!(svg, r#"<polygon class="a{colour}" points="{}"/>"#, points.join(" "));
            }
        }
    }

    fn lines(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        if let Some((at, text)) = &self.limit {
            let y = self.down(*at);
            let _ = write!(
                svg,
                r#"<line class="limit" x1="{LEFT}" y1="{y:.1}" x2="{right}" y2="{y:.1}"/><text class="limit" x="{right}" y="{:.1}" text-anchor="end">{}</text>"#,
                if y < TOP + 14.0 { y + 13.0 } else { y - 5.0 },
                escape(text)
            );
        }
        for (nth, (at, text)) in self.marks.iter().enumerate() {
            let x = self.across(*at);
            // Below the last one's text, which may reach this far.
            let row = TOP + 9.0 + 13.0 * count(nth);
            let _ = write!(
                svg,
                r#"<line class="mark" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}"/><text class="mark" x="{:.1}" y="{:.1}">{}</text>"#,
                x + 4.0,
                row,
                escape(text)
            );
        }
    }

    fn legend(&self) -> String {
        let words = self.series.iter().map(|series| {
            format!(r#"<span><i class="b{}"></i>{}</span>"#, series.colour, escape(&series.label))
        });
        format!(r#"<p class="legend">{}</p>"#, words.collect::<String>())
    }

    fn across(&self, x: f64) -> f64 {
        LEFT + self.x.place(x) * (WIDTH - LEFT - RIGHT)
    }

    fn down(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(y) * (HEIGHT - TOP - BOTTOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_what_is_shown() {
        assert_eq!(ticks(&Axis::linear(173.0, "s")), ["0", "50", "100", "150", "200"]);
        assert_eq!(ticks(&Axis::linear(0.0, "s")), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(ticks(&Axis::exactly(173.0, "s")), ["0", "50", "100", "150"]);
        assert_eq!(ticks(&Axis::log(3.0, 4200.0, "ms")), ["1", "10", "100", "1000", "10000"]);
    }

    #[test]
    fn a_value_beyond_its_axis_stays_on_the_chart() {
        let axis = Axis::log(1.0, 100.0, "ms");

        assert_eq!((axis.place(0.0), axis.place(1e9)), (0.0, 1.0));
        assert!((axis.place(10.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn layers_stand_on_one_another() {
        let layers = stacked(&[0.0, 1.0], &[("low", vec![1.0, 2.0]), ("high", vec![10.0, 20.0])]);

        let Shape::Area(high) = &layers[1].shape else { panic!("not an area") };
        assert_eq!(high, &[(0.0, 1.0, 11.0), (1.0, 2.0, 22.0)]);
    }

    #[test]
    fn texts_are_escaped() {
        let chart = Chart {
            x: Axis::linear(1.0, "s"),
            y: Axis::linear(1.0, "calls"),
            series: vec![Series { label: "a<b".to_owned(), colour: 0, shape: Shape::Line(vec![(0.0, 0.0)]) }],
            limit: Some((1.0, "<cap>".to_owned())),
            marks: vec![(0.5, "x&y".to_owned())],
        };

        let svg = chart.render("\"title\"");

        for escaped in ["a&lt;b", "&lt;cap&gt;", "x&amp;y", "&quot;title&quot;"] {
            assert!(svg.contains(escaped), "{escaped} in {svg}");
        }
    }
}
