//! Whether calls may use the secrets they name: the stage between reading a block and running it.
//!
//! Everything that can be known is checked before anything of a block runs: names, policies, the
//! places in scripts, and the user's agreement where a policy wants it. Values go nowhere here.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::exec::resolve;
use crate::tool::Use;
use crate::tool::context::{Consent, Context, Request};
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, Template};
use karyi_vault::policy::{Approval, Policy, PolicyFile};
use karyi_vault::session::{Origin, Secrets};
use karyi_vault::{shell, substitute, usage_warnings};

/// A name that no secret has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Where it stands.
    pub place: &'static str,
    /// The name.
    pub name: SecretName,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, name } = self;
        write!(f, "{place} names {name}, and no secret is called that")
    }
}

/// What narrows the policies of secrets in a run, and what the user agreed to. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Permits {
    file: Arc<PolicyFile>,
    /// Where that was read.
    place: Option<PathBuf>,
    /// Names in the file, or agreed to, that no secret has.
    unknown: Arc<Vec<Unknown>>,
    /// The directory the run is about; secrets may be bound to it.
    project: PathBuf,
    granted: Arc<Mutex<BTreeSet<SecretName>>>,
    /// Secrets of which the model was told that other users can read them in an argument.
    told: Arc<Mutex<BTreeSet<SecretName>>>,
}

impl Permits {
    /// Makes the permits of a run in `project`. The names in `allowed` need no further agreement.
    #[must_use]
    pub fn new(file: PolicyFile, project: PathBuf, allowed: BTreeSet<SecretName>) -> Self {
        Self {
            file: Arc::new(file),
            place: None,
            unknown: Arc::default(),
            project,
            granted: Arc::new(Mutex::new(allowed)),
            told: Arc::default(),
        }
    }

    /// Says where the policy file was read, for whoever has to change it.
    #[must_use]
    pub fn read_in(self, place: Option<&Path>) -> Self {
        Self {
            place: place.map(Path::to_owned),
            ..self
        }
    }

    /// Compares the names in the policy file, and those agreed to, with those of the secrets there are.
    ///
    /// # Errors
    /// `bad_policy` for one that differs from that of a secret only in case.
    pub fn compare(&mut self, known: &BTreeSet<SecretName>) -> Result<(), ToolError> {
        let unknown = |place, names: Vec<SecretName>| {
            names.into_iter().map(move |name| Unknown { place, name })
        };
        let in_file = unknown("the policy file", self.file.unknown(known)?);
        let agreed: Vec<SecretName> = {
            let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
            granted.difference(known).cloned().collect()
        };
        for name in &agreed {
            if let Some(meant) = known.iter().find(|meant| meant.differs_only_in_case(name)) {
                let message = format!("--allow {name}: the secret is called {meant}");
                return Err(ToolError::new(ErrorCode::BadPolicy, message)
                    .with_hint(format!("write --allow {meant}")));
            }
        }
        self.unknown = Arc::new(in_file.chain(unknown("--allow", agreed)).collect());
        Ok(())
    }

