//! Runs the cases of one part until its time is over, and says which one failed.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use testkit::Dice;

use crate::mutate::{Example, damaged};

/// Twelve tests share the time, and two run at once where there are two cores.
const SHARES: u32 = 6;
const SECONDS: u64 = 9;
const SEED: u64 = 1;

/// The cases of one part, in order: first its examples as they are, then damaged ones.
pub(crate) struct Cases {
    part: &'static str,
    examples: Vec<Example>,
    seed: u64,
    only: Option<u64>,
    deadline: Instant,
    next: u64,
}

/// One case.
#[derive(Debug)]
pub(crate) struct Case {
    /// The example that it was made of.
    pub(crate) example: usize,
    /// What is to be read.
    pub(crate) input: Vec<u8>,
    /// For whatever else the case needs.
    pub(crate) dice: Dice,
}

impl Case {
    /// The input as text, with what is no text replaced.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.input).into_owned()
    }
}

impl Cases {
    /// The cases made of these examples.
    pub(crate) fn new<T: Into<Vec<u8>>>(part: &'static str, examples: impl IntoIterator<Item = T>) -> Self {
        let seconds = number("SPILLWAY_FUZZ_SECONDS").unwrap_or(SECONDS);
        Self {
            part,
            examples: examples.into_iter().map(|example| Example::new(example.into())).collect(),
            seed: number("SPILLWAY_FUZZ_SEED").unwrap_or(SEED),
            only: number("SPILLWAY_FUZZ_CASE"),
            deadline: Instant::now() + Duration::from_secs(seconds) / SHARES,
            next: 0,
        }
    }

    /// The next case; the first round through the examples is never cut short.
    fn next(&mut self) -> Option<(u64, Case)> {
        let number = match self.only {
            Some(number) if self.next == 0 => number,
            Some(_) => return None,
            None => self.next,
        };
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        if self.only.is_none() && place >= self.examples.len() && Instant::now() >= self.deadline {
            println!("{}: {number} cases of seed {}", self.part, self.seed);
            return None;
        }
        self.next += 1;
        let mut dice = Dice::new(self.part, &[self.seed, number]);
        let case = if let Some(example) = self.examples.get(place) {
            Case { example: place, input: example.bytes.clone(), dice }
        } else {
            let example = dice.place(self.examples.len());
            let input = damaged(&self.examples, example, &mut dice);
            Case { example, input, dice }
        };
        Some((number, case))
    }

    /// Checks all cases.
    pub(crate) fn check(mut self, check: impl Fn(&mut Case)) {
        while let Some((number, mut case)) = self.next() {
            let outcome = catch_unwind(AssertUnwindSafe(|| check(&mut case)));
            self.judge(number, &case, outcome.is_ok());
        }
    }

    /// The same for checks that await.
    pub(crate) async fn check_async(mut self, mut check: impl AsyncFnMut(&mut Case)) {
        while let Some((number, mut case)) = self.next() {
            let outcome = AssertUnwindSafe(check(&mut case)).catch_unwind().await;
            self.judge(number, &case, outcome.is_ok());
        }
    }

    fn judge(&self, number: u64, case: &Case, holds: bool) {
        let input = case.input.escape_ascii();
        assert!(
            holds,
            "{} fails: SPILLWAY_FUZZ_SEED={} SPILLWAY_FUZZ_CASE={number}: {input}",
            self.part, self.seed
        );
    }
}

/// Reads something twice, which must come to the same.
pub(crate) fn twice<T: Debug>(read: impl Fn() -> T) -> T {
    let (first, second) = (read(), read());
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    first
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}
