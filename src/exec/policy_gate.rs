//! Checks that calls may use the secrets they name, before their block runs.
//!
//! Names, policies, contexts in scripts and the user's consent are all checked before any call of a
//! block starts. No values are passed on here.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::exec::approval::Approvals;
use crate::exec::resolve;
use crate::tool::Use;
use crate::tool::context::{ApprovalRequest, Consent, Context};
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::{SecretName, Template};
use karyi_net::WebUrl;
use karyi_vault::policy::{Approval, OutputPolicy, Policy, PolicyFile};
use karyi_vault::session::{Origin, Secrets};
use karyi_vault::{shell, substitute, usage_warnings};

/// A name that no secret has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The file or option that contains it.
    pub place: &'static str,
    /// The name.
    pub name: SecretName,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, name } = self;
        write!(f, "{place} names {name}, and no secret is called that")
    }
}

/// The policy of a run: the policy file and the user's consent. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct PolicyGate {
    file: Arc<PolicyFile>,
    approvals: Approvals,
    /// Path of the policy file.
    path: Option<PathBuf>,
    /// Names in the policy file or in `--allow` that no secret has.
    unknown: Arc<Vec<UnknownName>>,
    /// Directory of the run; secrets may be bound to it.
    project: PathBuf,
    approved: Arc<Mutex<BTreeSet<SecretName>>>,
    /// Secrets for which the model was warned that other users can read them in an argument.
    warned: Arc<Mutex<BTreeSet<SecretName>>>,
}

impl PolicyGate {
    /// Creates the gate of a run in `project`. The names in `allowed` need no further consent.
    #[must_use]
    pub fn new(file: PolicyFile, project: PathBuf, allowed: BTreeSet<SecretName>) -> Self {
        Self {
            file: Arc::new(file),
            approvals: Approvals::default(),
            path: None,
            unknown: Arc::default(),
            project,
            approved: Arc::new(Mutex::new(allowed)),
            warned: Arc::default(),
        }
    }

