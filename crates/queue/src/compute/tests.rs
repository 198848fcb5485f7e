#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::mpsc;

use super::*;

/// Of the calling thread, as the system sees it.
fn niceness() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // After the name, which may hold anything, the 17th of the fields.
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_computation_has_a_lower_priority_than_who_asks_for_it() {
    let before = niceness();
    let computed = Computing::default().run(|_| niceness()).await.unwrap();

    assert_eq!(computed, NICENESS);
    assert_eq!(niceness(), before);
    assert!(before < NICENESS);
}

#[tokio::test]
async fn a_run_computes_one_thing_at_a_time() {
    let (computing, is_done) = (Computing::default(), Arc::new(AtomicBool::new(false)));
    let (begun, began) = oneshot::channel();
    let (go_on, told_to) = mpsc::channel();
    let first = computing.run({
        let is_done = is_done.clone();
        move |_| {
            begun.send(()).unwrap();
            told_to.recv().unwrap();
            is_done.store(true, Ordering::SeqCst);
        }
    });
    let second = computing.run(move |_| is_done.load(Ordering::SeqCst));
    let test = async {
        began.await.unwrap();
        go_on.send(()).unwrap();
    };
    let (first, second, ()) = tokio::join!(first, second, test);

    assert_eq!((first, second), (Ok(()), Ok(true)), "the second began when the first had ended");
}

#[tokio::test]
async fn a_computation_whose_answer_nobody_awaits_is_asked_to_stop() {
    let computing = Computing::default();
    let (begun, began) = oneshot::channel();
    let (stopped, was_stopped) = oneshot::channel();
    let computation = computing.run(move |stop| {
        begun.send(()).unwrap();
        while !stop.is_requested() {
            std::hint::spin_loop();
        }
        stopped.send(()).unwrap();
    });
    tokio::select! {
        _ = computation => panic!("it computes until it is asked to stop"),
        begun = began => begun.unwrap(),
    }

    was_stopped.await.unwrap();
}

#[tokio::test]
async fn nothing_is_computed_once_the_run_has_ended() {
    let computing = Computing::default();
    let abandoned = Abandoned::new(Arc::new(Metrics::new("test", "0")), "q");

    assert!(!computing.end(&abandoned).await);
    assert_eq!(computing.run(|_| ()).await.unwrap_err().code, "run_ended");
}
