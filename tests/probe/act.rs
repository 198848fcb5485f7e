//! The acts, one by one.

use std::hint::{black_box, spin_loop};
use std::time::{Duration, Instant};

use contract::{Blocked, Cause, DeadReason, RetryClass, Verdict};
use lab::probe::Act;
use queue::Lease;
use store::Effect;

const MIB: usize = 1024 * 1024;
/// The smallest there is.
const PAGE: usize = 4096;

/// Does what comes before the call; a verdict where the run ends with it.
pub(crate) async fn perform(act: &Act, lease: &Lease) -> Option<Verdict<Effect>> {
    match *act {
        Act::SleepMs(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Act::SpinMs(ms) => spin(ms, || false),
        Act::ComputeMs(ms) => {
            let computed = lease.compute(move |stop| spin(ms, || stop.is_requested())).await;
            return computed.err().map(Verdict::Retry);
        }
        Act::Hang => std::future::pending().await,
        Act::Panic => panic!("as told"),
        Act::Abort => std::process::abort(),
        Act::Overflow => {
            black_box(fall(0));
        }
        Act::MemoryMib(mib) => fill(mib),
        Act::Fail => return Some(Verdict::Retry(as_told(RetryClass::Transient))),
        Act::FailTimes(times) if lease.attempt() <= times => {
            return Some(Verdict::Retry(as_told(RetryClass::Transient)));
        }
        Act::Reject => {
            return Some(Verdict::Dead(DeadReason::ProviderRejected, as_told(RetryClass::Permanent)));
        }
        Act::NotYetMs(ms) if lease.fence().read_ct == 1 => {
            let (why, after) = (Blocked::NotReady, Some(Duration::from_millis(ms)));
            return Some(Verdict::NotYet { why, after, cause: as_told(RetryClass::NotReady) });
        }
        Act::Plain | Act::FailTimes(_) | Act::NotYetMs(_) => {}
    }
    None
}

fn as_told(class: RetryClass) -> Cause {
    Cause::new(class, "probe", "as told")
}

fn spin(ms: u64, is_over: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < until && !is_over() {
        spin_loop();
    }
}

/// Deeper than any stack.
fn fall(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(depth) == u64::MAX { depth } else { fall(depth + 1).wrapping_add(frame[0]) }
}

fn fill(mib: usize) {
    let mut memory = vec![0_u8; mib * MIB];
    for page in memory.chunks_mut(PAGE) {
        page[0] = 1;
    }
    black_box(memory);
}