    /// Sets which calls a person is asked about.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals, ..self }
    }

    /// Returns which calls a person is asked about.
    #[must_use]
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Sets the path of the policy file, for error messages.
    #[must_use]
    pub fn with_path(self, path: Option<&Path>) -> Self {
        Self {
            path: path.map(Path::to_owned),
            ..self
        }
    }

    /// Compares the names in the policy file and in `--allow` with the names of the secrets.
    ///
    /// # Errors
    /// `bad_policy` for a name that differs from a secret's name only in case.
    pub fn compare_names(&mut self, known: &BTreeSet<SecretName>) -> Result<(), ToolError> {
        let unknown = |place, names: Vec<SecretName>| {
            names
                .into_iter()
                .map(move |name| UnknownName { place, name })
        };
        let in_file = unknown("the policy file", self.file.unknown(known)?);
        let agreed: Vec<SecretName> = {
            let approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
            approved.difference(known).cloned().collect()
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

    /// Returns the names in the policy file and in `--allow` that no secret has.
    #[must_use]
    pub fn unknown(&self) -> &[UnknownName] {
        &self.unknown
    }

    /// Checks calls before any of them runs. In a dry run, earlier calls may define names later; other rules
    /// do not apply to those.
    ///
    /// # Errors
    /// The first error, and the index of its call.
    pub async fn check(
        &self,
        calls: &mut [&mut Call],
        context: &Context,
    ) -> Result<(), (usize, ToolError)> {
        let mut requests: Vec<(usize, ApprovalRequest)> = Vec::new();
        for (at, call) in calls.iter_mut().enumerate() {
            let to_approve = self.check_call(call, &context.secrets);
            for name in to_approve.map_err(|error| (at, error))? {
                if !requests.iter().any(|(_, request)| request.name == name) {
                    let warnings = self.all_warnings(call, &context.secrets, &mut |_| true);
                    let mut request = request(name, call, warnings);
                    // A value that the model wrote out is no placeholder.
                    context.redactor.redact_in_again(&mut request.text);
                    requests.push((at, request));
                }
            }
        }
        for (at, request) in requests {
            let agreed = self.request_approval(&request, context).await;
            agreed.map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// Checks again that no secret of a call has expired: the calls before it may have taken long.
    ///
    /// # Errors
    /// `secret_expired`.
    pub fn check_expiry(&self, call: &mut Call, secrets: &Secrets) -> Result<(), ToolError> {
        let mut checked = Ok(());
        call.templates(&mut |_, template| {
            let names = match template.has_placeholder() && checked.is_ok() {
                true => substitute::names_in(template.source()).unwrap_or_default(),
                false => Vec::new(),
            };
            for name in names {
                if checked.is_ok() {
                    let check = |policy: &Policy| policy.check_end(&name, Timestamp::now());
                    checked = self.check_policy(&name, secrets, check).map(drop);
                }
            }
        });
        checked
    }

    /// Returns warnings about the secrets of a call. A secret in a program's argument is reported once.
    #[must_use]
    pub fn warnings(&self, call: &mut Call, secrets: &Secrets) -> Vec<String> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        self.all_warnings(call, secrets, &mut |name| warned.insert(name.clone()))
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

    /// Runs a check against the secret's policy, narrowed for this run, and returns that policy; `None` when
    /// the name has no secret. An error caused by the policy file alone points to that file.
    fn check_policy(
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
        match (&self.path, own) {
            // The secret's own policy forbids the use, whatever the file says.
            (_, Some(Err(own))) => Err(with_storing_hint(own, secrets.origin(name))),
            (Some(path), Some(Ok(()))) => {
                let path = path.display();
                let hint = format!(
                    "the file {path} of --policy says so: ask the user to change it, or use another secret"
                );
                Err(error.with_hint(hint))
            }
            _ => Err(error),
        }
    }

    /// Returns the policy of a secret, narrowed for this run.
    fn policy(&self, name: &SecretName, secrets: &Secrets) -> Option<Policy> {
        let own = secrets.policy(name)?;
        Some(self.file.narrow(name, &own))
    }

    /// Checks one call; returns the names that still need the user's consent.
    fn check_call(&self, call: &mut Call, secrets: &Secrets) -> Result<Vec<SecretName>, ToolError> {
        let tool = call.policy_name();
        let destination = resolve::destination(call);
        let mut found = UsedSecrets::default();
        let mut failed = None;
        call.templates(&mut |purpose, template| {
            if failed.is_none() {
                let text = CallText {
                    tool,
                    purpose,
                    template,
                    destination: destination.as_ref(),
                };
                failed = self.check_text(&text, secrets, &mut found).err();
            }
        });
        if let (true, Call::UrlFetch(args)) = (found.has_sealed, call) {
            args.is_sealed = true;
        }
        failed.map_or(Ok(found.to_approve), Err)
    }

    fn check_text(
        &self,
        text: &CallText<'_>,
        secrets: &Secrets,
        found: &mut UsedSecrets,
    ) -> Result<(), ToolError> {
        let CallText {
            tool,
            purpose,
            template,
            destination,
        } = *text;
        if purpose == Use::Written {
            resolve::check_written(template.source(), secrets)?;
        }
        if !template.has_placeholder() {
            return Ok(());
        }
        // Uses that no policy can allow come first: widening the policy would not help.
        if purpose != Use::Script {
            substitute::check_files(template.source())?;
        }
        if matches!(purpose, Use::Pattern | Use::Shared) && template.has_secret() {
            return Err(resolve::refused(purpose));
        }
        let names = substitute::names_in(template.source())?;
        let mut is_known = true;
        for name in &names {
            let now = Timestamp::now();
            let check = |policy: &Policy| {
                policy.check_use(name, tool, &self.project, now)?;
                match (purpose, destination) {
                    (Use::Written, _) => policy.check_write(name),
                    (Use::Header, Some(url)) => {
                        policy.check_host(name, url.scheme(), url.host(), url.unusual_port())
                    }
                    _ => Ok(()),
                }
            };
            let Some(policy) = self.check_policy(name, secrets, check)? else {
                is_known = false;
                continue;
            };
            let approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
            if policy.approval == Approval::Ask && !approved.contains(name) {
                found.to_approve.push(name.clone());
            }
            found.has_sealed |= policy.output == OutputPolicy::Sealed;
        }
        if is_known {
            check_context(purpose, template, secrets)?;
        }
        Ok(())
    }

    /// Asks the user to consent to the use of a secret, once in a session.
    async fn request_approval(
        &self,
        request: &ApprovalRequest,
        context: &Context,
    ) -> Result<(), ToolError> {
        let name = &request.name;
        match context.prompter.approve(request).await {
            Consent::Yes => {
                let mut approved = self.approved.lock().unwrap_or_else(PoisonError::into_inner);
                approved.insert(name.clone());
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

/// Adds to the hint that a secret given for this run only must be stored before its policy can be changed.
fn with_storing_hint(error: ToolError, origin: Option<Origin>) -> ToolError {
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
struct CallText<'a> {
    tool: &'a str,
    purpose: Use,
    template: &'a Template,
    /// URL that values in headers are sent to.
    destination: Option<&'a WebUrl>,
}

/// Secrets of a call.
#[derive(Default)]
struct UsedSecrets {
    /// Those that the user must agree to.
    to_approve: Vec<SecretName>,
    /// True when the result must not be shown.
    has_sealed: bool,
}

/// Checks that the values can be passed safely in their context.
fn check_context(purpose: Use, template: &Template, secrets: &Secrets) -> Result<(), ToolError> {
    match purpose {
        Use::Script => shell::check_script(template.source(), secrets),
        Use::Typed => substitute::substitute_typed(template.source(), secrets).map(drop),
        Use::Pattern | Use::Shared | Use::Literal | Use::Written | Use::Header => Ok(()),
    }
}

fn request(name: SecretName, call: &mut Call, mut warnings: Vec<String>) -> ApprovalRequest {
    let mut texts = Vec::new();
    call.templates(&mut |_, template| {
        if template.names().is_ok_and(|names| names.contains(&name)) {
            texts.push(template.source().to_owned());
        }
    });
    let text = texts.join("\n");
    let about = format!("{name} ");
    warnings.retain(|warning| warning.starts_with(&about));
    let sent_to = resolve::destination(call).map(|url| url.named_host());
    let in_text = usage_warnings::hosts(&text);
    ApprovalRequest {
        tool: call.spec().name,
        hosts: sent_to.into_iter().chain(in_text).collect(),
        warnings,
        name,
        text,
    }
}
