//! The W3C trace context that a request brings and that its command carries through queue and ledger.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceFlags, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};

/// One place in one trace.
#[derive(Clone, Debug)]
pub struct Trace(SpanContext);

impl Trace {
    /// A new trace.
    pub fn start() -> Self {
        let ids = RandomIdGenerator::default();
        Self(SpanContext::new(
            ids.new_trace_id(),
            ids.new_span_id(),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        ))
    }

    /// Goes on with the trace that a request or a message names. An invalid `traceparent` starts a new
    /// trace and discards `tracestate`, as the standard asks.
    pub fn follow(traceparent: Option<&str>, tracestate: Option<&str>) -> Self {
        let Some(traceparent) = traceparent else { return Self::start() };
        let headers = Headers { traceparent, tracestate: tracestate.unwrap_or_default() };
        let context = TraceContextPropagator::new().extract(&headers);
        let parent = context.span().span_context().clone();
        if parent.is_valid() { Self(parent).child() } else { Self::start() }
    }

    /// A further step of the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        let parent = &self.0;
        Self(SpanContext::new(
            parent.trace_id(),
            RandomIdGenerator::default().new_span_id(),
            parent.trace_flags(),
            false,
            parent.trace_state().clone(),
        ))
    }

    /// 32 hexadecimal digits.
    pub fn id(&self) -> String {
        self.0.trace_id().to_string()
    }

    /// The W3C header's value.
    pub fn traceparent(&self) -> String {
        let Self(context) = self;
        format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags().to_u8() & 1)
    }

    /// The W3C header's value; empty where no vendor added anything.
    pub fn tracestate(&self) -> String {
        self.0.trace_state().header()
    }
}

/// The 32 digits of the trace that a stored `traceparent` names.
pub fn id_of(traceparent: &str) -> Option<&str> {
    traceparent.split('-').nth(1).filter(|id| id.len() == 32 && opentelemetry::TraceId::from_hex(id).is_ok())
}

struct Headers<'a> {
    traceparent: &'a str,
    tracestate: &'a str,
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(self.traceparent),
            "tracestate" => Some(self.tracestate),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_request_with_a_trace_goes_on_in_it() {
        let trace = Trace::follow(Some(PARENT), Some("vendor=1"));

        assert_eq!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(trace.tracestate(), "vendor=1");
        assert_ne!(trace.traceparent(), PARENT, "our step has an id of its own");
        assert_eq!(id_of(&trace.traceparent()), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    }

    #[test]
    fn an_invalid_header_starts_a_new_trace_and_drops_the_state() {
        for bad in [
            "",
            "nonsense",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        ] {
            let trace = Trace::follow(Some(bad), Some("vendor=1"));

            assert_ne!(trace.id(), "4bf92f3577b34da6a3ce929d0e0e4736", "{bad}");
            assert_eq!(trace.tracestate(), "", "{bad}");
        }
    }

    #[test]
    fn an_unsampled_trace_stays_unsampled() {
        let trace = Trace::follow(Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"), None);

        assert!(trace.traceparent().ends_with("-00"));
        assert!(Trace::start().traceparent().ends_with("-01"));
    }
}
