//! The report behind `status`. Its field names are read by programs and stay.

use serde::Serialize;

use crate::env_file;
use crate::home::Home;
use crate::http;
use crate::state::{self, Process, State};
use crate::up::{Demo, services};

/// All that runs, as found right now. What this version does not have is absent.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) state: Condition,
    pub(super) gateways: Vec<Gateway>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sandbox: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) postgres: Option<Address>,
    pub(super) workers: Vec<Worker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) demo: Option<DemoUser>,
    /// Relative to the checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) env_file: Option<String>,
    pub(super) not_started: Vec<Missing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Condition {
    Up,
    Down,
    /// Something that was started has ended or is not ready.
    Partly,
}

#[derive(Debug, Serialize)]
pub(super) struct Gateway {
    pub(super) url: String,
    pub(super) internal_url: String,
    pub(super) ready: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Worker {
    pub(super) name: String,
    pub(super) pid: i32,
    pub(super) url: String,
    pub(super) ready: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Address {
    pub(super) url: String,
}

#[derive(Debug, Serialize)]
pub(super) struct DemoUser {
    snaptrade_user: String,
    snaptrade_accounts: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Missing {
    pub(super) name: String,
    pub(super) why: String,
    pub(super) cure: String,
}

impl Report {
    pub(super) fn of(home: &Home) -> anyhow::Result<Self> {
        let state = State::load(home)?;
        let settings = env_file::read(&home.env())?;
        let mut report = Self {
            state: Condition::Down,
            gateways: Vec::new(),
            sandbox: None,
            postgres: None,
            workers: Vec::new(),
            demo: None,
            env_file: settings.as_ref().map(|_| home.relative(&home.env())),
            not_started: Vec::new(),
        };
        if state.any_alive() {
            // A given server is in the settings as well; nobody of ours runs it.
            let url = settings.and_then(|settings| settings.get("SANMOPIA_DATABASE_URL").cloned());
            report.postgres = url.map(|url| Address { url });
            state.processes.iter().for_each(|process| report.add(home, process));
            report.add_unrecorded(&state);
            if report.sandbox.is_some() {
                report.demo = Demo::load(&home.demo())?.and_then(DemoUser::first_of);
            }
            let complete = state.processes.iter().all(Process::is_alive);
            report.state = if complete && report.is_ready() { Condition::Up } else { Condition::Partly };
        }
        Ok(report)
    }

    fn add(&mut self, home: &Home, process: &Process) {
        if !process.is_alive() {
            let why = format!("it has ended, {} may say why", home.relative(&process.log));
            let cure = "cargo xtask down; cargo xtask up".to_owned();
            self.not_started.push(Missing { name: process.name.clone(), why, cure });
            return;
        }
        let url = process.url.clone();
        let internal_url = process.internal_url.clone().unwrap_or_default();
        match process.service.as_str() {
            state::POSTGRES => {}
            state::SANDBOX => self.sandbox = url.map(|url| Address { url }),
            services::GATEWAY => {
                let ready = http::says_ok(&internal_url, "/readyz");
                self.gateways.push(Gateway { url: url.unwrap_or_default(), internal_url, ready });
            }
            service => {
                let ready = http::says_ok(&internal_url, "/readyz");
                self.workers.push(Worker {
                    name: service.to_owned(),
                    pid: process.pid,
                    url: internal_url,
                    ready,
                });
            }
        }
    }

    fn add_unrecorded(&mut self, state: &State) {
        for service in services::ALL {
            if state.of_service(service.name).next().is_none() {
                let name = service.name.to_owned();
                let cure = format!("cargo xtask down; cargo xtask up --scale {name}=1");
                self.not_started.push(Missing {
                    name,
                    why: "none was asked for, or `up` is not there yet".into(),
                    cure,
                });
            }
        }
    }

    fn is_ready(&self) -> bool {
        let serves = !self.gateways.is_empty() || !self.workers.is_empty();
        serves
            && self.gateways.iter().all(|gateway| gateway.ready)
            && self.workers.iter().all(|worker| worker.ready)
            && self.sandbox.as_ref().is_none_or(|sandbox| http::says_ok(&sandbox.url, "/livez"))
    }
}

impl DemoUser {
    fn first_of(demo: Demo) -> Option<Self> {
        let user = demo.users.into_iter().next()?;
        Some(Self { snaptrade_user: user.id, snaptrade_accounts: user.accounts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::new(folder.path().to_owned());
        (folder, home)
    }

    fn process(service: &str, started: Option<String>) -> Process {
        let pid = std::process::id().cast_signed();
        Process {
            name: format!("{service}-1"),
            service: service.to_owned(),
            pid,
            started: started.unwrap_or_else(|| "another time".into()),
            url: None,
            internal_url: Some("http://127.0.0.1:1".into()),
            log: "gone.log".into(),
        }
    }

    fn own_start() -> Option<String> {
        crate::process::started(std::process::id().cast_signed())
    }

    #[test]
    fn nothing_recorded_is_down() {
        let (_folder, home) = home();

        let report = Report::of(&home).expect("a report");

        assert_eq!(report.state, Condition::Down);
        assert_eq!(
            serde_json::to_value(&report).expect("JSON"),
            serde_json::json!({"state": "down", "gateways": [], "workers": [], "not_started": []})
        );
    }

    #[test]
    fn a_record_whose_processes_are_all_gone_is_down() {
        let (_folder, home) = home();
        State { processes: vec![process("gateway", None)], ..State::default() }.save(&home).expect("saved");

        assert_eq!(Report::of(&home).expect("a report").state, Condition::Down);
    }

    #[test]
    fn a_dead_worker_makes_it_partly_up_and_is_named_with_a_cure() {
        let (_folder, home) = home();
        let processes = vec![process("gateway", own_start()), process("snaptrade-worker", None)];
        State { processes, ..State::default() }.save(&home).expect("saved");

        let report = Report::of(&home).expect("a report");

        assert_eq!(report.state, Condition::Partly);
        assert_eq!(report.not_started[0].name, "snaptrade-worker-1");
        assert!(report.not_started[0].cure.contains("cargo xtask up"));
    }
}
