//! Senders that follow Standard Webhooks: `{id}.{timestamp}.{body}` is signed, and the id is a header.

use std::time::SystemTime;

use anyhow::{Context, ensure};
use testkit::standard::signature;

use super::case::{Case, Need, Probe};
use super::raw::Request;

/// Headers in the order that the specification names them.
const HEADERS: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

/// Seconds within and beyond the tolerance of five minutes, with room for the way and for two clocks.
const WITHIN: i64 = 240;
const BEYOND: i64 = 360;

/// A secret that no sender has.
const FOREIGN_SECRET: &str = "whsec_Zm9yZWlnbmZvcmVpZ25mb3JlaWduZm9yZWln";

pub(super) fn cases() -> Vec<Case> {
    let cases = vec![
        Case::new(
            "right_signature",
            "",
            "202 queued, then duplicate for a new attempt with a new time",
            |probe| Box::pin(right_signature(probe)),
        ),
        Case::new(
            "rotation",
            "",
            "202 for each secret of a sender, and for one right signature among several",
            |probe| Box::pin(rotation(probe)),
        ),
        Case::new(
            "wrong_signature",
            "",
            "401, and no row: the same event rightly signed is queued",
            |probe| Box::pin(wrong_signature(probe)),
        ),
        Case::new("wrong_id", "", "401 where another id was signed; no row", |probe| {
            Box::pin(wrong_id(probe))
        }),
        Case::new(
            "missing_or_doubled_header",
            "",
            "401 for each header that is missing or comes twice",
            |probe| Box::pin(missing_or_doubled_header(probe)),
        ),
        Case::new(
            "skew",
            "",
            "202 up to five minutes early or late, 401 beyond and for no time at all",
            |probe| Box::pin(skew(probe)),
        ),
        Case::new(
            "foreign_sender",
            "",
            "401 for a sender that is none, signed with the secret of one",
            |probe| Box::pin(foreign_sender(probe)),
        ),
        Case::new(
            "signed_bytes",
            "",
            "202: the bytes that came are what is signed, whatever they say",
            |probe| Box::pin(signed_bytes(probe)),
        ),
        Case::new("broken_content", "F60", "202 quarantined, never refused", |probe| {
            Box::pin(broken_content(probe))
        }),
        Case::new("unusable_id", "F61", "202 quarantined for an id that is empty or too long", |probe| {
            Box::pin(unusable_id(probe))
        }),
    ];
    cases.into_iter().map(|case| case.needs(Need::StandardSender)).collect()
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The first sender of the settings, and its first secret.
fn sender(probe: &Probe) -> anyhow::Result<(&str, &str)> {
    let (name, secret) = probe.target.secrets.standard.first().context("there is no sender")?;
    Ok((name, secret))
}

fn delivery(source: &str, body: impl Into<Vec<u8>>, values: [&str; 3]) -> Request {
    let request = Request::post(format!("/webhooks/standard/{source}"), body);
    HEADERS.into_iter().zip(values).fold(request, |request, (name, value)| request.header(name, value))
}

/// Rightly signed, now.
fn signed(probe: &Probe, id: &str, body: impl Into<Vec<u8>>) -> anyhow::Result<Request> {
    let (source, secret) = sender(probe)?;
    let (body, time) = (body.into(), now().to_string());
    let proof = signature(secret, id, &time, &body);
    Ok(delivery(source, body, [id, &time, &proof]))
}

const BODY: &str = r#"{"type":"door.tried","data":{}}"#;

async fn right_signature(probe: &Probe) -> anyhow::Result<()> {
    let ((source, secret), id) = (sender(probe)?, Probe::id());
    let first = probe.ask(signed(probe, &id, BODY)?).await?.has_outcome("queued")?;
    let later = (now() + 7).to_string();
    let proof = signature(secret, &id, &later, BODY.as_bytes());
    let again = probe.ask(delivery(source, BODY, [&id, &later, &proof])).await?.has_outcome("duplicate")?;
    ensure!(again.inbox_id == first.inbox_id, "inbox_id {} and not {}", again.inbox_id, first.inbox_id);
    Ok(())
}

async fn rotation(probe: &Probe) -> anyhow::Result<()> {
    let (source, _) = sender(probe)?;
    for (_, secret) in probe.target.secrets.standard.iter().filter(|(name, _)| name == source) {
        let (id, time) = (Probe::id(), now().to_string());
        let right = signature(secret, &id, &time, BODY.as_bytes());
        let other = signature(FOREIGN_SECRET, &id, &time, BODY.as_bytes());
        for list in [
            right.clone(),
            format!("{other} {right}"),
            format!("{right} {other}"),
            format!("v1a,{} {right}", "A".repeat(86)),
            format!("v2,x nonsense v1, v1,= {right}"),
        ] {
            let receipt = probe.ask(delivery(source, BODY, [&id, &time, &list])).await?.receipt()?;
            ensure!(receipt.outcome != "quarantined", "a rightly signed delivery was set aside");
        }
    }
    Ok(())
}

async fn wrong_signature(probe: &Probe) -> anyhow::Result<()> {
    let ((source, secret), id, time) = (sender(probe)?, Probe::id(), now().to_string());
    let right = signature(secret, &id, &time, BODY.as_bytes());
    let bare = right.trim_start_matches("v1,").to_owned();
    let many = "v1,AAAA ".repeat(1000);
    for wrong in [
        signature(FOREIGN_SECRET, &id, &time, BODY.as_bytes()),
        signature(secret, &id, &time, b"{}"),
        signature(secret, &id, "1", BODY.as_bytes()),
        format!("v1a,{bare}"),
        format!("v1={bare}"),
        format!("V1,{bare}"),
        bare,
        String::new(),
        "v1,".to_owned(),
        many,
    ] {
        probe.ask(delivery(source, BODY, [&id, &time, &wrong])).await?.refuses(401, "unauthenticated")?;
    }
    let altered = probe.ask(delivery(source, format!("{BODY}\n"), [&id, &time, &right])).await?;
    altered.refuses(401, "unauthenticated")?;
    probe.ask(signed(probe, &id, BODY)?).await?.has_outcome("queued")?;
    Ok(())
}

async fn wrong_id(probe: &Probe) -> anyhow::Result<()> {
    let ((source, secret), id, time) = (sender(probe)?, Probe::id(), now().to_string());
    let proof = signature(secret, &Probe::id(), &time, BODY.as_bytes());
    probe.ask(delivery(source, BODY, [&id, &time, &proof])).await?.refuses(401, "unauthenticated")?;
    probe.ask(signed(probe, &id, BODY)?).await?.has_outcome("queued")?;
    Ok(())
}

async fn missing_or_doubled_header(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    for name in HEADERS {
        let whole = signed(probe, &id, BODY)?;
        let mut without = whole.clone();
        without.headers.retain(|(known, _)| *known != name);
        probe.ask(without).await?.refuses(401, "unauthenticated")?;
        let value = whole.value(name).unwrap_or_default().to_vec();
        probe.ask(whole.header(name, value)).await?.refuses(401, "unauthenticated")?;
        let mut garbled = signed(probe, &id, BODY)?;
        for (_, value) in garbled.headers.iter_mut().filter(|(known, _)| *known == name) {
            *value = b"\xff\xfe".to_vec();
        }
        probe.ask(garbled).await?.refuses(401, "unauthenticated")?;
    }
    probe.ask(signed(probe, &id, BODY)?).await?.has_outcome("queued")?;
    Ok(())
}

async fn skew(probe: &Probe) -> anyhow::Result<()> {
    let (source, secret) = sender(probe)?;
    for shift in [-WITHIN, WITHIN] {
        let (id, time) = (Probe::id(), (now() + shift).to_string());
        let proof = signature(secret, &id, &time, BODY.as_bytes());
        probe.ask(delivery(source, BODY, [&id, &time, &proof])).await?.has_outcome("queued")?;
    }
    let id = Probe::id();
    let shifted = [now() - BEYOND, now() + BEYOND, -1, 0, i64::MIN, i64::MAX].map(|time| time.to_string());
    let milliseconds = (now() * 1000).to_string();
    let spelt =
        ["", " ", "now", "1e9", "1.5", "99999999999999999999", "-", "2026-05-01T00:00:00Z", &milliseconds];
    for time in shifted.iter().map(String::as_str).chain(spelt) {
        let proof = signature(secret, &id, time.trim(), BODY.as_bytes());
        let answer = probe.ask(delivery(source, BODY, [&id, time, &proof])).await?;
        answer.refuses(401, "unauthenticated").with_context(|| format!("signed at `{time}`"))?;
    }
    probe.ask(signed(probe, &id, BODY)?).await?.has_outcome("queued")?;
    Ok(())
}

async fn foreign_sender(probe: &Probe) -> anyhow::Result<()> {
    let ((source, secret), id, time) = (sender(probe)?, Probe::id(), now().to_string());
    let proof = signature(secret, &id, &time, BODY.as_bytes());
    let (longer, upper) = (format!("{source}x"), source.to_uppercase());
    for other in
        ["nobody", &longer, &upper, "%00", "*", "..", "default"].into_iter().filter(|other| *other != source)
    {
        let answer = probe.ask(delivery(other, BODY, [&id, &time, &proof])).await?;
        answer.is_one_of(&[401, 404]).with_context(|| format!("as `{other}`"))?;
    }
    Ok(())
}

async fn signed_bytes(probe: &Probe) -> anyhow::Result<()> {
    for body in [
        "{\"type\":\"a\",\"data\":\"\u{1f980} \u{2028} caf\u{e9}\"}",
        r#"{"type":"a","url":"https:\/\/example.com","e":"\u00e9"}"#,
        r#"{"z":1.10,"a":2,"type":"a"}"#,
        "{ \"type\" : \"a\" }\r\n\n",
        r#"{"type":"a","n":123456789012345678901234567890}"#,
    ] {
        let id = Probe::id();
        probe.ask(signed(probe, &id, body)?).await?.has_outcome("queued").context(body)?;
        probe.ask(signed(probe, &id, body)?).await?.has_outcome("duplicate").context(body)?;
    }
    Ok(())
}

async fn broken_content(probe: &Probe) -> anyhow::Result<()> {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    for body in [
        b"{".as_slice(),
        b"",
        b"[]",
        b"null",
        b"a=1&b=2",
        b"\xef\xbb\xbf{}",
        b"{\"type\":\"\xff\"}",
        b"\0",
        br#"{"a":"\ud800"}"#,
        br#"{"a":1e400}"#,
        deep.as_bytes(),
    ] {
        let id = Probe::id();
        let first = probe.ask(signed(probe, &id, body)?).await?.has_outcome("quarantined")?;
        let second = probe.ask(signed(probe, &id, body)?).await?.has_outcome("quarantined")?;
        ensure!(first == second, "the same delivery is answered {first:?} and then {second:?}");
    }
    for body in
        [r#"{"type":"a\u0000b","x":"\u0000"}"#, r#"{"x":1e-20000}"#, r#"{"a":1,"a":2}"#, r#"{"type":7}"#]
    {
        probe.ask(signed(probe, &Probe::id(), body)?).await?.receipt()?;
    }
    Ok(())
}

async fn unusable_id(probe: &Probe) -> anyhow::Result<()> {
    let (long, longer) = ("x".repeat(201), "x".repeat(10_000));
    for id in ["", &*long, &longer] {
        let body = format!(r#"{{"type":"a","data":"{}"}}"#, Probe::id());
        probe.ask(signed(probe, id, body)?).await?.has_outcome("quarantined")?;
    }
    for id in ["*", "a:b", "../..", "a.b.c", "'--", "%00"].map(|id| format!("{id}{}", Probe::id())) {
        probe.ask(signed(probe, &id, BODY)?).await?.has_outcome("queued")?;
    }
    Ok(())
}
