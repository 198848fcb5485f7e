//! What came of it, for people and as JSON.

use serde::Serialize;

/// The whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Repeats the run.
    pub seed: u64,
    /// In the order of their ids.
    pub faults: Vec<FaultReport>,
    /// Guards that were taken away.
    pub controls: Vec<ControlReport>,
    /// Of all planned operations the share that came to a promise, faults and all: 0 to 1.
    pub operations_ok_ratio: f64,
}

/// One fault.
#[derive(Clone, Debug, Serialize)]
pub struct FaultReport {
    /// Such as `F01`.
    pub id: &'static str,
    /// In words.
    pub name: &'static str,
    /// It happened.
    pub fired: bool,
    /// It happened, and everything held.
    pub passed: bool,
    /// How long it took with everything around it.
    pub seconds: f64,
    /// What did not hold.
    pub detail: String,
}

/// One guard that was taken away.
#[derive(Clone, Debug, Serialize)]
pub struct ControlReport {
    /// The guard.
    pub name: &'static str,
    /// Its absence was seen.
    pub caught: bool,
    /// What was seen.
    pub detail: String,
}

impl Report {
    /// The faults that did not pass, and the controls that nobody caught.
    pub fn failed(&self) -> Vec<&'static str> {
        let faults = self.faults.iter().filter(|fault| !fault.passed).map(|fault| fault.id);
        let controls = self.controls.iter().filter(|control| !control.caught).map(|control| control.name);
        faults.chain(controls).collect()
    }

    /// Says it in a table.
    #[expect(clippy::print_stdout, reason = "this is the answer to whoever called the program")]
    pub fn print(&self) {
        for fault in &self.faults {
            let said = match (fault.passed, fault.fired) {
                (true, _) => "held",
                (false, true) => "BROKE",
                (false, false) => "NEVER HAPPENED",
            };
            println!("  {:4} {:48} {:6.1} s  {said} {}", fault.id, fault.name, fault.seconds, fault.detail);
        }
        for control in &self.controls {
            let said = if control.caught { "caught" } else { "NOT CAUGHT" };
            println!("  without {:43} {said}: {}", control.name, control.detail);
        }
        println!(
            "seed {}: {} faults and {} controls, {} failed; {:.1} % of the operations came to a promise",
            self.seed,
            self.faults.len(),
            self.controls.len(),
            self.failed().len(),
            self.operations_ok_ratio * 100.0
        );
    }
}
