//! Why a process ended, as an exit code that a script can tell apart.

use std::error::Error as StdError;
use std::process::ExitCode;

use telemetry::log::chain;

/// `EX_USAGE` of sysexits: a setting is unset or wrong, and starting again won't help.
const CONFIGURATION: u8 = 64;
/// `EX_UNAVAILABLE`: a required dependency did not answer within the start budget.
const UNAVAILABLE: u8 = 69;
/// `EX_TEMPFAIL`: the process stopped in order and wants to be started again.
const START_AGAIN: u8 = 75;

/// Why a process ended other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Exit 64.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// Exit 69.
    #[error("{dependency} is required and did not answer within the start budget")]
    Missing {
        /// Its name.
        dependency: &'static str,
        /// What it answered last.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Exit 75.
    #[error("this process has to be started again")]
    StartAgain(#[source] queue::Error),
    /// Exit 1.
    #[error("{doing}")]
    Failed {
        /// What was being done.
        doing: String,
        /// What went wrong.
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    /// A failure of something that is neither a setting nor a dependency.
    pub fn failed(doing: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed { doing: doing.into(), source: source.into() }
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Settings(_) => CONFIGURATION,
            Self::Missing { .. } => UNAVAILABLE,
            Self::StartAgain(_) => START_AGAIN,
            Self::Failed { .. } => 1,
        }
    }
}

impl From<queue::Error> for Error {
    fn from(error: queue::Error) -> Self {
        match error {
            queue::Error::WornOut { .. } => Self::StartAgain(error),
            queue::Error::Heart { .. } | queue::Error::Thread { .. } => Self::failed("working", error),
        }
    }
}

/// Tells people on standard error what went wrong, cause by cause, and the caller by the exit code.
#[expect(clippy::print_stderr, reason = "the log may not have started yet")]
pub fn report(outcome: Result<(), Error>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", chain(&error));
            ExitCode::from(error.code())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_script_can_tell_what_went_wrong_by_the_exit_code() {
        let missing =
            Error::Missing { dependency: "Postgres", source: Box::new(io::Error::other("refused")) };

        assert_eq!(missing.code(), 69);
        let worn_out = queue::Error::WornOut { queue: "q", abandoned: 2 };
        assert_eq!(Error::from(worn_out).code(), 75);
        assert_eq!(Error::failed("listening", "taken").code(), 1);
    }
}
