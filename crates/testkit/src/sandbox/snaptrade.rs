//! SnapTrade's REST API as far as an account sync reads it: request signatures, quota, error bodies, and the
//! data of the accounts that the sandbox was given. `https://docs.snaptrade.com` describes the original.

mod activities;
mod auth;
mod books;
mod catalogue;
mod holdings;
mod orders;
mod refusal;
mod signature;
mod target;
pub mod webhook;
mod window;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use tokio::time::Instant;
use uuid::Uuid;

use self::auth::Auth;
use self::books::{Account, Books};
use self::refusal::Refusal;
pub use self::signature::sign;
use self::target::{Resource, Target};
use self::window::{Slot, Window};
use super::desk::{Desk, Visit};
use super::script::Fault;
use super::{Config, SnaptradeUser};
use crate::server::HangUp;

/// The name of this provider in records and counters.
pub const PROVIDER: &str = "snaptrade";

/// What SnapTrade adds under the old path prefix: it has been deprecated since that unix time.
const DEPRECATION: HeaderValue = HeaderValue::from_static("@1781222400");

/// Requests of a sync have no body; a larger one is a fault of the caller.
const BODY_BYTES: usize = 64 * 1024;

/// The provider: who may call, how often, and what the accounts hold.
pub(super) struct Snaptrade {
    desk: Arc<Desk>,
    auth: Auth,
    window: Mutex<Window>,
    books: Books,
}

/// The account routes, at the root and under the old prefix.
pub(super) fn router(snaptrade: Arc<Snaptrade>) -> Router {
    Router::new()
        .route("/accounts/{*rest}", any(handle))
        .route("/api/v1/{*rest}", any(handle))
        .with_state(snaptrade)
}

async fn handle(State(snaptrade): State<Arc<Snaptrade>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let target = Target::of(parts.uri.path());
    let mut visit = snaptrade.desk.enter(PROVIDER, &parts, target.account);
    let request_id = HeaderValue::try_from(visit.request_id().to_string()).expect("a UUID is plain ASCII");
    snaptrade.desk.take_time().await;
    let (mut response, slot) = snaptrade.answer(&mut visit, &target, &parts, body).await;
    let headers = response.headers_mut();
    // A fault that speaks of the quota has set these already.
    for (name, value) in quota_headers(&slot) {
        headers.entry(name).or_insert(value);
    }
    headers.insert(HeaderName::from_static("x-request-id"), request_id);
    if target.legacy {
        headers.insert(HeaderName::from_static("deprecation"), DEPRECATION);
    }
    visit.leave(&response);
    response
}

impl Snaptrade {
    pub(super) fn new(desk: Arc<Desk>, config: Config) -> Self {
        let books = Books::new(config.seed, &config.users);
        let auth = Auth::new(config.client_id, config.consumer_key, &config.users);
        let window = Mutex::new(Window::new(config.quota_per_minute));
        Self { desk, auth, window, books }
    }

    /// From now on these users and accounts are known too.
    pub(super) fn add_users(&self, users: &[SnaptradeUser]) {
        self.auth.add(users);
        self.books.add(users);
    }

    /// Brings an account to its next revision, which is returned if the account is known.
    pub(super) fn bump(&self, account: Uuid) -> Option<u32> {
        self.books.bump(account)
    }

    pub(super) fn set_activities(&self, account: Uuid, count: u32) {
        self.books.set_activities(account, count);
    }

    pub(super) fn set_quota(&self, calls: u32, period: Duration) {
        self.window.lock().unwrap_or_else(PoisonError::into_inner).resize(calls, period);
    }

    /// The order is SnapTrade's: who is it, may it call now, what does it want. Who is refused at one step
    /// does not count at the next.
    async fn answer(
        &self,
        visit: &mut Visit,
        target: &Target,
        parts: &Parts,
        body: Body,
    ) -> (Response, Slot) {
        let body = axum::body::to_bytes(body, BODY_BYTES).await.unwrap_or_default();
        let user = match self.auth.admit(parts, &body) {
            Ok(user) => user,
            Err(refusal) => return (refusal.into_response(), self.slot(Window::look)),
        };
        visit.recognise();
        let slot = self.slot(Window::take);
        if !slot.admitted {
            visit.ask_to_wait(slot.reset_s);
            return (Refusal::Throttled { wait_s: slot.reset_s }.into_response(), slot);
        }
        let work = || self.serve(target, parts, &user).unwrap_or_else(IntoResponse::into_response);
        let response = match visit.strike(&target.path) {
            Some(fault) => suffer(fault, visit, work).await,
            None => work(),
        };
        (response, slot)
    }

    fn slot(&self, ask: impl FnOnce(&mut Window, std::time::Instant) -> Slot) -> Slot {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&mut window, Instant::now().into_std())
    }

    fn serve(&self, target: &Target, parts: &Parts, user: &str) -> Result<Response, Refusal> {
        let resource = target.resource.ok_or(Refusal::NotFound)?;
        if parts.method != Method::GET {
            return Err(Refusal::Method);
        }
        let account = target.account.and_then(|id| self.books.account(id, user)).ok_or(Refusal::NotFound)?;
        read(resource, &account, parts)
    }
}

fn read(resource: Resource, account: &Account, parts: &Parts) -> Result<Response, Refusal> {
    let body = match resource {
        Resource::Details => holdings::details(account),
        Resource::Holdings => return Err(Refusal::Gone),
        Resource::Positions => holdings::positions(account),
        Resource::Balances => holdings::balances(account),
        Resource::Orders => orders::listed(account, &auth::query(parts)?),
        Resource::RecentOrders => orders::recent(account, &auth::query(parts)?),
        Resource::Activities => activities::page(account, &auth::query(parts)?)?,
    };
    Ok(Json(body).into_response())
}

async fn suffer(fault: Fault, visit: &mut Visit, work: impl FnOnce() -> Response) -> Response {
    match fault {
        Fault::Status { status, code, detail, retry_after, reset_s } => {
            if let Some(wait_s) = reset_s.or_else(|| retry_after.as_ref()?.parse().ok()) {
                visit.ask_to_wait(wait_s);
            }
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = refusal::error(status, &code, &detail);
            fault_headers(response.headers_mut(), retry_after, reset_s);
            response
        }
        Fault::Latency(duration) => {
            tokio::time::sleep(duration).await;
            work()
        }
        Fault::LostAnswer => {
            let mut response = work();
            response.extensions_mut().insert(HangUp);
            response
        }
        Fault::Garbage => ([(CONTENT_TYPE, "application/json")], "<html>upstream: {").into_response(),
        Fault::Empty => StatusCode::OK.into_response(),
    }
}

fn fault_headers(headers: &mut HeaderMap, retry_after: Option<String>, reset_s: Option<u64>) {
    if let Some(value) = retry_after.and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(RETRY_AFTER, value);
    }
    if let Some(reset_s) = reset_s {
        headers.insert(HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(0));
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(reset_s));
    }
}

fn quota_headers(slot: &Slot) -> [(HeaderName, HeaderValue); 3] {
    [
        (HeaderName::from_static("x-ratelimit-limit"), HeaderValue::from(slot.limit)),
        (HeaderName::from_static("x-ratelimit-remaining"), HeaderValue::from(slot.remaining)),
        (HeaderName::from_static("x-ratelimit-reset"), HeaderValue::from(slot.reset_s)),
    ]
}
