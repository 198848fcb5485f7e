//! How notifications are sent: at least once, in no order, again after every failure, and for no longer than two days.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Callback;
use super::callback::Caller;
use crate::Dice;

/// The pauses before a notification that failed is sent again. After the last one it is gone for good.
const RETRIES: [Duration; 5] = [
    Duration::from_mins(15),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(12),
    Duration::from_hours(24),
];

/// What a sender is like.
#[derive(Clone, Debug)]
pub struct Habits {
    /// What its pauses are multiplied with; 1 is Kill Bill's own pace.
    pub pace: f64,
    /// The share of notifications that it sends twice.
    pub duplicates: f64,
    /// The share of answers that come too late: it takes them for failures.
    pub late_answers: f64,
    /// By how many places a notification may fall behind.
    pub disorder: u32,
    /// How many it sends at a time.
    pub at_once: usize,
}

impl Default for Habits {
    /// One after the other, each once, and again within seconds where that failed.
    fn default() -> Self {
        Self { pace: 0.001, duplicates: 0.0, late_answers: 0.0, disorder: 0, at_once: 1 }
    }
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// Notifications, each as often as it was begun.
    pub notifications: usize,
    /// Requests that were made for them.
    pub requests: usize,
    /// Notifications whose last request failed too, as far as the sender knows.
    pub given_up: usize,
}

/// Sends notifications until each has arrived or was given up; the seed decides whatever the habits leave open.
pub async fn push(callback: &Callback, bodies: &[String], habits: &Habits, seed: u64) -> Pushed {
    let caller = Arc::new(Caller::new(callback));
    let turns = Arc::new(Semaphore::new(habits.at_once.max(1)));
    let mut deliveries = JoinSet::new();
    for (nth, body) in (0..).zip(order(bodies, habits, seed)) {
        let delivery = Delivery {
            caller: Arc::clone(&caller),
            turns: Arc::clone(&turns),
            body: body.to_owned(),
            habits: habits.clone(),
            dice: Dice::new("late answers", &[seed, nth]),
        };
        // Waited for here, so that they begin in their order.
        let turn = Arc::clone(&turns).acquire_owned().await.expect("nobody closes it");
        deliveries.spawn(async move {
            let first = delivery.caller.post(&delivery.body).await;
            drop(turn);
            delivery.finish(first).await
        });
    }
    let mut pushed = Pushed { notifications: deliveries.len(), ..Pushed::default() };
    while let Some(ended) = deliveries.join_next().await {
        let (requests, arrived) = ended.expect("a delivery does not panic");
        pushed.requests += requests;
        pushed.given_up += usize::from(!arrived);
    }
    pushed
}

/// One notification on its way.
struct Delivery {
    caller: Arc<Caller>,
    turns: Arc<Semaphore>,
    body: String,
    habits: Habits,
    dice: Dice,
}

impl Delivery {
    /// Sends it again until it has arrived. Answers how many requests that took in all, and whether it arrived.
    async fn finish(mut self, first: bool) -> (usize, bool) {
        let mut is_received = first;
        for (requests, pause) in (1..).zip(RETRIES) {
            if self.is_heard(is_received) {
                return (requests, true);
            }
            tokio::time::sleep(pause.mul_f64(self.habits.pace)).await;
            let _turn = self.turns.acquire().await.expect("nobody closes it");
            is_received = self.caller.post(&self.body).await;
        }
        let arrived = self.is_heard(is_received);
        (1 + RETRIES.len(), arrived)
    }

    /// False where the sender takes a success for a failure.
    fn is_heard(&mut self, is_received: bool) -> bool {
        is_received && self.dice.fraction() >= self.habits.late_answers
    }
}

/// The notifications in the order in which they are begun, some of them twice.
fn order<'a>(bodies: &'a [String], habits: &Habits, seed: u64) -> Vec<&'a str> {
    let mut dice = Dice::new("order of notifications", &[seed]);
    let mut places = Vec::with_capacity(bodies.len());
    for (place, body) in (0_u32..).zip(bodies) {
        let times = if dice.fraction() < habits.duplicates { 2 } else { 1 };
        for _ in 0..times {
            places.push((f64::from(place) + dice.fraction() * f64::from(habits.disorder), body.as_str()));
        }
    }
    places.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    places.into_iter().map(|(_, body)| body).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(n: usize) -> Vec<String> {
        (0..n).map(|i| i.to_string()).collect()
    }

    #[test]
    fn without_habits_everything_goes_out_once_and_in_order() {
        let bodies = bodies(100);

        assert_eq!(order(&bodies, &Habits::default(), 1), bodies);
    }

    #[test]
    fn notifications_are_doubled_and_fall_behind_as_the_seed_says() {
        let bodies = bodies(1000);
        let habits = Habits { duplicates: 0.25, disorder: 50, ..Habits::default() };
        let sent = order(&bodies, &habits, 7);

        assert!((1150..1350).contains(&sent.len()), "{}", sent.len());
        assert_eq!(sent, order(&bodies, &habits, 7));
        assert_ne!(sent, order(&bodies, &habits, 8));
        let place = |wanted: &str| sent.iter().position(|body| *body == wanted).expect("it is sent");
        assert!(place("0") < place("200") && place("200") < place("400"));
        let numbers: Vec<u32> = sent.iter().map(|body| body.parse().expect("a number")).collect();
        assert!(!numbers.is_sorted());
    }
}
