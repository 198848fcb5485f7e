//! CPU time of a process with its children, as Linux tells it. Elsewhere nothing is told, so nothing is reported.

use std::fs;
use std::time::Duration;

/// `USER_HZ`, in which `/proc` counts, is this on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a process has used since its start, with its children: those that have ended, and those that run.
pub(super) fn of_family(pid: u32) -> Option<Duration> {
    let own = read(pid)?;
    let running = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let child = read(entry.file_name().to_str()?.parse().ok()?)?;
        (child.parent == pid).then_some(child.own)
    });
    let ticks = own.own + own.ended_children + running.sum::<u32>();
    Some(Duration::from_secs_f64(f64::from(ticks) / TICKS_PER_SECOND))
}

/// Ticks of one process.
#[derive(Debug, PartialEq, Eq)]
struct Usage {
    parent: u32,
    own: u32,
    ended_children: u32,
}

fn read(pid: u32) -> Option<Usage> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The second field is the program's name in brackets, which may itself hold blanks and brackets.
fn parse(stat: &str) -> Option<Usage> {
    const PARENT: usize = 1;
    const USER: usize = 11;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |i: usize| fields.get(i)?.parse::<u32>().ok();
    Some(Usage {
        parent: field(PARENT)?,
        own: field(USER)? + field(USER + 1)?,
        ended_children: field(USER + 2)? + field(USER + 3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "17 (a) b (c)) S 4 17 17 0 -1 4194560 9 8 7 6 500 60 3000 400 20 0 1 0 99 1 1";

        assert_eq!(parse(stat), Some(Usage { parent: 4, own: 560, ended_children: 3400 }));
    }

    #[test]
    fn a_process_that_is_gone_has_no_figure() {
        assert_eq!(of_family(u32::MAX), None);
    }
}
