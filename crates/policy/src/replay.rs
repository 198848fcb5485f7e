//! Whether an operator may do something with a dead letter, and if not, what to do instead.

use std::fmt;

use contract::{DeadReason, LetterState, ReplayPolicy, Status};

/// What is known of a dead letter when somebody wants to act on it.
#[derive(Clone, Debug)]
pub struct Letter<'a> {
    /// Why it died.
    pub reason: DeadReason,
    /// What may be done with it, as stored when it died.
    pub policies: &'a [ReplayPolicy],
    /// What was decided about it.
    pub state: LetterState,
    /// Who decided; absent while it is open.
    pub decided_by: Option<&'a str>,
    /// Where its command stands; absent where it has none.
    pub command: Option<Status>,
}

/// Why something can't be done with a dead letter. The sentence names what can be done instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It was decided on before.
    AlreadyDecided {
        /// What was decided.
        state: LetterState,
        /// By whom.
        by: String,
    },
    /// It is a message without a command: there is nothing to run and nothing to settle.
    NoCommand,
    /// Its command is no longer given up, so acting on it could do its work twice.
    MovedOn(Status),
    /// This is none of the ways out of it.
    NotAllowed {
        /// What was asked for.
        asked: ReplayPolicy,
        /// Why it died.
        reason: DeadReason,
        /// What may be done.
        allowed: Vec<ReplayPolicy>,
    },
}

impl Refusal {
    /// A stable word.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::AlreadyDecided { .. } => "already_decided",
            Self::NoCommand => "no_command",
            Self::MovedOn(_) => "moved_on",
            Self::NotAllowed { .. } => "not_allowed",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyDecided { state, by } => {
                write!(f, "already {state} by {by}; look at its command before you do anything else")
            }
            Self::NoCommand => {
                write!(
                    f,
                    "its message names no command of the ledger, so there is nothing to run: suppress it"
                )
            }
            Self::MovedOn(status) => {
                write!(
                    f,
                    "its command is {status} by now; suppress the dead letter, the command stays as it is"
                )
            }
            Self::NotAllowed { asked, reason, allowed } => {
                let allowed: Vec<&str> = allowed.iter().map(Into::into).collect();
                write!(
                    f,
                    "{asked} is no way out of {reason} here{}; allowed: {}",
                    hint(*asked, *reason),
                    allowed.join(", ")
                )
            }
        }
    }
}

/// Why the reason itself rules it out; nothing where the workload does.
const fn hint(asked: ReplayPolicy, reason: DeadReason) -> &'static str {
    match (asked, reason) {
        (ReplayPolicy::ReplaySameInput, DeadReason::PayloadInvalid) => {
            ": the same input is refused the same way"
        }
        (ReplayPolicy::RepairThenReplay, DeadReason::ProviderCooldown | DeadReason::UnsupportedKind) => {
            ": nothing is wrong with the input"
        }
        (ReplayPolicy::RepairThenReplay, DeadReason::EffectRefused) => {
            ": the run has made its calls with the old input already"
        }
        _ => "",
    }
}

/// Decides whether `asked` may be done with the dead letter.
pub fn decide(letter: &Letter<'_>, asked: ReplayPolicy) -> Result<(), Refusal> {
    if letter.state != LetterState::Open {
        let by = letter.decided_by.unwrap_or("somebody").to_owned();
        return Err(Refusal::AlreadyDecided { state: letter.state, by });
    }
    match (letter.command, asked) {
        // Nothing is waived by closing a dead letter behind which nothing waits, so no policy has a say in it.
        (None, ReplayPolicy::Suppress) => Ok(()),
        (None, _) => Err(Refusal::NoCommand),
        (Some(Status::DeadLettered), _) => allowed(letter, asked),
        (Some(_), ReplayPolicy::Suppress) => Ok(()),
        (Some(status), _) => Err(Refusal::MovedOn(status)),
    }
}

