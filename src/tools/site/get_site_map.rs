//! `get_site_map`: points of interest of a site and routes between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::site::not_found;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_store::site::Content;

/// The tool.
pub struct GetSiteMap;

/// Arguments of `get_site_map`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// True to list the points of interest, as by default.
    pub include_pois: Option<bool>,
    /// True to list the routes; false by default.
    pub include_routes: Option<bool>,
}

/// The map of a site.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the site.
    pub site_id: String,
    /// Name of the site.
    pub site_name: String,
    /// Points of interest.
    pub pois: Vec<Point>,
    /// Routes.
    pub routes: Vec<Route>,
}

/// A point of interest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Point {
    /// Identifier.
    pub id: String,
    /// Name.
    pub name: String,
    /// Kind of place.
    #[serde(rename = "type")]
    pub kind: String,
    /// Geographic position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A geographic position, in degrees.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Latitude.
    pub lat: f64,
    /// Longitude.
    pub lng: f64,
}

/// A route between points of interest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Route {
    /// Identifier.
    pub id: String,
    /// Name.
    pub name: String,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The points on the route, in order.
    pub stops: Vec<String>,
}

impl From<Content> for Point {
    fn from(content: Content) -> Self {
        let location = content.metadata.get("location").cloned();
        Self {
            id: content.id,
            name: content.title,
            kind: content.category.unwrap_or_else(|| "default".into()),
            location: location.and_then(|value| serde_json::from_value(value).ok()),
            description: content.summary,
        }
    }
}

impl From<Content> for Route {
    fn from(content: Content) -> Self {
        let stops = content.metadata.get("stops").and_then(Value::as_array);
        let names = stops.into_iter().flatten().filter_map(Value::as_str);
        Self {
            id: content.id,
            name: content.title,
            description: content.summary,
            stops: names.map(str::to_owned).collect(),
        }
    }
}

impl Tool for GetSiteMap {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "get_site_map",
        summary: "Get the points of interest and the routes of the site",
        details: "Points are listed unless `include_pois` is false, routes only when `include_routes` is true.",
        also_called: &[],
        heading: "get_site_map",
        starts_job: false,
        family: Family::Site,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "The points of interest",
                before: "",
                xml: "<get_site_map/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Routes alone",
                before: "",
                xml: "<get_site_map include_pois=\"false\" include_routes=\"true\"/>",
                status: Status::Ok,
                code: None,
            },
        ],
    };
    const SERVICE: Service = Service::reading("site");

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn effect(_: &Args) -> Effect {
        Effect::Alone
    }

    fn title(_: &Args) -> String {
        String::new()
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let site = context.site()?;
        let found = site.store.site(&site.scope).await?;
        let about = found.ok_or_else(|| not_found("Site", &site.scope.site_id))?;
        let pois = match args.include_pois.unwrap_or(true) {
            true => site.store.of_type(&site.scope, "poi").await?,
            false => Vec::new(),
        };
        let routes = match args.include_routes.unwrap_or(false) {
            true => site.store.of_type(&site.scope, "route").await?,
            false => Vec::new(),
        };
        Ok(Answer::ok(Output {
            site_id: about.site_id,
            site_name: about.name,
            pois: pois.into_iter().map(Point::from).collect(),
            routes: routes.into_iter().map(Route::from).collect(),
        }))
    }
}
