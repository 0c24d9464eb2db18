//! Arguments of every registered tool and of one with parameters of many types.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use karyi::call::RawCall;
use karyi::syntax::grammar::Grammar;
use karyi::syntax::{Event, Mode, Parser};
use karyi::tool::decode::{self, TextMode};
use karyi::tool::schema::ArgumentSchema;
use karyi::tool::spec::{Form, Spec};
use karyi::tool::{Registry, Tool};
use karyi::tools::{self, Call, core::read::Read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spelling;

/// Arguments of many types.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    url: String,
    #[schemars(extend("x-karyi" = {"raw": true}))]
    body: Option<String>,
    method: Option<Method>,
    retries: Option<u32>,
    signed: Option<i64>,
    big: Option<u64>,
    delay: Option<f64>,
    follow: Option<bool>,
    headers: Option<BTreeMap<String, String>>,
    tags: Option<Vec<String>>,
    rows: Option<Vec<Vec<i64>>>,
    items: Option<Vec<Item>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Method {
    Get,
    Post,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    name: String,
    count: Option<i64>,
    tags: Option<Vec<String>>,
}

const SPEC: Spec = Spec {
    name: "fetch",
    form: Form::Parameters,
    ..Read::SPEC
};

struct Known {
    registry: Registry<Call>,
    schema: ArgumentSchema,
    grammar: Arc<Grammar>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let (registry, schema) = (tools::registry(), ArgumentSchema::of::<Fetch>());
    let mut grammar = registry.grammar();
    grammar.tools.push(schema.element_rule(&SPEC));
    Known {
        registry,
        schema,
        grammar: Arc::new(grammar),
    }
});

/// Parses what stands in a block; returns its calls and whether all of it was accepted.
fn calls(mode: Mode, inside: &[u8]) -> (Vec<RawCall>, Result<(), String>) {
    let mut parser = Parser::new(Arc::clone(&KNOWN.grammar), mode);
    let mut events = Vec::new();
    for piece in [b"<tools>", inside, b"</tools>"] {
        parser.feed(piece, &mut events);
    }
    parser.finish(&mut events);
    let (mut calls, mut accepted) = (Vec::new(), Ok(()));
    for event in events {
        match event {
            Event::Call(call) => calls.push(call),
            Event::Error(error) => accepted = Err(format!("{error:?}")),
            Event::DraftsEnded => calls.clear(),
            Event::BlockOpened { .. } | Event::BlockClosed | Event::Warning(_) => {}
        }
    }
    (calls, accepted)
}

/// Arguments that decode from XML decode from the same as JSON, too.
pub fn check_xml(inside: &[u8]) -> Result<(), String> {
    for mode in [Mode::Repair, Mode::Strict] {
        for call in calls(mode, inside).0 {
            let name = &call.element.name;
            match KNOWN.registry.get(name) {
                Some(entry) => {
                    let _ = KNOWN.registry.decode(&call);
                    agree(&call, &entry.spec, &entry.schema, entry.from_json)?;
                }
                None => agree(&call, &SPEC, &KNOWN.schema, serde_json::from_value::<Fetch>)?,
            }
        }
    }
    Ok(())
}

fn agree<T: Debug + PartialEq>(
    call: &RawCall,
    spec: &Spec,
    schema: &ArgumentSchema,
    from_json: impl Fn(Value) -> Result<T, serde_json::Error>,
) -> Result<(), String> {
    let _ = decode::arguments(call, spec, schema, TextMode::Verbatim);
    let Ok(arguments) = decode::arguments(call, spec, schema, TextMode::Normalised) else {
        return Ok(());
    };
    let Ok(typed) = from_json(arguments.clone()) else {
        return Ok(());
    };
    let again = decode::json_arguments(arguments, schema);
    let again =
        again.map_err(|mismatch| format!("as JSON it does not fit: {call:?} {mismatch:?}"))?;
    match from_json(again) {
        Ok(again) if again == typed => Ok(()),
        other => Err(format!("{call:?}\nas XML {typed:?}\nas JSON {other:?}")),
    }
}

/// Arguments that decode from JSON decode from any XML spelling of them, too.
pub fn check_json(text: &[u8], style: u8) -> Result<(), String> {
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return Ok(());
    };
    for entry in KNOWN.registry.entries() {
        let fitting = decode::json_arguments(value.clone(), &entry.schema);
        let _ = fitting.map(|value| (entry.from_json)(value));
    }
    let Ok(fitting) = decode::json_arguments(value, &KNOWN.schema) else {
        return Ok(());
    };
    let Ok(typed) = serde_json::from_value::<Fetch>(fitting.clone()) else {
        return Ok(());
    };
    let Some(xml) = spelling::call(SPEC.name, &fitting, style) else {
        return Ok(());
    };
    let (calls, accepted) = calls(Mode::Strict, xml.as_bytes());
    accepted.map_err(|error| format!("{xml}\n{error}"))?;
    let [call] = calls.as_slice() else {
        return Err(format!("not one call: {xml}"));
    };
    let again = decode::arguments(call, &SPEC, &KNOWN.schema, TextMode::Normalised);
    match again.map(serde_json::from_value::<Fetch>) {
        Ok(Ok(again)) if again == typed => Ok(()),
        other => Err(format!("{xml}\nas XML {other:?}\nas JSON {typed:?}")),
    }
}
