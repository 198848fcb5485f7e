//! `drains`: the queue empties by itself.

use super::super::history::History;
use super::Check;

pub(super) fn drains(history: &History) -> Check {
    let open = history.rows.commands.iter().filter(|command| !command.status.is_terminal()).count();
    let waiting = history.rows.syncs.iter().filter(|sync| sync.waiting.is_some()).count();
    let mut problems = Vec::new();
    if !history.drained {
        problems.push("the time to wait was over before the queue was empty".to_owned());
    }
    if open > 0 {
        problems.push(format!("{open} commands have not ended"));
    }
    if history.rows.left.messages > 0 {
        problems.push(format!("{} messages are left in the queue", history.rows.left.messages));
    }
    if waiting > 0 {
        problems.push(format!("{waiting} accounts wait for a command that has ended"));
    }
    let seen = format!(
        "the last command ended {:.1} s after the first delivery and {:.1} s after the last one; the queue is empty",
        drain_ms(history) / 1000.0,
        (drain_ms(history) - last_delivery_ms(history)) / 1000.0
    );
    Check::of("drains", &problems, seen)
}

/// From the first delivery to the last end.
pub(in super::super) fn drain_ms(history: &History) -> f64 {
    history.rows.commands.iter().filter_map(|command| command.finished_ms).fold(0.0, f64::max)
}

/// When the last delivery was answered.
fn last_delivery_ms(history: &History) -> f64 {
    let answers = history.delivered.iter().filter_map(|delivered| delivered.accepted.as_ref());
    answers.map(|accepted| accepted.at_ms).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use contract::Status;

    use super::super::super::history::sample;
    use super::*;

    fn held(damage: impl FnOnce(&mut History)) -> bool {
        let mut history = sample::history();
        damage(&mut history);
        drains(&history).held
    }

    #[test]
    fn what_is_left_is_noticed() {
        assert!(!held(|history| history.rows.left.messages = 1));
        assert!(!held(|history| history.rows.commands[0].status = Status::Blocked));
        assert!(!held(|history| history.rows.syncs[0].waiting = Some(sample::FIRST)));
        assert!(!held(|history| history.drained = false));
    }
}
