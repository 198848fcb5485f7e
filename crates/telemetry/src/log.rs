//! Log lines on standard output: JSON for machines or text for people, filtered by directives.

use contract::env::keys;
use settings::{Env, Noted};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// For whom lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// Text.
    Pretty,
}

/// How to log.
#[derive(Clone, Debug)]
pub struct Options {
    format: Format,
    filter: String,
}

impl Options {
    /// Nothing is logged.
    pub fn off() -> Self {
        Self { format: Format::Pretty, filter: "off".to_owned() }
    }

    /// Reads the log settings.
    pub fn read(env: &mut Env) -> Result<Self, Noted> {
        let format = env.word(&keys::LOG_FORMAT, &[("json", Format::Json), ("pretty", Format::Pretty)]);
        let filter = env.text(&keys::LOG).and_then(|text| match EnvFilter::try_new(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(env.refuse(&keys::LOG, format!("not a log filter: {error}"))),
        });
        Ok(Self { format: format?, filter: filter? })
    }
}

/// Starts logging for the whole process. A second call changes nothing.
pub fn init(options: &Options) {
    // The filter was parsed when it was read; a process without log lines would be worse than a loud one.
    let filter = EnvFilter::try_new(&options.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_span_events(FmtSpan::NONE);
    // Whoever comes second (two services in one test process) logs through the first.
    let _ = match options.format {
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(true).with_span_list(false).finish().try_init()
        }
        Format::Pretty => lines.finish().try_init(),
    };
}
