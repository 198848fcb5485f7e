//! What callers with a token do: ask for work once, read where it stands, take it back.

use anyhow::{Context, ensure};
use serde_json::Value;
use uuid::Uuid;

use super::case::{Case, Need, Probe};
use super::raw::{Answer, Request};

/// So late that no worker runs a command before the case has taken it back.
const LATER: &str = "2099-01-01T00:00:00Z";

pub(super) fn cases() -> Vec<Case> {
    let with_account = vec![
        Case::new("create", "", "202 accepted with Location, where GET shows the command", |probe| {
            Box::pin(create(probe))
        }),
        Case::new("replay", "F55", "the same id and Idempotency-Replayed: true, every time", |probe| {
            Box::pin(replay(probe))
        }),
        Case::new(
            "key_reused",
            "F56",
            "422 idempotency_key_reused for another body, 202 for the first one again",
            |probe| Box::pin(key_reused(probe)),
        ),
        Case::new("simultaneous", "F55", "32 equal requests at a time make one command", |probe| {
            Box::pin(simultaneous(probe))
        }),
        Case::new(
            "no_key",
            "F61",
            "400 idempotency_key_missing for a key that is missing, doubled, empty, too long",
            |probe| Box::pin(no_key(probe)),
        ),
        Case::new("strange_keys", "F61", "keys are compared byte for byte", |probe| {
            Box::pin(strange_keys(probe))
        }),
        Case::new("broken_body", "F60", "400 or 422, never 5xx, and nothing is accepted", |probe| {
            Box::pin(broken_body(probe))
        }),
        Case::new("body_limits", "F59", "413 over the limit and 415 for a compressed body", |probe| {
            Box::pin(body_limits(probe))
        }),
        Case::new(
            "scope",
            "",
            "404 for another scope's command; no difference to one that isn't there",
            |probe| Box::pin(scope(probe)),
        ),
        Case::new("wait", "", "200 for a number of seconds, 422 for anything else", |probe| {
            Box::pin(wait(probe))
        }),
        Case::new("cancel", "", "200 cancelled, twice too; a replay still names the command", |probe| {
            Box::pin(cancel(probe))
        }),
        Case::new("list", "", "pages without gap and without overlap, the newest first", |probe| {
            Box::pin(list(probe))
        }),
    ];
    let without = vec![
        Case::new(
            "no_token",
            "",
            "401 on every route for a token that is missing, wrong, doubled or oddly shaped",
            |probe| Box::pin(no_token(probe)),
        ),
        Case::new("unknown_id", "", "404 for a command or an account that isn't there", |probe| {
            Box::pin(unknown_id(probe))
        }),
        Case::new(
            "strange_parameters",
            "F60",
            "422 for a parameter that the route doesn't know or can't read",
            |probe| Box::pin(strange_parameters(probe)),
        ),
        Case::new(
            "strange_actors",
            "F60",
            "422 for an asserted actor or scope that is no printable ASCII",
            |probe| Box::pin(strange_actors(probe)),
        ),
    ];
    with_account.into_iter().map(|case| case.needs(Need::Account)).chain(without).collect()
}

fn syncs(probe: &Probe) -> String {
    format!("/v1/snaptrade/accounts/{}/syncs", probe.target.account.unwrap_or(Uuid::nil()))
}

