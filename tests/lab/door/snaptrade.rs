//! SnapTrade's webhooks: who may send, and what identifies a delivery.

use anyhow::ensure;
use serde_json::json;
use testkit::sandbox::snaptrade::webhook::{self, signature};
use uuid::Uuid;

use super::case::{Case, Need, Probe};
use super::raw::Request;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("right_signature", "", "202 queued", |probe| Box::pin(right_signature(probe))),
        Case::new(
            "wrong_signature",
            "",
            "401, and no row: the same event rightly signed is queued",
            |probe| Box::pin(wrong_signature(probe)),
        ),
        Case::new(
            "doubled_signature",
            "",
            "401 for two signatures, also where both are right; no row",
            |probe| Box::pin(doubled_signature(probe)),
        ),
        Case::new("another_bodys_signature", "", "401, and no row", |probe| {
            Box::pin(another_bodys_signature(probe))
        }),
        Case::new(
            "canonical_form",
            "",
            "202 where the canonical form was signed and another one was sent",
            |probe| Box::pin(canonical_form(probe)),
        ),
        Case::new(
            "older_secret",
            "",
            "202 for the right webhookSecret; 401 for a wrong one, and no row",
            |probe| Box::pin(older_secret(probe)),
        ),
        Case::new(
            "older_secret_beside_wrong_signature",
            "",
            "401: a signature decides where there is one",
            |probe| Box::pin(older_secret_beside_wrong_signature(probe)),
        ),
        Case::new("duplicate", "F55", "queued, then duplicate with the same inbox_id every time", |probe| {
            Box::pin(duplicate(probe))
        }),
        Case::new("misspelt_id", "F61", "webookId identifies; webhookId goes before it", |probe| {
            Box::pin(misspelt_id(probe))
        }),
        Case::new(
            "same_id_other_body",
            "F56",
            "quarantined every time with the same inbox_id, never duplicate",
            |probe| Box::pin(same_id_other_body(probe)),
        ),
        Case::new(
            "same_id_other_bytes",
            "F56",
            "202 with one answer every time, and never queued twice",
            |probe| Box::pin(same_id_other_bytes(probe)),
        ),
        Case::new(
            "look_alike_ids",
            "F61",
            "ids are compared byte for byte: each of them is queued",
            |probe| Box::pin(look_alike_ids(probe)),
        ),
        Case::new(
            "second_event_of_an_account",
            "F65",
            "queued or coalesced with a command, never duplicate",
            |probe| Box::pin(second_event_of_an_account(probe)),
        )
        .needs(Need::Account),
    ]
}

/// An event that starts nothing.
pub(super) fn event(id: &str) -> String {
    json!({ "webhookId": id, "eventType": "USER_REGISTERED", "userId": "door", "clientId": "DOOR" })
        .to_string()
}

fn unsigned(body: &str) -> Request {
    Request::post("/webhooks/snaptrade", body)
}

async fn right_signature(probe: &Probe) -> anyhow::Result<()> {
    probe.ask(probe.signed(event(&Probe::id()))).await?.has_outcome("queued")?;
    // A label on the body is not believed, and not needed.
    for label in ["application/json", "text/plain", "application/json; charset=utf-7", "\u{e9}"] {
        let request = probe.signed(event(&Probe::id())).header("content-type", label);
        probe.ask(request).await?.has_outcome("queued")?;
    }
    Ok(())
}

async fn wrong_signature(probe: &Probe) -> anyhow::Result<()> {
    let body = event(&Probe::id());
    let right = signature(&probe.target.secrets.consumer_key, body.as_bytes());
    let other = signature("another-key", body.as_bytes());
    let (padded, with_space) = (format!("{right}="), format!("{right} {right}"));
    probe.ask(unsigned(&body)).await?.refuses(401, "unauthenticated")?;
    for wrong in [
        b"".as_slice(),
        b"x",
        b"\xff",
        b"====",
        &right.as_bytes()[1..],
        other.as_bytes(),
        padded.as_bytes(),
        with_space.as_bytes(),
    ] {
        probe.ask(unsigned(&body).header("signature", wrong)).await?.refuses(401, "unauthenticated")?;
    }
    let huge = "A".repeat(30_000);
    probe.ask(unsigned(&body).header("signature", huge)).await?.refuses(401, "unauthenticated")?;
    probe.ask(probe.signed(body)).await?.has_outcome("queued")?;
    Ok(())
}

