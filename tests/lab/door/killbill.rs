//! Kill Bill's push notifications: no signature and no id, so the route proves the sender and the content makes the
//! identity.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use uuid::Uuid;

use super::case::{Case, Need, Probe};
use super::raw::Request;

const ADMISSION: &str = "x-callback-admission";
const PATH: &str = "/webhooks/killbill/door";

pub(super) fn cases() -> Vec<Case> {
    let inside = vec![
        Case::new("right_token", "", "202 queued at the internal listener", |probe| {
            Box::pin(right_token(probe))
        }),
        Case::new("wrong_token", "", "401 for a token that is missing, wrong or doubled; no row", |probe| {
            Box::pin(wrong_token(probe))
        }),
        Case::new(
            "sender_asks_for_h2c",
            "",
            "202 in HTTP/1: the sender's wish to upgrade is passed over",
            |probe| Box::pin(sender_asks_for_h2c(probe)),
        ),
        Case::new(
            "duplicate_payment",
            "F55",
            "one payment fact: queued, then duplicate with the same inbox_id",
            |probe| Box::pin(duplicate_payment(probe)),
        ),
        Case::new("same_event_of_two_tenants", "", "queued for each tenant", |probe| {
            Box::pin(same_event_of_two_tenants(probe))
        }),
        Case::new("strange_tenants", "F60", "404 for a segment that names no tenant", |probe| {
            Box::pin(strange_tenants(probe))
        }),
        Case::new("broken_content", "F60", "202 quarantined, never refused", |probe| {
            Box::pin(broken_content(probe))
        }),
        Case::new(
            "ambiguous_money",
            "F60",
            "202 quarantined where a key stands twice or the status is unknown",
            |probe| Box::pin(ambiguous_money(probe)),
        ),
        Case::new("too_large_inside", "F59", "413 and 415 at the internal listener too", |probe| {
            Box::pin(too_large_inside(probe))
        }),
    ];
    let outside =
        Case::new("not_outside", "", "404 at the public listener, also with the right token", |probe| {
            Box::pin(not_outside(probe))
        });
    inside.into_iter().map(|case| case.needs(Need::Internal)).chain([outside]).collect()
}

/// An event without data: `object` makes it one that nobody has sent before.
fn push(event_type: &str, object: Uuid, metadata: Option<&str>) -> String {
    json!({
        "eventType": event_type,
        "accountId": "7b0f1d0e-3a55-4f6c-9a0b-6f6f6f0b1a11",
        "objectType": "INVOICE",
        "objectId": object,
        "metaData": metadata,
    })
    .to_string()
}

fn metadata(status: &str) -> Value {
    json!({
        "paymentTransactionId": Uuid::new_v4(),
        "amount": 15000,
        "currency": "KRW",
        "status": status,
        "transactionType": "PURCHASE",
        "effectiveDate": "2026-05-01T03:04:05.000Z",
    })
}

fn admitted(probe: &Probe, path: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::post(path, body).header(ADMISSION, &probe.target.secrets.admission_token)
}

async fn right_token(probe: &Probe) -> anyhow::Result<()> {
    let body = push("INVOICE_CREATION", Uuid::new_v4(), None);
    probe.ask_inside(admitted(probe, PATH, body)).await?.has_outcome("queued")?;
    Ok(())
}

async fn wrong_token(probe: &Probe) -> anyhow::Result<()> {
    let token = &probe.target.secrets.admission_token;
    let body = push("INVOICE_CREATION", Uuid::new_v4(), None);
    probe.ask_inside(Request::post(PATH, body.as_str())).await?.refuses(401, "unauthenticated")?;
    let (longer, bearer, upper) = (format!("{token}x"), format!("Bearer {token}"), token.to_uppercase());
    for wrong in [
        b"".as_slice(),
        b"x",
        b"\xff",
        &token.as_bytes()[1..],
        longer.as_bytes(),
        bearer.as_bytes(),
        upper.as_bytes(),
    ] {
        if wrong == token.as_bytes() {
            continue;
        }
        let request = Request::post(PATH, body.as_str()).header(ADMISSION, wrong);
        probe.ask_inside(request).await?.refuses(401, "unauthenticated")?;
    }
    let twice = admitted(probe, PATH, body.as_str()).header(ADMISSION, token);
    probe.ask_inside(twice).await?.refuses(401, "unauthenticated")?;
    let other = Request::post(PATH, body.as_str()).bearer(token);
    probe.ask_inside(other).await?.refuses(401, "unauthenticated")?;
    probe.ask_inside(admitted(probe, PATH, body)).await?.has_outcome("queued")?;
    Ok(())
}

/// The first request of Java's HTTP client on a plain connection.
async fn sender_asks_for_h2c(probe: &Probe) -> anyhow::Result<()> {
    let request = admitted(probe, PATH, push("INVOICE_CREATION", Uuid::new_v4(), None));
    let request = request
        .header("connection", "Upgrade, HTTP2-Settings")
        .header("upgrade", "h2c")
        .header("http2-settings", "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA")
        .header("user-agent", "KillBill/1.0")
        .header("content-type", "application/json; charset=UTF-8");
    probe.ask_inside(request).await?.has_outcome("queued")?;
    Ok(())
}

