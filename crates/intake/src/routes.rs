//! The table of routes. Routers and the API's description are made from it, so a route that is not in it does not
//! exist, and one in it has said who may call it and what it may answer.

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, get, post};
use schemars::{Schema, SchemaGenerator};

use crate::door::{Door, Permits, admit};
use crate::problem::Problem;
use crate::webhooks::{self, killbill, snaptrade, standard};
use crate::{commands, openapi, syncs};

/// A route. No field has a default, so a route that doesn't say who may call it does not compile; that each keeps
/// to what it says is what the tests of this file hold.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) listener: Listener,
    /// Who may call it.
    pub(crate) policy: Policy,
    /// Which requests it competes with.
    pub(crate) permits: Permits,
    pub(crate) summary: &'static str,
    /// The schema of its body.
    pub(crate) body: Option<Describe>,
    /// The schema of its query parameters.
    pub(crate) parameters: Option<Describe>,
    /// Whether it needs an `Idempotency-Key`.
    pub(crate) is_idempotent_by_key: bool,
    /// The status and the schema of its answer.
    pub(crate) answer: (u16, Describe),
    /// What it may refuse for, besides what every route may.
    pub(crate) problems: Vec<Problem>,
    handler: MethodRouter<Arc<Door>>,
}

/// Writes a type's schema.
pub(crate) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Where a route is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Listener {
    /// To the outside.
    Public,
    /// Inside only.
    Internal,
}

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Everybody; it says nothing that is not public.
    Everybody,
    /// A sender whose webhook proves itself.
    Sender,
    /// A service or a user with a token.
    Caller,
}

/// The public routes.
pub fn public(door: &Arc<Door>) -> Router {
    router(door, Listener::Public)
}

/// The routes that only the inside may reach, to be served beside health and metrics.
pub fn internal(door: &Arc<Door>) -> Router {
    router(door, Listener::Internal)
}

fn router(door: &Arc<Door>, listener: Listener) -> Router {
    let mut router = Router::new();
    for route in table().into_iter().filter(|route| route.listener == listener) {
        let permits = door.permits(route.permits).clone();
        router = router.route(route.path, route.handler.layer(from_fn_with_state(permits, admit)));
    }
    let surround = from_fn_with_state((door.metrics(), listener.into()), probes::surround);
    router
        .fallback(async || Problem::NotFound)
        .method_not_allowed_fallback(async || Problem::MethodNotAllowed)
        .layer(surround)
        .with_state(door.clone())
}

/// All routes.
pub(crate) fn table() -> Vec<Route> {
    let mut table = webhook_routes();
    table.extend(command_routes());
    table.push(Route {
        method: Method::GET,
        path: "/openapi.json",
        listener: Listener::Public,
        policy: Policy::Everybody,
        permits: Permits::Reads,
        summary: "This description.",
        body: None,
        parameters: None,
        is_idempotent_by_key: false,
        answer: (200, |_| schemars::json_schema!({ "type": "object" })),
        problems: Vec::new(),
        handler: get(openapi::show),
    });
    table
}

fn webhook_routes() -> Vec<Route> {
    let webhook = |path, listener, summary, handler| Route {
        method: Method::POST,
        path,
        listener,
        policy: Policy::Sender,
        permits: Permits::Intake,
        summary,
        body: None,
        parameters: None,
        is_idempotent_by_key: false,
        answer: (202, SchemaGenerator::subschema_for::<webhooks::Answer>),
        problems: body_problems(),
        handler,
    };
    vec![
        webhook(
            "/webhooks/snaptrade",
            Listener::Public,
            "Takes a SnapTrade webhook in, signed by its Signature header or by the older secret in its body.",
            post(snaptrade::receive),
        ),
        webhook(
            "/webhooks/standard/{source}",
            Listener::Public,
            "Takes a webhook in that is signed by the rules of Standard Webhooks.",
            post(standard::receive),
        ),
        webhook(
            "/webhooks/killbill/{tenant}",
            Listener::Internal,
            "Takes a push notification of Kill Bill in, admitted by the X-Callback-Admission header.",
            post(killbill::receive),
        ),
    ]
}

fn command_routes() -> Vec<Route> {
    let read = |path, summary, parameters, answer: Describe, handler| Route {
        method: Method::GET,
        path,
        listener: Listener::Public,
        policy: Policy::Caller,
        permits: Permits::Reads,
        summary,
        body: None,
        parameters: Some(parameters),
        is_idempotent_by_key: false,
        answer: (200, answer),
        problems: vec![Problem::Invalid("".into())],
        handler,
    };
    vec![
        read(
            "/v1/commands",
            "Lists commands, the newest first.",
            SchemaGenerator::subschema_for::<commands::list::Parameters>,
            SchemaGenerator::subschema_for::<commands::list::Page>,
            get(commands::list::list),
        ),
        read(
            "/v1/commands/{id}",
            "Says where a command stands; with `wait`, as soon as it has ended.",
            SchemaGenerator::subschema_for::<commands::get::Parameters>,
            SchemaGenerator::subschema_for::<commands::View>,
            get(commands::get::get),
        ),
        Route {
            method: Method::POST,
            path: "/v1/commands/{id}/cancel",
            listener: Listener::Public,
            policy: Policy::Caller,
            permits: Permits::Intake,
            summary: "Takes a command back while nobody runs it. What a run that had just begun finds out is discarded.",
            body: None,
            parameters: None,
            is_idempotent_by_key: false,
            answer: (200, SchemaGenerator::subschema_for::<commands::View>),
            problems: vec![Problem::CommandRunning, Problem::CommandFinished],
            handler: post(commands::cancel::cancel),
        },
        command(
            "/v1/snaptrade/accounts/{account_id}/syncs",
            "Asks for a sync of a SnapTrade account.",
            SchemaGenerator::subschema_for::<syncs::Sync>,
            post(syncs::create),
        ),
    ]
}

/// A typed route that accepts a command.
fn command(
    path: &'static str,
    summary: &'static str,
    body: Describe,
    handler: MethodRouter<Arc<Door>>,
) -> Route {
    let own = [
        Problem::BodyNotJson,
        Problem::Invalid("".into()),
        Problem::IdempotencyKeyMissing,
        Problem::IdempotencyKeyReused,
        Problem::NotStorable,
    ];
    Route {
        method: Method::POST,
        path,
        listener: Listener::Public,
        policy: Policy::Caller,
        permits: Permits::Intake,
        summary,
        body: Some(body),
        parameters: None,
        is_idempotent_by_key: true,
        answer: (202, SchemaGenerator::subschema_for::<commands::create::Accepted>),
        problems: [own.to_vec(), body_problems()].concat(),
        handler,
    }
}

fn body_problems() -> Vec<Problem> {
    vec![Problem::BodyTimeout, Problem::BodyIncomplete, Problem::BodyTooLarge, Problem::EncodingNotSupported]
}

#[cfg(test)]
mod tests;
