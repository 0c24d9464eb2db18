//! Validates a JSON value against a schema and reports every value that does not fit, with its path.
//!
//! All surfaces use it: scripts and MCP show the first problem as a [`Mismatch`], the server shows all of them. It covers
//! the part of JSON Schema that argument types use and accepts the rest, which the argument type checks itself. Unknown
//! keys are refused, since an argument must never be ignored silently. Two forms are normalised: a whole number with a
//! zero fraction becomes an integer, and `null` for an optional key is removed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;
use serde_json::{Map, Number, Value, json};

use crate::tool::mismatch::{Mismatch, join, led_by};
use crate::tool::schema::{self, Property};

/// The largest whole number up to which a floating point number represents all of them.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A value that does not fit.
#[derive(Debug)]
pub struct Problem {
    /// Steps of the path to the value, the last one first.
    steps: Vec<PathStep>,
    kind: ProblemKind,
    /// The value found, shortened.
    found: String,
    /// Words of the tool in front of the message.
    words: Option<Box<str>>,
    /// A remedy.
    hint: Option<String>,
}

#[derive(Debug)]
enum PathStep {
    Key(String),
    Index(usize),
}

impl PathStep {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Key(key) => key.into(),
            Self::Index(index) => index.to_string().into(),
        }
    }
}

#[derive(Debug)]
enum ProblemKind {
    /// Another type, word or number; with the expected value in words.
    Value(String),
    /// Too long, too short or of another pattern; with the expectation in words.
    Content(String),
    /// A required key is missing; with the expected value in words.
    Missing(String),
    /// No such key.
    Unknown,
}

impl Problem {
    fn new(kind: ProblemKind, found: impl Into<String>) -> Self {
        Self {
            steps: Vec::new(),
            kind,
            found: found.into(),
            words: None,
            hint: None,
        }
    }

    fn of_value(schema: &Value, found: &Value) -> Self {
        let found = Mismatch::value("", "", found).found;
        Self::new(ProblemKind::Value(schema::expected(schema)), found)
    }

    fn at_key(mut self, key: &str) -> Self {
        self.steps.push(PathStep::Key(key.to_owned()));
        self
    }

    /// Returns the path, as names and indexes.
    #[must_use]
    pub fn path(&self) -> Vec<Cow<'_, str>> {
        self.steps.iter().rev().map(PathStep::text).collect()
    }

    /// Returns the message for callers of a server, who know the value.
    #[must_use]
    pub fn message(&self) -> String {
        let message = match &self.kind {
            ProblemKind::Value(expected) => format!("expected {expected}"),
            ProblemKind::Content(expected) => format!("expected {expected}, found {}", self.found),
            ProblemKind::Missing(_) => "field required".into(),
            ProblemKind::Unknown => "unknown field".into(),
        };
        led_by(self.words.as_deref(), message)
    }

    /// Returns the problem as a mismatch below `path`.
    fn into_mismatch(self, path: &str) -> Mismatch<'static> {
        let extend = |path: String, step: &PathStep| match step {
            PathStep::Key(key) => join(&path, key),
            PathStep::Index(index) => format!("{path}[{index}]"),
        };
        let path = self.steps.iter().rev().fold(path.to_owned(), extend);
        let (expected, hint) = match self.kind {
            ProblemKind::Value(expected) | ProblemKind::Content(expected) => (expected, None),
            ProblemKind::Missing(expected) => {
                (format!("given: {expected}"), Some(format!("add `{path}`")))
            }
            ProblemKind::Unknown => ("left out, since there is no such key".into(), None),
        };
        Mismatch {
            hint: self.hint.or(hint).map(Into::into),
            words: self.words,
            ..Mismatch::new(&path, expected, self.found)
        }
    }
}

/// Validates and normalises a value at `path`.
///
/// # Errors
/// The first value that does not fit.
pub fn check(value: &mut Value, schema: &Value, path: &str) -> Result<(), Mismatch<'static>> {
    // The length and the pattern of a text are left to the argument type.
    let mut check = Check::new(1, false);
    check.value(value, schema);
    match check.found.pop() {
        None => Ok(()),
        Some(problem) => Err(problem.into_mismatch(path)),
    }
}

/// Validates and normalises a value, texts included; returns at most `most` problems.
#[must_use]
pub fn problems(value: &mut Value, schema: &Value, most: usize) -> Vec<Problem> {
    let mut check = Check::new(most, true);
    check.value(value, schema);
    check.found
}

/// Replaces path texts by objects: a list of objects that need only `src` also accepts plain texts, as
/// `karyi parse --json` prints them.
pub fn spread_paths(value: &mut Value, schema: &Value) {
    let Value::Object(map) = value else { return };
    let properties = schema::properties(schema);
    for property in properties.iter().filter(|property| takes_path(property)) {
        let Some(Value::Array(items)) = map.get_mut(property.name) else {
            continue;
        };
        for item in items.iter_mut().filter(|item| item.is_string()) {
            *item = json!({"src": item.take()});
        }
    }
}

