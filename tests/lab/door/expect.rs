//! What an answer must be. Each check fails with what came instead.

use anyhow::{Context, ensure};
use serde_json::Value;
use uuid::Uuid;

use super::raw::Answer;

/// What a webhook is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) outcome: String,
    pub(super) inbox_id: Uuid,
    pub(super) command_id: Option<Uuid>,
}

/// What holds for every answer: it names the request by the id that the client gave, a refusal is a problem that
/// programs can read, and nothing that a client sends is a failure of the gateway's own.
pub(super) fn manners(answer: &Answer, correlation_id: &str, to_head: bool) -> anyhow::Result<()> {
    let echoed = answer.header("x-correlation-id");
    ensure!(echoed == Some(correlation_id), "X-Correlation-Id is {echoed:?} and not `{correlation_id}`");
    if answer.status == 503 {
        comes_back(answer)?;
    }
    if answer.status >= 400 && !to_head {
        let problem = problem(answer)?;
        let named = &problem["correlation_id"];
        ensure!(
            named == correlation_id,
            "the problem's correlation_id is {named} and not `{correlation_id}`"
        );
    }
    ensure!(
        answer.status < 500 || answer.status == 503,
        "{} is a failure of the gateway's own",
        answer.status
    );
    Ok(())
}

/// A 503 says when to come back: whole seconds, at least one.
pub(super) fn comes_back(answer: &Answer) -> anyhow::Result<()> {
    let seconds = answer.header("retry-after");
    let valid = seconds.is_some_and(|text| text.parse::<u32>().is_ok_and(|seconds| seconds >= 1));
    ensure!(valid, "Retry-After of a 503 is {seconds:?}");
    Ok(())
}

/// `application/problem+json` with every member.
pub(super) fn problem(answer: &Answer) -> anyhow::Result<Value> {
    let kind = answer.header("content-type");
    ensure!(
        kind == Some("application/problem+json"),
        "{} has content type {kind:?} and not application/problem+json",
        answer.status
    );
    let problem = answer.json()?;
    for member in ["type", "title", "code", "detail", "correlation_id"] {
        let is_there = problem[member].as_str().is_some_and(|text| !text.is_empty());
        ensure!(is_there, "the problem has no `{member}`: {problem}");
    }
    ensure!(
        problem["status"] == answer.status,
        "the problem of a {} says {}",
        answer.status,
        problem["status"]
    );
    Ok(problem)
}

/// No answer to bytes that are no proper request is a success or a failure of the gateway's own.
pub(super) fn refused_or_closed(answers: &[Answer]) -> anyhow::Result<()> {
    for answer in answers {
        ensure!((400..500).contains(&answer.status), "{} came for what is no request", answer.status);
    }
    ensure!(answers.len() <= 1, "{} answers came where one refusal is enough", answers.len());
    Ok(())
}

impl Answer {
    pub(super) fn json(&self) -> anyhow::Result<Value> {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} with a body that is no JSON: {text:.80}", self.status))
    }

    pub(super) fn is(&self, status: u16) -> anyhow::Result<&Self> {
        ensure!(self.status == status, "{} and not {status}", self.status);
        Ok(self)
    }

    pub(super) fn is_one_of(&self, statuses: &[u16]) -> anyhow::Result<&Self> {
        ensure!(statuses.contains(&self.status), "{} and not one of {statuses:?}", self.status);
        Ok(self)
    }

    /// A problem with this status and code.
    pub(super) fn refuses(&self, status: u16, code: &str) -> anyhow::Result<()> {
        self.is(status)?;
        let given = problem(self)?["code"].clone();
        ensure!(given == code, "{status} with code {given} and not `{code}`");
        Ok(())
    }

    /// 202 with an outcome and an inbox row.
    pub(super) fn receipt(&self) -> anyhow::Result<Receipt> {
        let body = self.is(202)?.json()?;
        let outcome = body["outcome"].as_str().context("a 202 without an outcome")?.to_owned();
        let inbox_id = body["inbox_id"].as_str().and_then(|id| id.parse().ok());
        let inbox_id = inbox_id.context("a 202 whose inbox_id is no UUID")?;
        let command_id = body["command_id"].as_str().map(str::parse).transpose();
        Ok(Receipt { outcome, inbox_id, command_id: command_id.context("a command_id that is no UUID")? })
    }

    /// 202 with this outcome.
    pub(super) fn has_outcome(&self, outcome: &str) -> anyhow::Result<Receipt> {
        let receipt = self.receipt()?;
        ensure!(receipt.outcome == outcome, "`{}` and not `{outcome}`", receipt.outcome);
        Ok(receipt)
    }
}
