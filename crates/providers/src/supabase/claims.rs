//! Who a token's user is, once its signature holds.

use contract::Actor;
use serde_json::{Map, Value};

use super::options::Options;

/// In characters. Ids and branches are kept with every command, and none of ours comes near.
const LONGEST: usize = 200;

/// A user whose token holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Supabase's id of the user: 1 to 200 characters, none of them a control character.
    pub id: String,
    /// The user's branch, of the same form.
    pub scope: String,
    /// What names this token or its session, of the same form; refers to the decision that let the user in.
    pub token_id: Option<String>,
}

impl User {
    pub(super) fn read(claims: &Map<String, Value>, options: &Options) -> Result<Self, &'static str> {
        // jsonwebtoken takes a list of issuers as well.
        if claims.get("iss").and_then(Value::as_str) != Some(&options.issuer) {
            return Err("of another issuer");
        }
        let id = name(claims.get("sub")).ok_or("without a usable user id")?;
        let scope = name(at(claims, &options.scope_claim)).ok_or("without a usable scope")?;
        if scope == Actor::SYSTEM_SCOPE {
            return Err("with the scope that only webhooks have");
        }
        let token_id = name(claims.get("jti")).or_else(|| name(claims.get("session_id")));
        Ok(Self { id, scope, token_id })
    }
}

/// The claim at a path with dots.
fn at<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

fn name(claim: Option<&Value>) -> Option<String> {
    let text = claim?.as_str()?;
    let fits = !text.is_empty() && text.chars().count() <= LONGEST && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
}
