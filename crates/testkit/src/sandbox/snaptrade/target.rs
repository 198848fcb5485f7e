//! What a path asks for.

use uuid::Uuid;

/// Prefix of the paths that were moved to the root.
const LEGACY_PREFIX: &str = "/api/v1";

/// What can be read of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    Details,
    Holdings,
    Positions,
    Balances,
    Orders,
    RecentOrders,
    Activities,
}

/// A path, understood as far as possible.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The path without the old prefix.
    pub(super) path: String,
    /// The old prefix was there.
    pub(super) legacy: bool,
    pub(super) account: Option<Uuid>,
    pub(super) resource: Option<Resource>,
}

impl Target {
    pub(super) fn of(sent: &str) -> Self {
        let moved = sent.strip_prefix(LEGACY_PREFIX).filter(|rest| rest.starts_with('/'));
        let path = moved.unwrap_or(sent);
        let rest = path.strip_prefix("/accounts/").unwrap_or_default();
        let (account, resource) = rest.split_once('/').unwrap_or((rest, ""));
        let account = account.parse().ok();
        let resource = match resource {
            "" => account.map(|_| Resource::Details),
            "holdings" => Some(Resource::Holdings),
            "positions/all" => Some(Resource::Positions),
            "balances" => Some(Resource::Balances),
            "orders/v2" => Some(Resource::Orders),
            "recentOrders/v2" => Some(Resource::RecentOrders),
            "activities" => Some(Resource::Activities),
            _ => None,
        };
        Self { path: path.to_owned(), legacy: moved.is_some(), account, resource }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: &str = "45a3056a-eef6-4904-a68e-d3f90c3e07c5";

    #[test]
    fn a_path_under_the_old_prefix_means_the_same() {
        let old = Target::of(&format!("/api/v1/accounts/{ACCOUNT}/positions/all"));
        let new = Target::of(&format!("/accounts/{ACCOUNT}/positions/all"));

        assert_eq!(new.resource, Some(Resource::Positions));
        assert_eq!(new.account, ACCOUNT.parse().ok());
        assert!(old.legacy);
        assert_eq!(old, Target { legacy: true, ..new });
    }

    #[test]
    fn a_path_of_something_else_asks_for_nothing() {
        for path in ["/accounts/x", "/api/v1/authorizations", "/accounts/", "/api/v1x/accounts/"] {
            assert_eq!(Target::of(path).resource, None, "{path}");
        }
        assert_eq!(Target::of(&format!("/accounts/{ACCOUNT}/returnRates")).resource, None);
    }
}
