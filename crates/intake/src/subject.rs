//! What a request asks to be taken in, before it is known what we know of its account.
//!
//! Ids are chosen here, once: a batch that is tried again writes the same rows.

use std::collections::HashMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use contract::snaptrade::AccountSync;
use contract::{Actor, Job, NewCommand, Origin, Workload};
use probes::Context;
use sha2::{Digest, Sha256};
use store::inbox::{Delivery, Fate};
use store::intake::Item;
use store::snaptrade::{Account, AccountsChange, Change};
use uuid::Uuid;
use webhook::snaptrade::{Event, Meaning};
use webhook::{Identity, Reason};

/// What we know of the accounts that a batch speaks of.
pub(crate) type Accounts = HashMap<Uuid, Account>;

/// One request.
pub(crate) enum Subject {
    /// A SnapTrade webhook, whose meaning depends on its account.
    Snaptrade { envelope: Envelope, event: Event },
    /// A webhook whose meaning is known.
    Webhook { envelope: Envelope, fate: Fate },
    /// A caller's command, and how long its body was.
    Command { command: Box<NewCommand>, bytes: usize },
}

/// What every webhook has.
pub(crate) struct Envelope {
    pub(crate) source: &'static str,
    pub(crate) tenant: String,
    pub(crate) identity: Option<Identity>,
    pub(crate) event_type: Option<String>,
    pub(crate) is_clean_json: bool,
    pub(crate) body: Bytes,
    pub(crate) context: Context,
    pub(crate) inbox_id: Uuid,
    pub(crate) command_id: Uuid,
    pub(crate) received_at: DateTime<Utc>,
}

impl Envelope {
    /// The envelope of a delivery that has just arrived.
    pub(crate) fn new(source: &'static str, tenant: String, body: Bytes, context: Context) -> Self {
        Self {
            source,
            tenant,
            identity: None,
            event_type: None,
            is_clean_json: false,
            body,
            context,
            inbox_id: Uuid::now_v7(),
            command_id: Uuid::now_v7(),
            received_at: Utc::now(),
        }
    }

    /// The command that does `job`. The inbox has decided that its event is new, so the row is the key.
    pub(crate) fn command<J: Job>(&self, job: &J) -> Box<NewCommand> {
        Box::new(NewCommand::new(self.command_id, job, self.origin()))
    }

    fn origin(&self) -> Origin {
        Origin {
            idempotency_key: format!("inbox:{}", self.inbox_id),
            actor: Actor::provider(self.source),
            traceparent: self.context.trace.traceparent(),
            tracestate: self.context.trace.tracestate(),
            correlation_id: self.context.correlation_id.clone(),
        }
    }

    fn delivery(&self, fate: Fate) -> Delivery {
        let sha256: [u8; 32] = Sha256::digest(&self.body).into();
        let identity = self.identity.clone().unwrap_or_else(|| Identity::of_body(&sha256));
        Delivery {
            id: self.inbox_id,
            source: self.source,
            tenant: self.tenant.clone(),
            identity: identity.into_string(),
            event_type: self.event_type.clone(),
            body: self.body.clone(),
            sha256,
            is_clean_json: self.is_clean_json,
            fate,
            traceparent: self.context.trace.traceparent(),
            correlation_id: self.context.correlation_id.clone(),
        }
    }

    /// What a SnapTrade event makes of the delivery.
    fn fate(&self, event: &Event, known: Option<&Account>) -> Fate {
        let change = |whose, to| {
            let at = event.at.unwrap_or(self.received_at);
            let reason = self.event_type.clone().unwrap_or_default().to_lowercase();
            Fate::Accounts(Box::new(AccountsChange { whose, to, at, reason }))
        };
        match event.meaning(known.map(|account| account.state)) {
            Meaning::Sync(job) => self.sync(&job, event, known),
            Meaning::Close(whose) => change(whose, Change::Close),
            Meaning::Pause(whose) => change(whose, Change::Pause),
            Meaning::Open(whose) => change(whose, Change::Open(self.origin())),
            Meaning::Announce { account_id, user_id } => {
                let to = Change::Announce { user_id, connection_id: event.connection_id };
                change(contract::snaptrade::Whose::Account(account_id), to)
            }
            Meaning::Record => Fate::Record,
            Meaning::Quarantine(reason) => Fate::Quarantine(reason.into()),
        }
    }

    fn sync(&self, job: &AccountSync, event: &Event, known: Option<&Account>) -> Fate {
        let stored = known.and_then(|account| account.connection_id);
        Fate::Sync {
            work_type: job.work_type,
            account_id: job.account_id,
            connection_id: event.connection_id.filter(|connection| Some(*connection) != stored),
            command: self.command(job),
        }
    }
}

impl Subject {
    /// How much of a batch it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Snaptrade { envelope, .. } | Self::Webhook { envelope, .. } => envelope.body.len(),
            Self::Command { bytes, .. } => *bytes,
        }
    }

    /// The queue that gets a message if it is new.
    pub(crate) fn queue(&self) -> Option<&'static str> {
        let workload = match self {
            Self::Snaptrade { .. } => Workload::SnaptradeAccountSync,
            Self::Webhook { fate: Fate::Fact { command, .. }, .. } | Self::Command { command, .. } => {
                command.workload
            }
            Self::Webhook { .. } => return None,
        };
        Some(workload.queue().name)
    }

    /// The account on which its meaning depends.
    pub(crate) fn account(&self) -> Option<Uuid> {
        match self {
            Self::Snaptrade { event, .. } => event.account_id,
            Self::Webhook { .. } | Self::Command { .. } => None,
        }
    }

    /// What is to be written, given what we know.
    pub(crate) fn item(&self, known: &Accounts) -> Item {
        match self {
            Self::Snaptrade { envelope, event } => {
                let account = event.account_id.and_then(|id| known.get(&id));
                Item::Webhook(Box::new(envelope.delivery(envelope.fate(event, account))))
            }
            Self::Webhook { envelope, fate } => Item::Webhook(Box::new(envelope.delivery(fate.clone()))),
            Self::Command { command, .. } => Item::Command(command.clone()),
        }
    }

    /// The same without the derived form of its body, which the database may refuse where its parser was more
    /// generous than jsonb.
    pub(crate) fn item_without_doc(&self, known: &Accounts) -> Item {
        match self.item(known) {
            Item::Webhook(delivery) => {
                Item::Webhook(Box::new(Delivery { is_clean_json: false, ..*delivery }))
            }
            command @ Item::Command(_) => command,
        }
    }

    /// A webhook set aside with nothing but its bytes.
    pub(crate) fn bytes_alone(&self) -> Option<Item> {
        let (Self::Snaptrade { envelope, .. } | Self::Webhook { envelope, .. }) = self else { return None };
        let delivery = Delivery {
            is_clean_json: false,
            event_type: None,
            ..envelope.delivery(Fate::Quarantine(Reason::NotStorable.into()))
        };
        Some(Item::Webhook(Box::new(delivery)))
    }
}
