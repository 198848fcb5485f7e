//! Bodies that are proven and can't be used, or only just: kept and answered 202, never refused, never a failure.

use anyhow::{Context, ensure};
use serde_json::json;
use uuid::Uuid;

use super::case::{Case, Probe};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("not_an_object", "F60", "202 quarantined, the same answer every time", |probe| {
            Box::pin(not_an_object(probe))
        }),
        Case::new(
            "not_text",
            "F60",
            "202 quarantined for BOM, broken UTF-8, UTF-16, NUL bytes, lone surrogates",
            |probe| Box::pin(not_text(probe)),
        ),
        Case::new("too_deep", "F60", "202 quarantined for 200 and for 20,000 levels", |probe| {
            Box::pin(too_deep(probe))
        }),
        Case::new(
            "escaped_nul",
            "F60",
            "202: queued where it is in passing, quarantined in the id or the type",
            |probe| Box::pin(escaped_nul(probe)),
        ),
        Case::new(
            "numbers",
            "F60",
            "202 for numbers that no type holds, such as 1e400 and 1e-20000",
            |probe| Box::pin(numbers(probe)),
        ),
        Case::new("repeated_keys", "F60", "202, one answer every time", |probe| {
            Box::pin(repeated_keys(probe))
        }),
        Case::new(
            "no_usable_id",
            "F61",
            "202 quarantined for an id that is missing, empty, no string, too long",
            |probe| Box::pin(no_usable_id(probe)),
        ),
        Case::new("longest_id", "F61", "an id of 200 bytes is queued, one of 201 quarantined", |probe| {
            Box::pin(longest_id(probe))
        }),
        Case::new(
            "unknown_type",
            "",
            "202 quarantined for an event type that is unknown, missing or no word",
            |probe| Box::pin(unknown_type(probe)),
        ),
        Case::new(
            "unknown_account",
            "",
            "202 quarantined for an account that is unknown, missing or no UUID",
            |probe| Box::pin(unknown_account(probe)),
        ),
        Case::new("strange_times", "F60", "202, whatever eventTimestamp holds", |probe| {
            Box::pin(strange_times(probe))
        }),
        Case::new("large_members", "F60", "202 for long strings, long keys and many members", |probe| {
            Box::pin(large_members(probe))
        }),
    ]
}

/// Delivered twice: quarantined, and both times the same.
async fn set_aside(probe: &Probe, body: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let body = body.as_ref();
    let what = || format!("{:.60}", String::from_utf8_lossy(body));
    let first = probe.ask(probe.signed(body)).await?.has_outcome("quarantined").with_context(what)?;
    let second = probe.ask(probe.signed(body)).await?.has_outcome("quarantined").with_context(what)?;
    ensure!(first == second, "the same delivery is answered {first:?} and then {second:?}");
    Ok(())
}

/// Delivered twice: taken in, then a repetition of the same row; or set aside both times.
async fn taken_in(probe: &Probe, body: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let body = body.as_ref();
    let what = || format!("{:.60}", String::from_utf8_lossy(body));
    let first = probe.ask(probe.signed(body)).await?.receipt().with_context(what)?;
    let second = probe.ask(probe.signed(body)).await?.receipt().with_context(what)?;
    let words = (first.outcome.as_str(), second.outcome.as_str());
    ensure!(
        [("queued", "duplicate"), ("quarantined", "quarantined")].contains(&words),
        "{words:?} for {}",
        what()
    );
    ensure!(first.inbox_id == second.inbox_id, "two rows for {}", what());
    Ok(())
}

async fn not_an_object(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    for body in [
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "7".to_owned(),
        "\"{}\"".to_owned(),
        " ".to_owned(),
        "NaN".to_owned(),
        format!("[{{\"webhookId\":\"{id}\"}}]"),
        format!("webhookId={id}&eventType=USER_REGISTERED"),
        format!("<xml id=\"{id}\"/>"),
        format!("{{\"webhookId\":\"{id}\",}}"),
        format!("{{'webhookId':'{id}'}}"),
        format!("{{\"webhookId\":\"{id}\",\"eventType\":\"USER_REGISTERED\"}}{{}}"),
        format!("// {id}\n{{}}"),
    ] {
        set_aside(probe, body).await?;
    }
    Ok(())
}