async fn doubled_signature(probe: &Probe) -> anyhow::Result<()> {
    let body = event(&Probe::id());
    let right = signature(&probe.target.secrets.consumer_key, body.as_bytes());
    for (first, second) in [(&*right, &*right), ("x", &*right), (&*right, "x")] {
        let twice = unsigned(&body).header("signature", first).header("Signature", second);
        probe.ask(twice).await?.refuses(401, "unauthenticated")?;
    }
    probe.ask(probe.signed(body)).await?.has_outcome("queued")?;
    Ok(())
}

async fn another_bodys_signature(probe: &Probe) -> anyhow::Result<()> {
    let (body, other) = (event(&Probe::id()), event(&Probe::id()));
    let proof = signature(&probe.target.secrets.consumer_key, other.as_bytes());
    probe.ask(unsigned(&body).header("signature", &proof)).await?.refuses(401, "unauthenticated")?;
    let empty = signature(&probe.target.secrets.consumer_key, b"");
    probe.ask(unsigned("").header("signature", empty)).await?.refuses(401, "unauthenticated")?;
    probe.ask(probe.signed(body)).await?.has_outcome("queued")?;
    Ok(())
}

async fn canonical_form(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    let canonical =
        format!(r#"{{"eventType":"USER_REGISTERED","userId":"usu\u00e1rio","webhookId":"{id}"}}"#);
    let sent = format!(
        "{{ \"webhookId\": \"{id}\",\n  \"userId\": \"usu\u{e1}rio\", \"eventType\": \"USER_REGISTERED\" }}\n"
    );
    let proof = signature(&probe.target.secrets.consumer_key, canonical.as_bytes());
    probe.ask(unsigned(&sent).header("signature", proof)).await?.has_outcome("queued")?;
    Ok(())
}

fn with_secret(id: &str, secret: &str) -> String {
    json!({ "webhookId": id, "eventType": "USER_REGISTERED", "webhookSecret": secret }).to_string()
}

async fn older_secret(probe: &Probe) -> anyhow::Result<()> {
    let (id, right) = (Probe::id(), &probe.target.secrets.webhook_secret);
    let longer = format!("{right}x");
    for wrong in ["", "another-secret", &right[1..], &longer] {
        probe.ask(unsigned(&with_secret(&id, wrong))).await?.refuses(401, "unauthenticated")?;
    }
    let body = with_secret(&id, right);
    probe.ask(unsigned(&body)).await?.has_outcome("queued")?;
    probe.ask(unsigned(&body)).await?.has_outcome("duplicate")?;
    Ok(())
}

async fn older_secret_beside_wrong_signature(probe: &Probe) -> anyhow::Result<()> {
    let body = with_secret(&Probe::id(), &probe.target.secrets.webhook_secret);
    for wrong in ["", "x", "MTIz"] {
        probe.ask(unsigned(&body).header("signature", wrong)).await?.refuses(401, "unauthenticated")?;
    }
    probe.ask(unsigned(&body)).await?.has_outcome("queued")?;
    Ok(())
}

async fn duplicate(probe: &Probe) -> anyhow::Result<()> {
    let body = event(&Probe::id());
    let first = probe.ask(probe.signed(body.as_str())).await?.has_outcome("queued")?;
    for _ in 0..5 {
        let again = probe.ask(probe.signed(body.as_str())).await?.has_outcome("duplicate")?;
        ensure!(again.inbox_id == first.inbox_id, "inbox_id {} and not {}", again.inbox_id, first.inbox_id);
    }
    Ok(())
}

async fn misspelt_id(probe: &Probe) -> anyhow::Result<()> {
    let (old, new) = (Probe::id(), Probe::id());
    let misspelt = json!({ "webookId": old, "eventType": "USER_REGISTERED" }).to_string();
    probe.ask(probe.signed(misspelt.as_str())).await?.has_outcome("queued")?;
    probe.ask(probe.signed(misspelt)).await?.has_outcome("duplicate")?;
    // Both names with different values: only the right spelling counts, so this is another event.
    let both = json!({ "webookId": old, "webhookId": new, "eventType": "USER_REGISTERED" }).to_string();
    probe.ask(probe.signed(both)).await?.has_outcome("queued")?;
    Ok(())
}

async fn same_id_other_body(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    let first = probe.ask(probe.signed(event(&id))).await?.has_outcome("queued")?;
    let other = json!({ "webhookId": id, "eventType": "USER_REGISTERED", "userId": "another" }).to_string();
    let second = probe.ask(probe.signed(other.as_str())).await?.has_outcome("quarantined")?;
    let third = probe.ask(probe.signed(other)).await?.has_outcome("quarantined")?;
    ensure!(second == third, "the same delivery is answered {second:?} and then {third:?}");
    ensure!(first.inbox_id != second.inbox_id, "one row stands for both bodies");
    let repeated = probe.ask(probe.signed(event(&id))).await?.has_outcome("duplicate")?;
    ensure!(repeated.inbox_id == first.inbox_id, "the first body has lost its row");
    Ok(())
}

async fn same_id_other_bytes(probe: &Probe) -> anyhow::Result<()> {
    let body = event(&Probe::id());
    probe.ask(probe.signed(body.as_str())).await?.has_outcome("queued")?;
    for same in [format!("{body}\n"), body.replace(':', ": "), body.replace("door", "\\u0064oor")] {
        let second = probe.ask(probe.signed(same.as_str())).await?.receipt()?;
        let third = probe.ask(probe.signed(same)).await?.receipt()?;
        ensure!(second.outcome != "queued", "an id that is taken was queued again");
        ensure!(second == third, "the same delivery is answered {second:?} and then {third:?}");
    }
    Ok(())
}

async fn look_alike_ids(probe: &Probe) -> anyhow::Result<()> {
    let id = Probe::id();
    for like in [
        format!("{id}a"),
        format!("{id}A"),
        format!("{id}\u{430}"),
        format!("{id}\u{e9}"),
        format!("{id}e\u{301}"),
        format!("{id} "),
        format!(" {id}"),
        format!("{id}\u{200b}"),
        format!("{id}*"),
        format!("{id}%00"),
        format!("{id}:{id}"),
        format!("../{id}"),
        format!("{id}'; --"),
    ] {
        probe.ask(probe.signed(event(&like))).await?.has_outcome("queued")?;
        probe.ask(probe.signed(event(&like))).await?.has_outcome("duplicate")?;
    }
    Ok(())
}

async fn second_event_of_an_account(probe: &Probe) -> anyhow::Result<()> {
    let account = probe.target.account.unwrap_or(Uuid::nil());
    for _ in 0..2 {
        let body = webhook::event(&Probe::id(), "ACCOUNT_HOLDINGS_UPDATED", "door-user", account).to_string();
        let first = probe.ask(probe.signed(body.as_str())).await?.receipt()?;
        ensure!(
            ["queued", "coalesced"].contains(&first.outcome.as_str()) && first.command_id.is_some(),
            "an event of an account that is known is answered {first:?}"
        );
        let again = probe.ask(probe.signed(body)).await?.has_outcome("duplicate")?;
        ensure!(
            (again.inbox_id, again.command_id) == (first.inbox_id, first.command_id),
            "the repetition of {first:?} is answered {again:?}"
        );
    }
    Ok(())
}
