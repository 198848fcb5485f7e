//! The variable segment of a path. One that can't be read names nothing, so the answer is 404.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use uuid::Uuid;

use crate::problem::Problem;

/// A segment as it arrives, whatever it holds.
pub(crate) type Segment = Result<Path<String>, PathRejection>;

/// The segment as a name.
pub(crate) fn name(segment: Segment) -> Result<String, Problem> {
    segment.map(|Path(name)| name).map_err(|_| Problem::NotFound)
}

/// The segment as an id.
pub(crate) fn id(segment: Segment) -> Result<Uuid, Problem> {
    name(segment)?.parse().map_err(|_| Problem::NotFound)
}