async fn not_text(probe: &Probe) -> anyhow::Result<()> {
    let event = super::snaptrade::event(&Probe::id());
    let utf16: Vec<u8> = event.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (start, end) = event.split_at(event.len() - 2);
    for body in [
        format!("\u{feff}{event}").into_bytes(),
        utf16,
        [start.as_bytes(), b"\xff", end.as_bytes()].concat(),
        [start.as_bytes(), b"\xc0\x80", end.as_bytes()].concat(),
        [start.as_bytes(), b"\xed\xa0\x80", end.as_bytes()].concat(),
        [start.as_bytes(), b"\0", end.as_bytes()].concat(),
        [start.as_bytes(), br"\ud800", end.as_bytes()].concat(),
        [start.as_bytes(), br"\udc00\ud800", end.as_bytes()].concat(),
        [start.as_bytes(), b"\x07", end.as_bytes()].concat(),
        vec![0; 64],
        vec![0xff; 64],
    ] {
        set_aside(probe, body).await?;
    }
    Ok(())
}

async fn too_deep(probe: &Probe) -> anyhow::Result<()> {
    for levels in [200, 20_000] {
        let id = Probe::id();
        let nested = [("[", "]"), ("{\"a\":", "}")].map(|(open, close)| {
            format!(r#"{{"webhookId":"{id}","x":{}1{}}}"#, open.repeat(levels), close.repeat(levels))
        });
        for body in nested {
            set_aside(probe, body).await?;
        }
    }
    // Never closed: what is counted while it is read must not be kept for each level.
    set_aside(probe, "[".repeat(100_000)).await
}

async fn escaped_nul(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    let aside = |member: &str| format!(r#"{{"eventType":"USER_REGISTERED",{member}}}"#);
    set_aside(probe, aside(&format!(r#""webhookId":"{id}\u0000""#))).await?;
    set_aside(probe, format!(r#"{{"webhookId":"{id}","eventType":"USER_REGISTERED\u0000"}}"#)).await?;
    for member in [r#""userId":"a\u0000b""#, r#""details":{"\u0000":["\u0000"]}"#, r#""x":"\\u0000""#] {
        let body = format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED",{member}}}"#, Probe::id());
        probe.ask(probe.signed(body.as_str())).await?.has_outcome("queued")?;
        probe.ask(probe.signed(body)).await?.has_outcome("duplicate")?;
    }
    // In what an event changes: the user and the connection that it names.
    let user = format!(r#"{{"webhookId":"{}","eventType":"USER_DELETED","userId":"a\u0000b"}}"#, Probe::id());
    taken_in(probe, user).await
}

async fn numbers(probe: &Probe) -> anyhow::Result<()> {
    let digits = "9".repeat(100_000);
    let fraction = format!("0.{digits}");
    for number in [
        "1e400",
        "-1e400",
        "1e-20000",
        "1e-400",
        "0.0000000000000000000000000000001",
        "123456789012345678901234567890",
        "1e131073",
        "-0",
        "1.10",
        "1E+2",
        &digits,
        &fraction,
    ] {
        let body = format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED","x":{number}}}"#, Probe::id());
        taken_in(probe, body).await?;
    }
    for number in ["01", "+1", ".5", "1.", "0x10", "Infinity", "1e", "--1"] {
        let body = format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED","x":{number}}}"#, Probe::id());
        set_aside(probe, body).await?;
    }
    Ok(())
}

async fn repeated_keys(probe: &Probe) -> anyhow::Result<()> {
    let (one, other) = (Probe::id(), Probe::id());
    for body in [
        format!(r#"{{"webhookId":"{one}","webhookId":"{other}","eventType":"USER_REGISTERED"}}"#),
        format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED","eventType":"NONE"}}"#, Probe::id()),
        format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED","a":{{"b":1,"b":2}}}}"#, Probe::id()),
        format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED","a":1,"\u0061":2}}"#, Probe::id()),
    ] {
        taken_in(probe, body).await?;
    }
    Ok(())
}

async fn no_usable_id(probe: &Probe) -> anyhow::Result<()> {
    let long = format!("\"{}\"", "x".repeat(10_000));
    for id in
        ["\"\"", "null", "7", "true", "{}", "[\"a\"]", r#""a\nb""#, r#""a\u0000b""#, r#""\u0085""#, &long]
    {
        let body =
            format!(r#"{{"eventType":"USER_REGISTERED","userId":"{}","webhookId":{id}}}"#, Probe::id());
        set_aside(probe, body).await?;
    }
    let none = json!({ "eventType": "USER_REGISTERED", "userId": Probe::id(), "WebhookId": "a" });
    set_aside(probe, none.to_string()).await
}

async fn longest_id(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    let fits = format!("{id}{}", "x".repeat(200 - id.len()));
    probe.ask(probe.signed(super::snaptrade::event(&fits))).await?.has_outcome("queued")?;
    set_aside(probe, super::snaptrade::event(&format!("{fits}x"))).await
}

async fn unknown_type(probe: &Probe) -> anyhow::Result<()> {
    let long = format!("\"{}\"", "X".repeat(100_000));
    for event_type in
        ["\"USER_DANCED\"", "\"user_registered\"", "\"\"", "null", "7", "[]", "\" USER_REGISTERED\"", &long]
    {
        let body = format!(r#"{{"webhookId":"{}","eventType":{event_type}}}"#, Probe::id());
        set_aside(probe, body).await?;
    }
    set_aside(probe, json!({ "webhookId": Probe::id() }).to_string()).await
}

async fn unknown_account(probe: &Probe) -> anyhow::Result<()> {
    let unknown = format!("\"{}\"", Uuid::new_v4());
    for account in [&*unknown, "\"a\"", "\"\"", "null", "7", "\"../..\"", r#""\u0000""#] {
        let id = Probe::id();
        let body =
            format!(r#"{{"webhookId":"{id}","eventType":"ACCOUNT_HOLDINGS_UPDATED","accountId":{account}}}"#);
        set_aside(probe, body).await?;
    }
    let none = json!({ "webhookId": Probe::id(), "eventType": "ACCOUNT_TRANSACTIONS_UPDATED" });
    set_aside(probe, none.to_string()).await
}

async fn strange_times(probe: &Probe) -> anyhow::Result<()> {
    for time in [
        "\"+262142-12-31T23:59:59Z\"",
        "\"-262143-01-01T00:00:00Z\"",
        "\"0000-00-00T00:00:00Z\"",
        "\"9999-12-31T23:59:60Z\"",
        "\"2026-02-30T00:00:00Z\"",
        "\"infinity\"",
        "\"\"",
        "null",
        "1e308",
    ] {
        for event_type in ["CONNECTION_BROKEN", "USER_REGISTERED"] {
            let body = format!(
                r#"{{"webhookId":"{}","eventType":"{event_type}","brokerageAuthorizationId":"{}","eventTimestamp":{time}}}"#,
                Probe::id(),
                Uuid::new_v4()
            );
            taken_in(probe, body).await?;
        }
    }
    Ok(())
}

async fn large_members(probe: &Probe) -> anyhow::Result<()> {
    let room = probe.target.limits.webhook_body / 2;
    let (long, many) =
        ("x".repeat(room), (0..room / 16).map(|i| format!("\"k{i}\":{i}")).collect::<Vec<_>>());
    for member in [
        format!(r#""userId":"{long}""#),
        format!(r#""{long}":1"#),
        many.join(","),
        format!(r#""clientId":"{}""#, "\u{1f980}".repeat(room / 8)),
    ] {
        let body = format!(r#"{{"webhookId":"{}","eventType":"USER_REGISTERED",{member}}}"#, Probe::id());
        taken_in(probe, body).await?;
    }
    // A user's name that no row holds, in an event that is about a user.
    let body = format!(r#"{{"webhookId":"{}","eventType":"USER_DELETED","userId":"{long}"}}"#, Probe::id());
    taken_in(probe, body).await
}