    /// Returns the names in the policy file, and those agreed to, that no secret has.
    #[must_use]
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// Checks calls before any of them runs. In a dry run names may be promised by earlier calls;
    /// nothing else is known of them.
    ///
    /// # Errors
    /// The first thing that stands against one of the calls, and the place of that call.
    pub async fn check(
        &self,
        calls: &mut [&mut Call],
        context: &Context,
    ) -> Result<(), (usize, ToolError)> {
        let mut requests: Vec<(usize, Request)> = Vec::new();
        for (at, call) in calls.iter_mut().enumerate() {
            let asked = self.check_call(call, &context.secrets);
            for name in asked.map_err(|error| (at, error))? {
                if !requests.iter().any(|(_, request)| request.name == name) {
                    let warnings = self.all_warnings(call, &context.secrets, &mut |_| true);
                    requests.push((at, request(name, call, warnings)));
                }
            }
        }
        for (at, request) in requests {
            let agreed = self.ask(&request, context).await;
            agreed.map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// Checks that no secret of a call has expired since its block was checked: the calls before it may take
    /// long.
    ///
    /// # Errors
    /// `secret_expired`.
    pub fn check_ends(&self, call: &mut Call, secrets: &Secrets) -> Result<(), ToolError> {
        let mut checked = Ok(());
        call.templates(&mut |_, template| {
            let names = match template.has_placeholder() && checked.is_ok() {
                true => substitute::names_in(template.source()).unwrap_or_default(),
                false => Vec::new(),
            };
            for name in names {
                if checked.is_ok() {
                    let check = |policy: &Policy| policy.check_end(&name, Timestamp::now());
                    checked = self.hold(&name, secrets, check).map(drop);
                }
            }
        });
        checked
    }

    /// Returns warnings about the secrets of a call; that one is an argument of a program is told once.
    #[must_use]
    pub fn warnings(&self, call: &mut Call, secrets: &Secrets) -> Vec<String> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        self.all_warnings(call, secrets, &mut |name| told.insert(name.clone()))
    }

    fn all_warnings(
        &self,
        call: &mut Call,
        secrets: &Secrets,
        is_new: &mut dyn FnMut(&SecretName) -> bool,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        call.templates(&mut |purpose, template| {
            if purpose == Use::Script && template.has_secret() {
                let policy = |name: &SecretName| self.policy(name, secrets);
                warnings.extend(usage_warnings::usage_warnings(
                    template.source(),
                    &policy,
                    is_new,
                ));
            }
            if purpose == Use::Script {
                let is_known = |name: &SecretName| secrets.contains(name);
                warnings.extend(usage_warnings::misspelled_placeholders(
                    template.source(),
                    &is_known,
                ));
            }
        });
        warnings
    }

    /// Holds a check against the policy of a secret as this run narrows it, and returns that; nothing for what is no
    /// secret. What only the file forbids, the file must be changed for.
    fn hold(
        &self,
        name: &SecretName,
        secrets: &Secrets,
        check: impl Fn(&Policy) -> Result<(), ToolError>,
    ) -> Result<Option<Policy>, ToolError> {
        let Some(policy) = self.policy(name, secrets) else {
            return Ok(None);
        };
        let Err(error) = check(&policy) else {
            return Ok(Some(policy));
        };
        let own = secrets.policy(name).map(|own| check(&own));
        match (&self.place, own) {
            // It can be widened as it is, and not as the file narrows it.
            (_, Some(Err(own))) => Err(kept(own, secrets.origin(name))),
            (Some(place), Some(Ok(()))) => {
                let place = place.display();
                let hint = format!(
                    "the file {place} of --policy says so: ask the user to change it, or use another secret"
                );
                Err(error.with_hint(hint))
            }
            _ => Err(error),
        }
    }

    /// Returns the policy of a secret as this run narrows it.
    fn policy(&self, name: &SecretName, secrets: &Secrets) -> Option<Policy> {
        let own = secrets.policy(name)?;
        Some(self.file.narrow(name, &own))
    }

    /// Checks one call; returns the names to whose use the user must still agree.
    fn check_call(&self, call: &mut Call, secrets: &Secrets) -> Result<Vec<SecretName>, ToolError> {
        let tool = call.spec().name;
        let mut asked = Vec::new();
        let mut failed = None;
        call.templates(&mut |purpose, template| {
            if failed.is_none() {
                let text = Text {
                    tool,
                    purpose,
                    template,
                };
                failed = self.check_text(&text, secrets, &mut asked).err();
            }
        });
        failed.map_or(Ok(asked), Err)
    }

    fn check_text(
        &self,
        text: &Text<'_>,
        secrets: &Secrets,
        asked: &mut Vec<SecretName>,
    ) -> Result<(), ToolError> {
        let Text {
            tool,
            purpose,
            template,
        } = *text;
        if purpose == Use::Written {
            resolve::check_written(template.source(), secrets)?;
        }
        if !template.has_placeholder() {
            return Ok(());
        }
        // What no policy can allow is told before the policy, which its user would widen for nothing.
        if purpose != Use::Script {
            substitute::check_files(template.source())?;
        }
        if purpose == Use::Pattern && template.has_secret() {
            return Err(resolve::in_pattern());
        }
        let names = substitute::names_in(template.source())?;
        let mut is_known = true;
        for name in &names {
            let now = Timestamp::now();
            let check = |policy: &Policy| {
                policy.check_use(name, tool, &self.project, now)?;
                match purpose {
                    Use::Written => policy.check_write(name),
                    _ => Ok(()),
                }
            };
            let Some(policy) = self.hold(name, secrets, check)? else {
                is_known = false;
                continue;
            };
            let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
            if policy.approval == Approval::Ask && !granted.contains(name) {
                asked.push(name.clone());
            }
        }
        if is_known {
            check_place(purpose, template, secrets)?;
        }
        Ok(())
    }

    /// Asks the user to agree to the use of a secret, once in a session.
    async fn ask(&self, request: &Request, context: &Context) -> Result<(), ToolError> {
        let name = &request.name;
        match context.prompter.agree(request).await {
            Consent::Yes => {
                let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
                granted.insert(name.clone());
                Ok(())
            }
            Consent::No => {
                let message = format!("the user did not agree to the use of {name}");
                Err(ToolError::new(ErrorCode::Declined, message))
            }
            Consent::Unavailable => {
                let message = format!("the policy of {name} wants the user's agreement");
                let hint = format!("run karyi with --allow {name}, or on a terminal");
                Err(ToolError::new(ErrorCode::ApprovalRequired, message).with_hint(hint))
            }
        }
    }
}

/// Returns the error for a use that the own policy of a secret forbids: one that was given for this run alone is to be
/// kept before its policy can say anything else.
fn kept(error: ToolError, origin: Option<Origin>) -> ToolError {
    match origin {
        Some(Origin::Asked) => {
            let hint = error.hint.replace(" --keep-value", "");
            error.with_hint(format!("{hint}; a run started after that has it"))
        }
        _ => error,
    }
}

/// A text of a call.
#[derive(Clone, Copy)]
struct Text<'a> {
    tool: &'a str,
    purpose: Use,
    template: &'a Template,
}

/// Checks that the values fit the places they stand at.
fn check_place(purpose: Use, template: &Template, secrets: &Secrets) -> Result<(), ToolError> {
    match purpose {
        Use::Script => shell::check_script(template.source(), secrets),
        Use::Typed => substitute::substitute_typed(template.source(), secrets).map(drop),
        Use::Pattern | Use::Literal | Use::Written => Ok(()),
    }
}

fn request(name: SecretName, call: &mut Call, mut warnings: Vec<String>) -> Request {
    let mut texts = Vec::new();
    call.templates(&mut |_, template| {
        if template.names().is_ok_and(|names| names.contains(&name)) {
            texts.push(template.source().to_owned());
        }
    });
    let text = texts.join("\n");
    let about = format!("{name} ");
    warnings.retain(|warning| warning.starts_with(&about));
    Request {
        tool: call.spec().name,
        hosts: usage_warnings::hosts(&text).into_iter().collect(),
        warnings,
        name,
        text,
    }
}
