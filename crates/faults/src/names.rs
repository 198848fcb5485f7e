//! All names, in one place: a drill that arms a name which is not here is refused.

/// The crash points.
///
/// Most writes are one statement or one transaction, so there is no point within them: the one before the write stands
/// for every moment until its commit. Where a point can fail (`err`), it does so as a database that is away for a
/// moment.
pub const POINTS: &[&str] = &[
    // Gateway: a batch is checked and nothing of it was sent to the database. Can fail.
    "gw.before_commit",
    // Gateway: everything of a batch is written, and its COMMIT was not sent. Can fail.
    "gw.in_tx",
    // Gateway: the database has committed a batch, and nobody was told. Can fail: then the gateway tries again, as it
    // does when the answer to its COMMIT is lost.
    "gw.after_commit",
    // Worker: a claim that took messages was answered, and none of them was started.
    "wk.after_claim",
    // Worker: a run begins and its handler was not called. Nobody watches the run here, so that one which stalls ends
    // with its process.
    "wk.before_effect",
    // Worker: the handler has answered, and nothing is settled. Stalls as `wk.before_effect` does.
    "wk.after_effect",
    // Worker: the settlement of a success is about to be sent: effect, ledger, archive and keys in one commit, or the
    // last three in one statement for many. Each try counts. Can fail.
    "wk.before_archive",
    // Worker: that settlement was answered, and neither metrics nor the run's place in the heartbeat were given back.
    // Can fail: then it is sent again, as when its answer is lost.
    "wk.after_archive",
    // Worker: a failure or a "not yet" is about to be written with the new due time, in one statement. Can fail.
    "wk.retry_before_setvt",
    // Worker: a dead letter is about to be written. Dead letter, ledger and archive are one statement; without the guard
    // `one_dead_letter_transaction` the source is archived by now. Can fail.
    "wk.dlq_mid",
    // Worker: a heartbeat with leases to renew is about to be sent. A stall ends all heartbeats of the process.
    "wk.heartbeat",
    // Operator: in the transaction of a replay. The command is queued again, and its message was not sent. Can fail.
    "replay.mid",
];

/// The guards that the programs themselves can lack. What is guarded by SQL alone is taken away by a patch of the
/// database, see `tests/lab/chaos/lacks`.
pub const GUARDS: &[&str] = &[
    // The gateway answers, and then commits.
    "commit_first",
    // A dead letter's source is archived in a transaction of its own. Needs the patch of that name too: without it the
    // dead letter finds no source any more.
    "one_dead_letter_transaction",
    // A connection goes back into the pool in whatever state its last user left it.
    "release_check",
    // The gateway writes the rows of a batch in the order in which they came. The patch of that name does the same to
    // settlements, beats and hand-backs.
    "sorted_batches",
];