/// What is stored may be older than what is known of the reason today; both must allow it.
fn allowed(letter: &Letter<'_>, asked: ReplayPolicy) -> Result<(), Refusal> {
    let known = letter.reason.ways_out();
    let allowed: Vec<ReplayPolicy> =
        letter.policies.iter().copied().filter(|policy| known.contains(policy)).collect();
    if allowed.contains(&asked) {
        return Ok(());
    }
    Err(Refusal::NotAllowed { asked, reason: letter.reason, allowed })
}

#[cfg(test)]
mod tests {
    use contract::Workload;
    use proptest::prelude::*;
    use proptest::sample::select;
    use strum::VariantArray;

    use super::*;

    const ALL: &[ReplayPolicy] = ReplayPolicy::VARIANTS;

    fn letter(reason: DeadReason, policies: &[ReplayPolicy]) -> Letter<'_> {
        Letter {
            reason,
            policies,
            state: LetterState::Open,
            decided_by: None,
            command: Some(Status::DeadLettered),
        }
    }

    #[test]
    fn a_second_operator_is_told_who_was_first() {
        let state = LetterState::Replayed;
        let decided = Letter { state, decided_by: Some("kim"), ..letter(DeadReason::AttemptsExhausted, ALL) };

        let refusal = decide(&decided, ReplayPolicy::ReplaySameInput).expect_err("it is decided");

        assert!(refusal.to_string().starts_with("already replayed by kim"), "{refusal}");
    }

    #[test]
    fn the_same_invalid_input_is_not_sent_again_and_the_cure_is_named() {
        let letter = letter(DeadReason::PayloadInvalid, ALL);

        let refusal = decide(&letter, ReplayPolicy::ReplaySameInput).expect_err("it would be refused again");

        let sentence = refusal.to_string();
        assert!(
            sentence.contains("refused the same way") && sentence.contains("repair_then_replay"),
            "{sentence}"
        );
    }

    #[test]
    fn what_the_workload_forbids_is_refused_whatever_the_reason_allows() {
        let payments = Workload::PaymentReconciliation.spec().replay;

        for reason in [DeadReason::AttemptsExhausted, DeadReason::WaitedTooLong] {
            assert!(decide(&letter(reason, payments), ReplayPolicy::Suppress).is_err(), "{reason}");
            assert_eq!(decide(&letter(reason, payments), ReplayPolicy::ManualReconcile), Ok(()), "{reason}");
        }
    }

    fn statuses() -> impl Strategy<Value = Option<Status>> {
        prop::option::of(select(Status::VARIANTS))
    }

    proptest! {
        #[test]
        fn only_what_is_given_up_and_undecided_runs_again(
            reason in select(DeadReason::VARIANTS), asked in select(ALL), state in select(LetterState::VARIANTS),
            command in statuses(), policies in prop::sample::subsequence(ALL, 0..=4),
        ) {
            let letter = Letter { reason, policies: &policies, state, decided_by: Some("kim"), command };
            if decide(&letter, asked).is_ok() {
                prop_assert_eq!(state, LetterState::Open);
                if asked != ReplayPolicy::Suppress {
                    prop_assert_eq!(command, Some(Status::DeadLettered));
                    prop_assert!(policies.contains(&asked) && reason.ways_out().contains(&asked));
                }
            }
        }

        #[test]
        fn every_open_dead_letter_has_a_way_out_and_every_refusal_says_which(
            reason in select(DeadReason::VARIANTS), workload in select(&Workload::ALL[..]), command in statuses(),
        ) {
            let policies = workload.spec().ways_out(reason);
            // What died without a command has that reason, and nothing else has it.
            let command = command.filter(|_| reason != DeadReason::CommandMissing);
            let letter = Letter { command, ..letter(reason, &policies) };
            let (open, closed): (Vec<ReplayPolicy>, Vec<ReplayPolicy>) =
                ALL.iter().copied().partition(|asked| decide(&letter, *asked).is_ok());
            prop_assert!(!open.is_empty());
            for asked in closed {
                let sentence = decide(&letter, asked).expect_err("it is closed").to_string();
                let named = open.iter().any(|way| {
                    sentence.contains(&way.to_string()) || (*way == ReplayPolicy::Suppress && sentence.contains("suppress"))
                });
                prop_assert!(named, "{sentence}");
            }
        }
    }
}
