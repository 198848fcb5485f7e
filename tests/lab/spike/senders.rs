//! Delivers the events of a plan when they are due, each again until it is answered 2xx, as SnapTrade does.
//!
//! What is due is sent, however slow the answers are: a sender does not wait for another one's answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::clock::Clock;
use super::history::{Accepted, Delivered};
use super::plan::{Delivery, Plan};
use super::tally::Tally;
use crate::caller::{Caller, Reply};
use crate::figures::milliseconds;

/// SnapTrade waits half an hour and doubles it; a drill has less time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
const ATTEMPTS: u32 = 8;

/// What all senders share.
#[derive(Clone)]
pub(super) struct Senders {
    pub(super) caller: Caller,
    pub(super) gateways: Vec<String>,
    pub(super) clock: Clock,
    pub(super) tally: Arc<Tally>,
}

impl Senders {
    /// Makes all deliveries, and answers in their order.
    pub(super) async fn deliver(self, plan: &Plan) -> Vec<Delivered> {
        let mut under_way = JoinSet::new();
        for (i, delivery) in plan.deliveries.iter().copied().enumerate() {
            tokio::time::sleep_until(self.clock.instant(delivery.at)).await;
            let (senders, body) = (self.clone(), plan.events[delivery.event].body.clone());
            under_way.spawn(async move { (i, senders.until_accepted(delivery, &body).await) });
        }
        let mut delivered = under_way.join_all().await;
        delivered.sort_unstable_by_key(|(i, _)| *i);
        delivered.into_iter().map(|(_, delivered)| delivered).collect()
    }

    async fn until_accepted(&self, delivery: Delivery, body: &str) -> Delivered {
        self.tally.sent();
        let mut delivered = Delivered {
            due_ms: milliseconds(delivery.at),
            event: delivery.event,
            accepted: None,
            refused: 0,
            unanswered: 0,
        };
        let mut pause = FIRST_PAUSE;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            let gateway = &self.gateways[(delivery.gateway + attempt as usize) % self.gateways.len()];
            match self.caller.deliver(gateway, body).await {
                Reply::Accepted { outcome, command } => {
                    self.tally.answered(&outcome, command);
                    delivered.accepted = Some(Accepted { at_ms: self.clock.now_ms(), outcome, command });
                    return delivered;
                }
                Reply::Refused(_) => delivered.refused += 1,
                Reply::Unreadable | Reply::NoAnswer => delivered.unanswered += 1,
            }
        }
        self.tally.given_up();
        delivered
    }
}