async fn duplicate_payment(probe: &Probe) -> anyhow::Result<()> {
    let body = push("PAYMENT_SUCCESS", Uuid::new_v4(), Some(&metadata("PENDING").to_string()));
    let first = probe.ask_inside(admitted(probe, PATH, body.as_str())).await?.has_outcome("queued")?;
    for _ in 0..3 {
        let again = probe.ask_inside(admitted(probe, PATH, body.as_str())).await?.has_outcome("duplicate")?;
        ensure!(
            (again.inbox_id, again.command_id) == (first.inbox_id, first.command_id),
            "the repetition of {first:?} is answered {again:?}"
        );
    }
    Ok(())
}

async fn same_event_of_two_tenants(probe: &Probe) -> anyhow::Result<()> {
    let body = push("INVOICE_CREATION", Uuid::new_v4(), Some(r#"{"a":1}"#));
    for tenant in ["door", "door-2"] {
        let path = format!("/webhooks/killbill/{tenant}");
        probe.ask_inside(admitted(probe, &path, body.as_str())).await?.has_outcome("queued")?;
        probe.ask_inside(admitted(probe, &path, body.as_str())).await?.has_outcome("duplicate")?;
    }
    Ok(())
}

async fn strange_tenants(probe: &Probe) -> anyhow::Result<()> {
    let (body, long) = (push("INVOICE_CREATION", Uuid::new_v4(), None), "x".repeat(65));
    for tenant in ["", "%00", "%ff", "a%20b", "..%2fv1", "%2e%2e", "a%2fb", "a/b", "*", "a%0ab", &long] {
        let request = admitted(probe, &format!("/webhooks/killbill/{tenant}"), body.as_str());
        probe.ask_inside(request).await?.is(404).with_context(|| format!("tenant `{tenant:.20}`"))?;
    }
    Ok(())
}

async fn broken_content(probe: &Probe) -> anyhow::Result<()> {
    let object = Uuid::new_v4();
    let bare = |event_type: &str, metadata: Value| {
        json!({ "eventType": event_type, "objectId": object, "objectType": "PAYMENT", "metaData": metadata, "x": Probe::id() })
            .to_string()
    };
    let unknown = push("NO_SUCH_EVENT", object, None);
    let bodies = [
        format!("{{ {}", Probe::id()),
        format!("[\"{}\"]", Probe::id()),
        unknown,
        bare("PAYMENT_SUCCESS", Value::Null),
        bare("PAYMENT_SUCCESS", json!("{")),
        bare("PAYMENT_SUCCESS", json!("[]")),
        bare("PAYMENT_SUCCESS", json!({ "not": "a string" })),
        bare("PAYMENT_SUCCESS", json!("{\"status\":\"\u{0}\"}")),
        bare("PAYMENT_SUCCESS", json!(format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)))),
        bare("payment_success", json!(metadata("SUCCESS").to_string())),
    ];
    for body in bodies {
        let first = probe.ask_inside(admitted(probe, PATH, body.as_str())).await?;
        let first = first.has_outcome("quarantined").with_context(|| format!("{body:.80}"))?;
        let second = probe.ask_inside(admitted(probe, PATH, body)).await?.has_outcome("quarantined")?;
        ensure!(first == second, "the same delivery is answered {first:?} and then {second:?}");
    }
    for body in [&b""[..], b"\xff", b"\0", b"\xef\xbb\xbf{}"] {
        probe.ask_inside(admitted(probe, PATH, body)).await?.has_outcome("quarantined")?;
    }
    Ok(())
}

async fn ambiguous_money(probe: &Probe) -> anyhow::Result<()> {
    let with = |member: &str| {
        let text = metadata("SUCCESS").to_string();
        push("PAYMENT_SUCCESS", Uuid::new_v4(), Some(&text.replacen('{', &format!("{{{member},"), 1)))
    };
    let unknown = push("PAYMENT_SUCCESS", Uuid::new_v4(), Some(&metadata("PERHAPS").to_string()));
    let twice = push("PAYMENT_SUCCESS", Uuid::new_v4(), Some(&metadata("SUCCESS").to_string()));
    let twice = twice.replacen('{', "{\"eventType\":\"PAYMENT_FAILED\",", 1);
    let amount = |number: &str| {
        let text = metadata("SUCCESS").to_string().replace("15000", number);
        push("PAYMENT_SUCCESS", Uuid::new_v4(), Some(&text))
    };
    for body in [
        with(r#""amount":999"#),
        with(r#""status":"PENDING""#),
        unknown,
        twice,
        amount("1e400"),
        amount("1e-20000"),
        amount("\"15000\""),
        amount("123456789012345678901234567890123456789"),
    ] {
        let answer = probe.ask_inside(admitted(probe, PATH, body.as_str())).await?;
        answer.has_outcome("quarantined").with_context(|| body.clone())?;
    }
    Ok(())
}

async fn too_large_inside(probe: &Probe) -> anyhow::Result<()> {
    let large = "x".repeat(probe.target.limits.webhook_body + 1);
    let request = admitted(probe, PATH, large);
    let head = request.head(probe.internal()?.host());
    let mut connection = super::raw::Connection::open(probe.internal()?).await?;
    connection.write(&head).await.context("sending a head")?;
    let answer = connection.answer(false).await?;
    probe.note("a head that announces a body over the limit".to_owned(), answer.as_ref());
    answer.context("no answer")?.refuses(413, "body_too_large")?;
    let compressed = admitted(probe, PATH, "x").header("content-encoding", "gzip");
    probe.ask_inside(compressed).await?.refuses(415, "encoding_not_supported")
}

async fn not_outside(probe: &Probe) -> anyhow::Result<()> {
    let body = push("INVOICE_CREATION", Uuid::new_v4(), None);
    probe.ask(admitted(probe, PATH, body)).await?.refuses(404, "not_found")
}