/// Returns true when [`spread_paths`] applies to a schema.
#[must_use]
pub fn takes_paths(schema: &Value) -> bool {
    schema::properties(schema).iter().any(takes_path)
}

fn takes_path(property: &Property<'_>) -> bool {
    takes_texts(schema::items(property.schema))
}

/// Returns true when an object of this schema may be written as the text of its `src`.
#[must_use]
pub fn takes_texts(item: &Value) -> bool {
    let own = schema::properties(item);
    own.iter().any(|own| own.name == "src")
        && own.iter().all(|own| own.name == "src" || !own.is_required)
}

/// Problems found so far.
struct Check {
    found: Vec<Problem>,
    most: usize,
    /// True when the length and the pattern of texts are checked.
    has_texts: bool,
}

impl Check {
    fn new(most: usize, has_texts: bool) -> Self {
        Self {
            found: Vec::new(),
            most,
            has_texts,
        }
    }

    fn report(&mut self, problem: Problem) {
        if self.found.len() < self.most {
            self.found.push(problem);
        }
    }

    fn value(&mut self, value: &mut Value, schema: &Value) {
        let choices = schema::alternatives(schema);
        if let Some(Err(problem)) = choices.map(|choices| self.choose(value, choices, schema)) {
            return self.report(problem);
        }
        if !has_kind(value, schema) || !is_listed(value, schema) {
            return self.report(Problem::of_value(schema, value));
        }
        match value {
            Value::String(text) if self.has_texts => self.text(text, schema),
            Value::Array(list) => self.list(list, schema),
            Value::Object(map) => self.object(map, schema),
            Value::Number(number) if is_out_of_range(number, schema) => {
                self.report(Problem::of_value(schema, value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Checks that one of several schemas fits. When only one accepts the value's kind, its problem is reported,
    /// since it is more helpful.
    fn choose(&self, value: &mut Value, choices: &[Value], schema: &Value) -> Result<(), Problem> {
        let mut inner = Vec::new();
        for choice in choices
            .iter()
            .filter(|choice| !is_other_form(value, choice))
        {
            let (mut changed, mut check) = (value.clone(), Self::new(1, self.has_texts));
            check.value(&mut changed, choice);
            match check.found.pop() {
                None => {
                    *value = changed;
                    return Ok(());
                }
                Some(problem) if !problem.steps.is_empty() => inner.push(problem),
                Some(_) => {}
            }
        }
        match inner.pop() {
            Some(only) if inner.is_empty() => Err(only),
            _ => Err(Problem::of_value(schema, value)),
        }
    }

    fn inside(&mut self, value: &mut Value, schema: &Value, step: impl Fn() -> PathStep) {
        let before = self.found.len();
        if before < self.most {
            self.value(value, schema);
            let found = self.found.iter_mut().skip(before);
            found.for_each(|problem| problem.steps.push(step()));
        }
    }

    fn text(&mut self, text: &str, schema: &Value) {
        if let Some((least, most)) = range(schema, "minLength", "maxLength") {
            let size = text.chars().count() as u64;
            let limit = match size < least {
                true => format!("at least {least} characters"),
                false => format!("at most {most} characters"),
            };
            if !(least..=most).contains(&size) {
                self.report(Problem::new(ProblemKind::Content(limit), size.to_string()));
            }
        }
        if let Some(Value::String(pattern)) = schema.get("pattern")
            && !matches(pattern, text)
        {
            let kind = ProblemKind::Value(format!("text that matches {pattern}"));
            let found = Mismatch::text("", "", text).found;
            self.report(Problem::new(kind, found));
        }
    }

    fn list(&mut self, list: &mut [Value], schema: &Value) {
        if let Some((least, most)) = range(schema, "minItems", "maxItems") {
            let length = list.len() as u64;
            let limit = match (least, most) {
                (least, most) if least == most => least.to_string(),
                (0, most) => format!("at most {most}"),
                (least, u64::MAX) => format!("at least {least}"),
                (least, most) => format!("{least} to {most}"),
            };
            if !(least..=most).contains(&length) {
                let kind = ProblemKind::Content(format!("a list of {limit}"));
                self.report(Problem::new(kind, format!("a list of {length}")));
            }
        }
        for (index, item) in list.iter_mut().enumerate() {
            let item_schema = schema::item(schema, index);
            self.inside(item, item_schema, || PathStep::Index(index));
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, schema: &Value) {
        let named = schema.get("properties").and_then(Value::as_object);
        for (name, property) in named.into_iter().flatten() {
            let key = || PathStep::Key(name.clone());
            match map.get_mut(name) {
                Some(Value::Null) if may_drop_null(name, property, schema) => {
                    map.shift_remove(name);
                }
                Some(value) => {
                    let before = self.found.len();
                    self.inside(value, property, key);
                    let words = schema::annotation(property, "misfit");
                    for problem in self.found.iter_mut().skip(before) {
                        problem.words = words.map(Into::into).or(problem.words.take());
                    }
                }
                None if schema::is_required(schema, name) => {
                    let kind = ProblemKind::Missing(schema::expected(property));
                    let unknown = map.keys().find(|key| schema::key(schema, key).is_none());
                    let mut problem = Problem::new(kind, "nothing");
                    problem.words = schema::annotation(property, "missing").map(Into::into);
                    if let Some(unknown) = unknown {
                        problem.found = format!("`{}` instead", join("", unknown));
                        problem.hint = Some(known_keys(schema));
                    }
                    self.report(problem.at_key(name));
                }
                None => {}
            }
        }
        let is_named = |key: &str| named.is_some_and(|named| named.contains_key(key));
        for (name, value) in map.iter_mut().filter(|(name, _)| !is_named(name)) {
            match schema::others(schema) {
                Some(others) => self.inside(value, others, || PathStep::Key(name.clone())),
                None => {
                    let found = Mismatch::value("", "", value).found;
                    let mut problem = Problem::new(ProblemKind::Unknown, found).at_key(name);
                    problem.hint = Some(known_keys(schema));
                    self.report(problem);
                }
            }
        }
    }
}

/// Returns true when a literal in an object, such as its `type`, selects another choice.
fn is_other_form(value: &Value, choice: &Value) -> bool {
    schema::properties(choice).iter().any(|property| {
        let only = property.schema.get("const");
        let found = value.get(property.name);
        only.zip(found).is_some_and(|(only, found)| only != found)
    })
}

/// Checks the type of a value.
fn has_kind(value: &mut Value, schema: &Value) -> bool {
    if schema.get("type").is_none() {
        return true;
    }
    let is = |name| schema::has_type(schema, name);
    match value {
        Value::Null => is("null"),
        Value::Bool(_) => is("boolean"),
        Value::String(_) => is("string"),
        Value::Array(_) => is("array"),
        Value::Object(_) => is("object"),
        Value::Number(number) if is("integer") => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
            is("number") || !number.is_f64()
        }
        Value::Number(_) => is("number"),
    }
}

/// Returns a floating point number without a fraction as an integer, when that is exact.
fn whole(number: &Number) -> Option<Number> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    let is_whole = value.fract() == 0.0 && value.abs() <= MAX_EXACT;
    // Exact up to the limit just checked; `{:.0}` prints neither fraction nor exponent.
    is_whole
        .then(|| format!("{value:.0}").parse::<i64>().ok())?
        .map(Number::from)
}

/// Returns the least and the most of a size, when a schema limits it.
fn range(schema: &Value, least: &str, most: &str) -> Option<(u64, u64)> {
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    let (least, most) = (bound(least), bound(most));
    (least.is_some() || most.is_some()).then(|| (least.unwrap_or(0), most.unwrap_or(u64::MAX)))
}

fn is_listed(value: &Value, schema: &Value) -> bool {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(choices)), _) => choices.contains(value),
        (_, Some(only)) => only == value,
        _ => true,
    }
}

fn is_out_of_range(number: &Number, schema: &Value) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Value::as_number);
    let is_less = |a: &Number, b: &Number| match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        (_, _) => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a < b),
    };
    bound("minimum").is_some_and(|least| is_less(number, least))
        || bound("maximum").is_some_and(|most| is_less(most, number))
}

/// Returns true when a text matches a pattern of a schema, which is compiled once.
fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> =
        LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if !compiled.contains_key(pattern) {
        compiled.insert(pattern.to_owned(), Regex::new(pattern).ok());
    }
    let pattern = compiled.get(pattern).and_then(Option::as_ref);
    pattern.is_none_or(|pattern| pattern.is_match(text))
}

/// Returns true when `null` for a property means that it is not given.
fn may_drop_null(name: &str, property: &Value, schema: &Value) -> bool {
    !schema::is_required(schema, name)
        && !schema::has_type(property, "null")
        && !schema::is_any(property)
}

fn known_keys(schema: &Value) -> String {
    let keys: Vec<&str> = schema::properties(schema).iter().map(|p| p.name).collect();
    match keys.is_empty() {
        true => "leave it out: there are no arguments here".to_owned(),
        false => format!("the keys here are {}", keys.join(", ")),
    }
}

/// Returns the error of a key that an object does not have.
#[must_use]
pub fn unknown_key(path: &str, found: &Value, schema: &Value) -> Mismatch<'static> {
    Mismatch::value(path, "left out, since there is no such key", found)
        .with_hint(known_keys(schema))
}
