//! What callers were told.

use std::sync::Mutex;

use uuid::Uuid;

/// What a caller knows of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A promise was made.
    Ok,
    /// It was refused: nothing may have happened.
    Refused,
    /// No answer came: either may be.
    Unknown,
}

/// One operation: somebody wanted this effect.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    /// Decides what is the same operation, at the door and at the provider.
    pub(super) key: String,
    /// The command it became, where a caller was told.
    pub(super) command: Option<Uuid>,
    pub(super) told: Told,
}

/// All operations, in the order of their answers. An operation that was tried again is there once for each try.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<Vec<Operation>>);

impl History {
    pub(super) fn note(&self, operation: Operation) {
        self.0.lock().expect("nobody panics with it").push(operation);
    }

    pub(super) fn operations(&self) -> Vec<Operation> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}
