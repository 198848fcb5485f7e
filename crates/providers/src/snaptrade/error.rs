//! SnapTrade's ways of saying no. Its error bodies come in three shapes, and waiting times in two places.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::failure::{Advice, Failure};
use crate::http::Answer;

/// How long to wait for data that are being populated: their first sync takes minutes.
const POPULATING: Duration = Duration::from_mins(1);

/// The error bodies' fields, under both of their names.
#[derive(Default, Deserialize)]
struct Body {
    #[serde(alias = "default_detail")]
    detail: Option<String>,
    /// A string, or a number.
    #[serde(alias = "default_code")]
    code: Option<Value>,
}

/// Turns an answer that is not a success into what to do next.
pub(crate) fn failure(answer: &Answer) -> Failure {
    let status = answer.status.as_u16();
    let body: Body = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = match body.code {
        Some(Value::String(code)) => code,
        Some(Value::Number(code)) => code.to_string(),
        _ => status.to_string(),
    };
    let advice = match status {
        429 => Advice::StayAway(waiting_time(answer, body.detail.as_deref())),
        503 => answer
            .header("retry-after")
            .map_or(Advice::Retry(None), |_| Advice::StayAway(retry_after(answer))),
        425 => Advice::Wait(Some(POPULATING)),
        // Our own key or clock is wrong: somebody will mend it, and the command is not to blame.
        401 => Advice::Retry(None),
        408 | 500..=599 => Advice::Retry(retry_after(answer)),
        _ => Advice::GiveUp,
    };
    Failure {
        advice,
        message: format!(
            "SnapTrade answered {status}: {}",
            body.detail.as_deref().unwrap_or("no reason given")
        ),
        code,
        request_id: answer.header("x-request-id").map(str::to_owned),
    }
}

/// The longest of the resets whose allowance is used up, else the number in the sentence.
fn waiting_time(answer: &Answer, detail: Option<&str>) -> Option<Duration> {
    let reset = |kind: &str| {
        let used_up = answer.header(&format!("x-ratelimit{kind}-remaining"))?.trim() == "0";
        seconds(answer.header(&format!("x-ratelimit{kind}-reset"))?).filter(|_| used_up)
    };
    let resets = [reset(""), reset("-account")].into_iter().flatten().max();
    resets.or_else(|| retry_after(answer)).or_else(|| detail.and_then(available_in))
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    seconds(answer.header("retry-after")?)
}

/// "… Expected available in 7 seconds."
fn available_in(detail: &str) -> Option<Duration> {
    let (_, rest) = detail.split_once("available in ")?;
    seconds(rest.split_whitespace().next()?)
}

/// Whole seconds, between one and an hour: a number out of this range is a mistake, and it must not mean "at
/// once" or "never".
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX).clamp(1, 3600)))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use reqwest::StatusCode;
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &'static str) -> Failure {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let status = StatusCode::from_u16(status).expect("a status");
        failure(&Answer { status, headers, body: Bytes::from_static(body.as_bytes()) })
    }

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_throttled_call_stays_away_until_the_used_up_allowance_is_back() {
        let body = r#"{"detail":"Request was throttled. Expected available in 7 seconds.","status_code":429,"code":"0000"}"#;
        let both = [
            ("x-ratelimit-remaining", "12"),
            ("x-ratelimit-reset", "50"),
            ("x-ratelimit-account-remaining", "0"),
            ("x-ratelimit-account-reset", "33"),
        ];

        assert_eq!(answer(429, &both, body).advice, Advice::StayAway(Some(secs(33))));
        assert_eq!(answer(429, &[], body).advice, Advice::StayAway(Some(secs(7))));
        assert_eq!(answer(429, &[], "").advice, Advice::StayAway(None));
        assert_eq!(answer(429, &[], body).code, "0000");
    }

    #[test]
    fn a_locked_account_is_tried_again_and_left_alone_for_as_long_as_it_says() {
        let body = r#"{"detail":"A sync is under way.","status_code":503}"#;

        assert_eq!(answer(503, &[], body).advice, Advice::Retry(None));
        assert_eq!(answer(503, &[("retry-after", "20")], body).advice, Advice::StayAway(Some(secs(20))));
    }

    #[test]
    fn a_waiting_time_is_clamped_and_never_means_at_once() {
        for (header, waiting) in [
            ("5", Some(secs(5))),
            (" 5 ", Some(secs(5))),
            ("0", Some(secs(1))),
            ("9223372037", Some(secs(3600))),
            ("99999999999999999999", Some(secs(3600))),
            ("-1", None),
            ("1.5", None),
            ("inf", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(
                answer(429, &[("retry-after", header)], "").advice,
                Advice::StayAway(waiting),
                "{header}"
            );
        }
    }

    #[test]
    fn each_error_form_says_what_to_do_next() {
        let retry = Advice::Retry(None);
        for (status, body, advice, code) in [
            (
                425,
                r#"{"detail":"The resource is currently being populated.","code":3012}"#,
                Advice::Wait(Some(POPULATING)),
                "3012",
            ),
            (
                503,
                r#"{"detail":"Invalid response from Brokerage API.","status_code":503,"code":3002}"#,
                retry,
                "3002",
            ),
            (
                500,
                r#"{"detail":"Encountered an unexpected exception.","status_code":500,"code":"1000"}"#,
                retry,
                "1000",
            ),
            (502, "<html>bad gateway</html>", retry, "502"),
            (
                401,
                r#"{"default_detail":"Unable to verify signature sent","default_code":1076}"#,
                retry,
                "1076",
            ),
            (403, r#"{"detail":"no permission","code":"1066"}"#, Advice::GiveUp, "1066"),
            (
                403,
                r#"{"detail":"Feature is not enabled.","status_code":403,"code":"1141"}"#,
                Advice::GiveUp,
                "1141",
            ),
            (
                402,
                r#"{"detail":"Connection is disabled.","status_code":402,"code":3003}"#,
                Advice::GiveUp,
                "3003",
            ),
            (
                429,
                r#"{"detail":"Refreshed too recently.","code":"throttled"}"#,
                Advice::StayAway(None),
                "throttled",
            ),
            (
                404,
                r#"{"default_detail":"The requested resource does not exist.","default_code":1011}"#,
                Advice::GiveUp,
                "1011",
            ),
            (410, "", Advice::GiveUp, "410"),
            (302, "", Advice::GiveUp, "302"),
        ] {
            let failure = answer(status, &[("x-request-id", "req-1")], body);
            assert_eq!((failure.advice, failure.code.as_str()), (advice, code), "{status}");
            assert_eq!(failure.request_id.as_deref(), Some("req-1"));
        }
    }
}
