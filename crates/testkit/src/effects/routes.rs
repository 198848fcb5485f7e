//! The provider's one route.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::book::Book;
use super::call::Answer;
use crate::server::HangUp;

pub(super) fn router(book: Arc<Book>) -> Router {
    Router::new().route("/effects", post(act)).with_state(book)
}

/// What is not JSON has no effect and is no call.
async fn act(State(book): State<Arc<Book>>, headers: HeaderMap, Json(_): Json<Value>) -> Response {
    let late = book.script.borrow().late;
    let visit = book.enter(&headers);
    if !late.is_zero() {
        tokio::time::sleep(late).await;
    }
    let given = Json(json!({ "effect": visit.call.effect }));
    match visit.call.answer {
        Answer::Given => given.into_response(),
        Answer::Lost => {
            let mut response = given.into_response();
            response.extensions_mut().insert(HangUp);
            response
        }
        Answer::Failed(status) => {
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response()
        }
        Answer::Hanging => {
            let mut script = book.script.subscribe();
            // The book holds the sender.
            let _ = script.wait_for(|script| !script.is_hanging).await;
            given.into_response()
        }
    }
}