fn body(work_type: &str) -> String {
    format!(r#"{{"work_type":"{work_type}","not_before":"{LATER}"}}"#)
}

fn request(probe: &Probe, key: &str, body: impl Into<Vec<u8>>) -> Request {
    let request = Request::post(syncs(probe), body).bearer(&probe.target.secrets.service_token);
    request.header("idempotency-key", key)
}

async fn read(probe: &Probe, path: &str) -> anyhow::Result<Answer> {
    probe.ask(Request::get(path).bearer(&probe.target.secrets.service_token)).await
}

fn id(answer: &Answer) -> anyhow::Result<Uuid> {
    let body = answer.is(202)?.json()?;
    ensure!(body["status"] == "accepted", "the status is {}", body["status"]);
    body["id"].as_str().and_then(|id| id.parse().ok()).context("a 202 without an id")
}

async fn cancel_command(probe: &Probe, id: Uuid) -> anyhow::Result<Value> {
    let request = Request::post(format!("/v1/commands/{id}/cancel"), "");
    probe.ask(request.bearer(&probe.target.secrets.service_token)).await?.is(200)?.json()
}

async fn create(probe: &Probe) -> anyhow::Result<()> {
    let answer = probe.ask(request(probe, &Probe::id(), body("holdings"))).await?;
    let id = id(&answer)?;
    let location = answer.header("location").context("no Location")?;
    ensure!(location == format!("/v1/commands/{id}"), "Location is `{location}`");
    ensure!(answer.header("idempotency-replayed") != Some("true"), "a first request counts as a replay");
    let command = read(probe, location).await?.is(200)?.json()?;
    ensure!(command["id"] == id.to_string() && command["status"] == "accepted", "GET shows {command}");
    for member in [
        "workload",
        "status",
        "blocked",
        "attempts",
        "crashes",
        "progress",
        "result",
        "failure",
        "accepted_at",
        "started_at",
        "finished_at",
        "trace_id",
    ] {
        ensure!(command.get(member).is_some(), "GET shows no `{member}`");
    }
    cancel_command(probe, id).await?;
    Ok(())
}

async fn replay(probe: &Probe) -> anyhow::Result<()> {
    let key = Probe::id();
    let first = probe.ask(request(probe, &key, body("holdings"))).await?;
    let reordered = format!("{{ \"not_before\": \"{LATER}\",\n \"work_type\": \"holdings\" }}");
    for again in [body("holdings"), body("holdings"), reordered] {
        let answer = probe.ask(request(probe, &key, again)).await?;
        ensure!(id(&answer)? == id(&first)?, "the same request is another command");
        ensure!(answer.body == first.body, "the same request is answered differently");
        let replayed = answer.header("idempotency-replayed");
        ensure!(replayed == Some("true"), "Idempotency-Replayed is {replayed:?}");
    }
    cancel_command(probe, id(&first)?).await?;
    Ok(())
}

async fn key_reused(probe: &Probe) -> anyhow::Result<()> {
    let key = Probe::id();
    let first = id(&probe.ask(request(probe, &key, body("holdings"))).await?)?;
    let other = probe.ask(request(probe, &key, body("transactions"))).await?;
    other.refuses(422, "idempotency_key_reused")?;
    let again = id(&probe.ask(request(probe, &key, body("holdings"))).await?)?;
    ensure!(first == again, "the key stands for another command now");
    cancel_command(probe, first).await?;
    Ok(())
}

async fn simultaneous(probe: &Probe) -> anyhow::Result<()> {
    let key = Probe::id();
    let requests = (0..32).map(|_| probe.ask(request(probe, &key, body("holdings"))));
    let answers = futures_util::future::try_join_all(requests).await?;
    let ids = answers.iter().map(id).collect::<anyhow::Result<Vec<_>>>()?;
    let first = ids.first().context("no answers")?;
    ensure!(ids.iter().all(|id| id == first), "the same key stands for several commands");
    let fresh = answers.iter().filter(|answer| answer.header("idempotency-replayed") != Some("true")).count();
    ensure!(fresh == 1, "{fresh} answers say that they are the first");
    cancel_command(probe, *first).await?;
    Ok(())
}

async fn no_key(probe: &Probe) -> anyhow::Result<()> {
    let token = &probe.target.secrets.service_token;
    let bare = || Request::post(syncs(probe), body("holdings")).bearer(token);
    let long = "x".repeat(201);
    let none = probe.ask(bare()).await?;
    none.refuses(400, "idempotency_key_missing")?;
    for key in [b"".as_slice(), long.as_bytes(), b"\xff", "caf\u{e9}".as_bytes(), b"a\tb"] {
        let answer = probe.ask(bare().header("idempotency-key", key)).await?;
        answer.refuses(400, "idempotency_key_missing")?;
    }
    let twice = bare().header("idempotency-key", "a").header("idempotency-key", "a");
    probe.ask(twice).await?.refuses(400, "idempotency_key_missing")
}

async fn strange_keys(probe: &Probe) -> anyhow::Result<()> {
    let base = Probe::id();
    let longest = format!("{base}{}", "x".repeat(200 - base.len()));
    let mut ids = Vec::new();
    for key in ["*", "a:b", "../..", "'; --", "%00", "{}", "\\u0000", "a b"].map(|end| format!("{base}{end}"))
    {
        ids.push(id(&probe.ask(request(probe, &key, body("holdings"))).await?)?);
    }
    for key in [base.to_lowercase() + "k", base.to_lowercase() + "K", longest] {
        ids.push(id(&probe.ask(request(probe, &key, body("holdings"))).await?)?);
    }
    let n = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ensure!(ids.len() == n, "{} commands for {n} keys", ids.len());
    for id in ids {
        cancel_command(probe, id).await?;
    }
    Ok(())
}

async fn broken_body(probe: &Probe) -> anyhow::Result<()> {
    let key = Probe::id();
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    for broken in [
        b"".as_slice(),
        b"{",
        b"\xff",
        b"\0",
        b"\xef\xbb\xbf{\"work_type\":\"holdings\"}",
        br#"{"work_type":"\ud800"}"#,
        br#"{"work_type":1e400}"#,
        deep.as_bytes(),
        b"work_type=holdings",
    ] {
        probe.ask(request(probe, &key, broken)).await?.refuses(400, "body_not_json")?;
    }
    for invalid in [
        "null",
        "[]",
        "7",
        "{}",
        r#"{"work_type":null}"#,
        r#"{"work_type":"dances"}"#,
        r#"{"work_type":"holdings\u0000"}"#,
        r#"{"work_type":1e-20000}"#,
        r#"{"work_type":"holdings","priority":0}"#,
        r#"{"work_type":"holdings","not_before":"soon"}"#,
        r#"{"work_type":"holdings","not_before":"2026-02-30T00:00:00Z"}"#,
        r#"{"work_type":"holdings","not_before":7}"#,
    ] {
        let answer = probe.ask(request(probe, &key, invalid)).await?;
        answer.refuses(422, "invalid").with_context(|| invalid.to_owned())?;
    }
    // Times that a database may not hold: refused or accepted, but decided.
    for year in ["+262142", "-262143", "+99999", "-0001", "9999", "0000"] {
        let key = Probe::id();
        let body = format!(r#"{{"work_type":"holdings","not_before":"{year}-01-01T00:00:00Z"}}"#);
        let answer = probe.ask(request(probe, &key, body)).await?;
        answer.is_one_of(&[202, 422]).with_context(|| format!("not before the year {year}"))?;
        if answer.status == 202 && year != "0000" && !year.starts_with('-') {
            cancel_command(probe, id(&answer)?).await?;
        }
    }
    Ok(())
}

async fn body_limits(probe: &Probe) -> anyhow::Result<()> {
    let host = probe.target.public.host();
    let large = request(probe, &Probe::id(), " ".repeat(probe.target.limits.command_body + 1));
    let mut connection = super::raw::Connection::open(&probe.target.public).await?;
    connection.write(&large.head(host)).await.context("sending a head")?;
    let answer = connection.answer(false).await?;
    probe.note("a head that announces a body over the limit".to_owned(), answer.as_ref());
    answer.context("no answer")?.refuses(413, "body_too_large")?;
    for encoding in ["gzip", "br", "zstd", "deflate, gzip"] {
        let compressed = request(probe, &Probe::id(), "x").header("content-encoding", encoding);
        probe.ask(compressed).await?.refuses(415, "encoding_not_supported")?;
    }
    let padded = format!("{}{}", body("holdings"), " ".repeat(probe.target.limits.command_body));
    let fits = &padded[..probe.target.limits.command_body];
    let id = id(&probe.ask(request(probe, &Probe::id(), fits)).await?)?;
    cancel_command(probe, id).await?;
    Ok(())
}

async fn scope(probe: &Probe) -> anyhow::Result<()> {
    let token = &probe.target.secrets.service_token;
    let of_one = request(probe, &Probe::id(), body("holdings")).header("x-scope", "door-one");
    let id = id(&probe.ask(of_one).await?)?;
    let path = format!("/v1/commands/{id}");
    let get = |scope: &str| Request::get(&path).bearer(token).header("x-scope", scope);
    probe.ask(get("door-one")).await?.is(200)?;
    probe.ask(get("door-two")).await?.refuses(404, "not_found")?;
    let cancel = Request::post(format!("{path}/cancel"), "").bearer(token);
    probe.ask(cancel.header("x-scope", "door-two")).await?.refuses(404, "not_found")?;
    ensure!(
        read(probe, &path).await?.is(200)?.json()?["status"] == "accepted",
        "another scope has cancelled it"
    );
    let listed = probe.ask(Request::get("/v1/commands").bearer(token).header("x-scope", "door-two")).await?;
    let listed = listed.is(200)?.json()?;
    ensure!(!listed.to_string().contains(&id.to_string()), "it is in another scope's list");
    cancel_command(probe, id).await?;
    Ok(())
}

async fn wait(probe: &Probe) -> anyhow::Result<()> {
    let id = id(&probe.ask(request(probe, &Probe::id(), body("holdings"))).await?)?;
    let path = format!("/v1/commands/{id}");
    for wait in ["0", "0s", "1", "1s"] {
        read(probe, &format!("{path}?wait={wait}")).await?.is(200)?;
    }
    for garbage in ["", "s", "-1", "1.5", "1m", "99999", "20ss", "%00", "%ff", "1e3", "%20", "NaN"] {
        let answer = read(probe, &format!("{path}?wait={garbage}")).await?;
        answer.refuses(422, "invalid").with_context(|| format!("wait={garbage}"))?;
    }
    for query in ["wait=1&wait=1", "weight=1", "wait", "wait=1&x=2"] {
        read(probe, &format!("{path}?{query}"))
            .await?
            .refuses(422, "invalid")
            .with_context(|| query.to_owned())?;
    }
    cancel_command(probe, id).await?;
    Ok(())
}

async fn cancel(probe: &Probe) -> anyhow::Result<()> {
    let key = Probe::id();
    let id_of = |answer: &Answer| id(answer);
    let id = id(&probe.ask(request(probe, &key, body("holdings"))).await?)?;
    for _ in 0..2 {
        let command = cancel_command(probe, id).await?;
        ensure!(command["status"] == "cancelled", "the status is {}", command["status"]);
        ensure!(
            command["finished_at"].is_string(),
            "it has ended and finished_at is {}",
            command["finished_at"]
        );
    }
    let replayed = probe.ask(request(probe, &key, body("holdings"))).await?;
    ensure!(id_of(&replayed)? == id, "a cancelled command's key stands for another one");
    let shown = read(probe, &format!("/v1/commands/{id}")).await?.is(200)?.json()?;
    ensure!(shown["status"] == "cancelled", "a replay has woken a cancelled command: {}", shown["status"]);
    Ok(())
}

async fn list(probe: &Probe) -> anyhow::Result<()> {
    let (token, scope) = (&probe.target.secrets.service_token, format!("door-{}", Probe::id()));
    let mut made = Vec::new();
    for _ in 0..5 {
        let create = request(probe, &Probe::id(), body("holdings")).header("x-scope", &scope);
        made.push(id(&probe.ask(create).await?)?.to_string());
    }
    made.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..made.len() {
        let request = Request::get(format!("/v1/commands?limit=2{cursor}")).bearer(token);
        let page = probe.ask(request.header("x-scope", &scope)).await?.is(200)?.json()?;
        let commands = page["commands"].as_array().context("a page without commands")?;
        ensure!(commands.len() <= 2, "{} commands in a page of 2", commands.len());
        seen.extend(commands.iter().filter_map(|command| command["id"].as_str().map(str::to_owned)));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    ensure!(seen == made, "made {made:?}, listed {seen:?}");
    for (query, n) in
        [("status=accepted", 5), ("status=succeeded", 0), ("workload=snaptrade-account-sync", 5)]
    {
        let request = Request::get(format!("/v1/commands?{query}")).bearer(token).header("x-scope", &scope);
        let listed = probe.ask(request).await?.is(200)?.json()?;
        let found = listed["commands"].as_array().map_or(0, Vec::len);
        ensure!(found == n, "{found} commands and not {n} with {query}");
    }
    for id in made {
        cancel_command(probe, id.parse().context("a listed id that is no UUID")?).await?;
    }
    Ok(())
}

async fn no_token(probe: &Probe) -> anyhow::Result<()> {
    let token = &probe.target.secrets.service_token;
    let id = Uuid::nil();
    let routes = [
        Request::get("/v1/commands"),
        Request::get(format!("/v1/commands/{id}")),
        Request::post(format!("/v1/commands/{id}/cancel"), ""),
        Request::post(syncs(probe), body("holdings")).header("idempotency-key", "door"),
    ];
    let wrong = [
        String::new(),
        token.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {}", &token[1..]),
        format!("Bearer {token}x"),
        format!("Bearer {token} {token}"),
        format!("Basic {token}"),
        "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.".to_owned(),
        format!("Bearer {}", "x".repeat(8000)),
        "Bearer \u{e9}".to_owned(),
    ];
    for route in routes {
        probe.ask(route.clone()).await?.refuses(401, "unauthenticated")?;
        for value in &wrong {
            let request = route.clone().header("authorization", value);
            probe.ask(request).await?.refuses(401, "unauthenticated")?;
        }
        let twice = route.clone().bearer(token).bearer(token);
        probe.ask(twice).await?.refuses(401, "unauthenticated")?;
        let other = route.header("x-callback-admission", &probe.target.secrets.admission_token);
        probe.ask(other).await?.refuses(401, "unauthenticated")?;
    }
    Ok(())
}

async fn unknown_id(probe: &Probe) -> anyhow::Result<()> {
    let token = &probe.target.secrets.service_token;
    for id in [
        Uuid::new_v4().to_string(),
        Uuid::nil().to_string(),
        "1".to_owned(),
        "*".to_owned(),
        "x".repeat(5000),
    ] {
        read(probe, &format!("/v1/commands/{id}")).await?.refuses(404, "not_found")?;
        let cancel = Request::post(format!("/v1/commands/{id}/cancel"), "").bearer(token);
        probe.ask(cancel).await?.refuses(404, "not_found")?;
        let sync =
            Request::post(format!("/v1/snaptrade/accounts/{id}/syncs"), body("holdings")).bearer(token);
        probe.ask(sync.header("idempotency-key", Probe::id())).await?.refuses(404, "not_found")?;
    }
    Ok(())
}

async fn strange_parameters(probe: &Probe) -> anyhow::Result<()> {
    for query in [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=99999999999999999999",
        "limit=",
        "limit=x",
        "limit=1&limit=2",
        "cursor=x",
        "cursor=%00",
        "status=none",
        "status=",
        "status=%00",
        "status=%ff",
        "workload=none",
        "workload=%00",
        "scope=all",
        "offset=1",
        "order=asc'--",
    ] {
        read(probe, &format!("/v1/commands?{query}"))
            .await?
            .refuses(422, "invalid")
            .with_context(|| query.to_owned())?;
    }
    read(probe, &format!("/v1/commands?cursor={}", Uuid::nil())).await?.is(200)?;
    read(probe, "/v1/commands?limit=200").await?.is(200)?;
    Ok(())
}

async fn strange_actors(probe: &Probe) -> anyhow::Result<()> {
    let (token, long) = (&probe.target.secrets.service_token, "x".repeat(201));
    for name in ["x-scope", "x-actor-id", "x-actor-type"] {
        for value in [b"".as_slice(), b"\xff", "caf\u{e9}".as_bytes(), b"a\tb", long.as_bytes()] {
            let request = Request::get("/v1/commands").bearer(token).header(name, value);
            probe.ask(request).await?.refuses(422, "invalid").with_context(|| name.to_owned())?;
        }
    }
    let request = Request::get("/v1/commands").bearer(token).header("x-actor-type", "emperor");
    probe.ask(request).await?.refuses(422, "invalid")
}
