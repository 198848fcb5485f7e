//! Log lines on standard output: JSON for machines or text for people, filtered by directives.

use std::error::Error;

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

/// An error and its causes in one line, each once. The JSON format prints an error's own text only.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let sentence = next.to_string();
        if !text.ends_with(&sentence) {
            text.push_str(": ");
            text.push_str(&sentence);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("claiming messages")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_follow_one_another_and_none_is_repeated() {
        let error = Outer(io::Error::other(io::Error::other("connection refused")));

        assert_eq!(chain(&error), "claiming messages: connection refused");
    }
}
