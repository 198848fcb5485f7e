//! Who calls `/v1`: a named service, or a user of the business.
//!
//! A service proves itself by its token and may assert on whose behalf it calls; a user's token says who and where
//! the user is. Nothing is ever taken from a body.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use contract::Actor;
use probes::current_correlation_id;
use providers::supabase::{Rejection, Users};

use crate::door::Door;
use crate::problem::Problem;

/// The headers by which a service asserts on whose behalf it calls.
const ACTOR_ID: &str = "x-actor-id";
const ACTOR_TYPE: &str = "x-actor-type";
const SCOPE: &str = "x-scope";

/// What an actor may be.
const ACTOR_TYPES: [&str; 4] = ["user", "service", "operator", "schedule"];

/// Longer ids name nothing.
const LONGEST: usize = 200;

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// On whose behalf its commands run.
    pub(crate) actor: Actor,
    /// The one scope that it sees; a service that asserts none sees all.
    pub(crate) sees: Option<String>,
    /// The user, where it is no service: one who only reaches what is the user's own.
    pub(crate) user: Option<String>,
}

impl FromRequestParts<Arc<Door>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, door: &Arc<Door>) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(Problem::Unauthenticated);
        };
        let token = value.as_bytes().strip_prefix(b"Bearer ").ok_or(Problem::Unauthenticated)?;
        match door.options.services.name_of(token) {
            Some(name) => service(name, &parts.headers),
            None => user(door.users.as_ref(), token).await,
        }
    }
}

fn service(name: &str, headers: &HeaderMap) -> Result<Caller, Problem> {
    let (id, scope) = (asserted(headers, ACTOR_ID)?, asserted(headers, SCOPE)?);
    let kind = asserted(headers, ACTOR_TYPE)?;
    if kind.as_ref().is_some_and(|kind| !ACTOR_TYPES.contains(&kind.as_str())) {
        return Err(Problem::Invalid(format!("{ACTOR_TYPE} is one of {}", ACTOR_TYPES.join(", ")).into()));
    }
    let actor = Actor {
        kind: kind.unwrap_or_else(|| if id.is_some() { "user" } else { "service" }.to_owned()),
        id: id.unwrap_or_else(|| name.to_owned()),
        scope: scope.clone().unwrap_or_else(|| Actor::SYSTEM_SCOPE.to_owned()),
        decision: format!("service-token:{name}"),
    };
    Ok(Caller { actor, sees: scope, user: None })
}

/// Printable ASCII of sane length: it goes into rows and log lines.
fn asserted(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(name).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value,
        // Who added the second one, and which one counts?
        (Some(_), Some(_)) => return Err(Problem::Invalid(format!("{name} is there twice").into())),
    };
    let plain = |text: &&str| {
        (1..=LONGEST).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
    };
    let text = value.to_str().ok().filter(plain);
    let invalid = || Problem::Invalid(format!("{name} is 1 to {LONGEST} printable ASCII characters").into());
    text.map(|text| Some(text.to_owned())).ok_or_else(invalid)
}

/// A user acts for nobody else, so its headers assert nothing.
async fn user(users: Option<&Users>, token: &[u8]) -> Result<Caller, Problem> {
    let token = std::str::from_utf8(token).map_err(|_| Problem::Unauthenticated)?;
    let user =
        users.ok_or(Problem::Unauthenticated)?.verify(token).await.map_err(|rejection| match rejection {
            Rejection::Unauthenticated(reason) => {
                tracing::info!(
                    reason,
                    correlation_id = current_correlation_id(),
                    "a token that proves no user"
                );
                Problem::Unauthenticated
            }
            Rejection::Unavailable => Problem::CallersUnavailable,
        })?;
    let actor = Actor {
        kind: "user".to_owned(),
        id: user.id.clone(),
        scope: user.scope.clone(),
        decision: format!("user-token:{}", user.token_id.unwrap_or_default()),
    };
    Ok(Caller { actor, sees: Some(user.scope), user: Some(user.id) })
}
