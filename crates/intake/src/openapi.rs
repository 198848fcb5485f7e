//! The API's description, made from the table of routes.

use axum::Json;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::problem::{Problem, codes};
use crate::routes::{Policy, Route, table};

/// `GET /openapi.json`.
pub(crate) async fn show() -> Json<Value> {
    Json(document())
}

/// The description of every route, in OpenAPI 3.1.
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for route in table() {
        let operation = operation(&route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation;
    }
    // Every refusal refers to it.
    generator.subschema_for::<probes::problem::Body>();
    let mut schemas = generator.take_definitions(true);
    schemas["problem"]["properties"]["code"]["enum"] = json!(codes());
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Spillway", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let (status, answer) = route.answer;
    let mut responses = json!({
        status.to_string(): {
            "description": "Done.",
            "content": { "application/json": { "schema": answer(generator) } },
        },
    });
    for problem in problems(route) {
        let (status, code, _) = problem.parts();
        let entry = &mut responses[status.as_u16().to_string()];
        let codes = entry["description"]
            .as_str()
            .map_or_else(|| format!("`{code}`"), |known| format!("{known}, `{code}`"));
        *entry = json!({
            "description": codes,
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/problem" } } },
        });
    }
    let mut operation = json!({ "summary": route.summary, "parameters": parameters(route, generator), "responses": responses });
    if route.policy == Policy::Caller {
        operation["security"] = json!([{ "token": [] }]);
    }
    if let Some(body) = route.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": body(generator) } } });
    }
    operation
}

/// A route's own, and those that every route of its kind has.
fn problems(route: &Route) -> Vec<Problem> {
    let common = match route.policy {
        Policy::Everybody => vec![Problem::Busy],
        Policy::Sender => {
            vec![Problem::Unauthenticated, Problem::Busy, Problem::Unavailable, Problem::Internal]
        }
        Policy::Caller => vec![
            Problem::Unauthenticated,
            Problem::NotFound,
            Problem::Busy,
            Problem::Unavailable,
            Problem::CallersUnavailable,
            Problem::Internal,
        ],
    };
    [common, route.problems.clone()].concat()
}

fn parameters(route: &Route, generator: &mut SchemaGenerator) -> Vec<Value> {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if route.is_idempotent_by_key {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": true,
            "description": "The same for every try of the same request.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 200 },
        }));
    }
    if let Some(describe) = route.parameters {
        let schema = describe(generator).to_value();
        let name =
            schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default().to_owned();
        let fields =
            generator.definitions().get(&name).map(|schema| schema["properties"].clone()).unwrap_or_default();
        for (name, schema) in fields.as_object().into_iter().flatten() {
            parameters.push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
        }
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_the_description_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }

    #[test]
    fn a_route_tells_its_parameters_its_answer_and_its_problems() {
        let document = document();
        let get = &document["paths"]["/v1/commands/{id}"]["get"];
        let names: Vec<&str> =
            get["parameters"].as_array().into_iter().flatten().filter_map(|p| p["name"].as_str()).collect();

        assert_eq!(names, ["id", "wait"]);
        assert_eq!(get["security"][0]["token"], json!([]));
        for status in ["200", "401", "404", "422", "503"] {
            assert!(get["responses"][status].is_object(), "{status}");
        }
        let create = &document["paths"]["/v1/snaptrade/accounts/{account_id}/syncs"]["post"];
        assert!(
            create["responses"]["422"]["description"]
                .as_str()
                .is_some_and(|codes| codes.contains("idempotency_key_reused"))
        );
        assert!(create["requestBody"].is_object());
    }
}
