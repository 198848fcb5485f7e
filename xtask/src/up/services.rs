//! The services that `up` starts: one line each, and how their processes are started.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};

use super::platform::{Platform, Urls};
use crate::env_file::Values;
use crate::terminal::say;

/// A program that runs as one or more processes.
pub(crate) struct Service {
    /// What `--scale` calls it. Its processes are `NAME-1`, `NAME-2` and so on.
    pub(crate) name: &'static str,
    /// The program, and the package that makes it.
    pub(crate) binary: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// The setting with the address for callers.
    pub(crate) public: Option<&'static str>,
    /// The setting with the address of `/livez`, `/readyz` and `/metrics`.
    pub(crate) internal: &'static str,
}

/// In the order they are started.
pub(crate) const ALL: &[Service] = &[
    Service {
        name: GATEWAY,
        binary: "gateway",
        arguments: &[],
        public: Some("SANMOPIA_GATEWAY_LISTEN"),
        internal: "SANMOPIA_GATEWAY_INTERNAL_LISTEN",
    },
    worker(KILLBILL_WORKER, "webhook-worker", &["--queue", "payment-webhook-processing"]),
    worker(SNAPTRADE_WORKER, "webhook-worker", &["--queue", "snaptrade-account-sync"]),
];

pub(crate) const GATEWAY: &str = "gateway";
const KILLBILL_WORKER: &str = "killbill-worker";
pub(crate) const SNAPTRADE_WORKER: &str = "snaptrade-worker";
const MOST_PROCESSES: u32 = 32;

const fn worker(name: &'static str, binary: &'static str, arguments: &'static [&'static str]) -> Service {
    Service { name, binary, arguments, public: None, internal: "SANMOPIA_WORKER_LISTEN" }
}

impl Service {
    fn process_name(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    /// Setting and port name of each listener of one process.
    pub(crate) fn listeners(&self, number: u32) -> Vec<(&'static str, String)> {
        let process = self.process_name(number);
        let public = self.public.map(|key| (key, format!("{process}.public")));
        public.into_iter().chain([(self.internal, format!("{process}.internal"))]).collect()
    }
}

/// How many processes of each service; one unless said otherwise.
pub(super) struct Scale(BTreeMap<&'static str, u32>);

impl Scale {
    pub(super) fn parse(given: &[String]) -> anyhow::Result<Self> {
        let mut counts: BTreeMap<_, _> = ALL.iter().map(|service| (service.name, 1)).collect();
        for text in given {
            let (name, count) =
                text.split_once('=').with_context(|| format!("`--scale {text}` is not NAME=N"))?;
            let count: u32 =
                count.parse().with_context(|| format!("`{count}` in `--scale {text}` is no number"))?;
            if count > MOST_PROCESSES {
                bail!("`--scale {text}`: {MOST_PROCESSES} processes of one service are the most");
            }
            let known = counts.keys().copied().collect::<Vec<_>>().join(", ");
            *counts
                .get_mut(name)
                .with_context(|| format!("no service is called `{name}`; there are: {known}"))? = count;
        }
        Ok(Self(counts))
    }

    fn of(&self, service: &Service) -> u32 {
        self.0.get(service.name).copied().unwrap_or(1)
    }
}

/// Starts all, then waits for each: they get ready side by side.
pub(super) fn start(platform: &mut Platform<'_>, scale: &Scale, settings: &Values) -> anyhow::Result<()> {
    let mut used = BTreeSet::new();
    let mut waiting = Vec::new();
    for service in ALL {
        for number in 1..=scale.of(service) {
            say(format_args!("starting {}", service.process_name(number)));
            waiting.push(start_one(platform, service, number, settings, &mut used)?);
        }
    }
    for (name, internal) in waiting {
        platform.wait_until_ok(&name, &internal, "/readyz")?;
        say(format_args!("{name} is ready"));
    }
    Ok(())
}

/// The first process with a listen setting keeps the address of the settings, which the caller may have
/// given; every other one gets its own.
fn start_one(
    platform: &mut Platform<'_>,
    service: &Service,
    number: u32,
    settings: &Values,
    used: &mut BTreeSet<&'static str>,
) -> anyhow::Result<(String, String)> {
    let mut own = settings.clone();
    for (key, port_name) in service.listeners(number) {
        if !used.insert(key) {
            own.insert(key.to_owned(), platform.listen(&port_name)?);
        }
    }
    let name = service.process_name(number);
    let internal = url_of(&own[service.internal]);
    let urls = Urls { public: service.public.map(|key| url_of(&own[key])), internal: Some(internal.clone()) };
    let mut command = Command::new(platform.home().program(service.binary));
    platform.start((&name, service.name), command.args(service.arguments), &own, urls)?;
    Ok((name, internal))
}

/// Where a listener is reached from this machine.
pub(crate) fn url_of(listen: &str) -> String {
    let local = listen.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "127.0.0.1:");
    format!("http://{local}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(given: &[&str]) -> anyhow::Result<Scale> {
        Scale::parse(&given.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_service_runs_once_unless_scaled() {
        let scale = scale(&["snaptrade-worker=3"]).expect("well formed");

        let counts: Vec<u32> = ALL.iter().map(|service| scale.of(service)).collect();

        assert_eq!(counts, [1, 1, 3]);
    }

    #[test]
    fn an_unknown_service_is_answered_with_the_known_ones() {
        let error = scale(&["worker=2"]).err().expect("there is no `worker`");

        assert!(error.to_string().contains("gateway, killbill-worker, snaptrade-worker"), "{error}");
    }

    #[test]
    fn a_scale_that_is_no_number_is_refused() {
        assert!(scale(&["gateway=two"]).is_err());
        assert!(scale(&["gateway"]).is_err());
        assert!(scale(&["gateway=1000"]).is_err());
    }

    #[test]
    fn names_of_services_are_unique() {
        let names: BTreeSet<_> = ALL.iter().map(|service| service.name).collect();

        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_listener_on_all_interfaces_is_reached_locally() {
        assert_eq!(url_of("0.0.0.0:8080"), "http://127.0.0.1:8080");
        assert_eq!(url_of("127.0.0.1:9"), "http://127.0.0.1:9");
    }
}
