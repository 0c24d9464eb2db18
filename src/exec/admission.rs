//! Admits calls: what a person says to them, their names, their policies and the user's consent to secrets are checked
//! here, once, before they run.

use std::collections::HashMap;

use crate::exec::consent::{self, BlockState, DecidedCall};
use crate::exec::decoder::PreparedCall;
use crate::exec::interruption::not_started_error;
use crate::exec::resolve;
use crate::exec::run_context::RunContext;
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;
use karyi_vault::session::{Need, Origin};

/// A call that may run.
#[derive(Debug)]
pub struct AdmittedCall(PreparedCall);

impl AdmittedCall {
    /// Returns the call.
    #[must_use]
    pub fn into_inner(self) -> PreparedCall {
        self.0
    }
}

/// Calls of which at least one was refused, so that none may run.
#[derive(Debug)]
pub struct RefusedCalls {
    /// All of them.
    pub calls: Vec<PreparedCall>,
    /// Errors of the refused ones, by index.
    pub errors: HashMap<usize, ToolError>,
}

/// Admits the calls of one block.
pub struct Admission {
    run: RunContext,
    /// Names that had a value when the block opened: a value asked for in this block is for the next one.
    names: Vec<SecretName>,
}

impl Admission {
    /// Opens a block. The names in `promised` count as known, too.
    pub async fn open(run: RunContext, promised: &[SecretName]) -> Self {
        let secrets = &run.context.secrets;
        resolve::refresh(secrets, Need::Listed).await;
        let mut names = secrets.names();
        names.extend_from_slice(promised);
        Self { run, names }
    }

    /// Admits the calls of a block together: all of them or none.
    ///
    /// # Errors
    /// The calls, with the errors of those that were refused.
    pub async fn admit(&self, calls: Vec<PreparedCall>) -> Result<Vec<AdmittedCall>, RefusedCalls> {
        let calls = match self.run.is_dry_run || !self.run.policy_gate.approvals().is_on() {
            true => calls,
            false => self.decide(calls).await?,
        };
        self.check_all(calls).await
    }

    /// Admits a call about which rules and person have decided.
    ///
    /// # Errors
    /// The call, with its error.
    pub async fn admit_decided(
        &self,
        (prepared, decision): DecidedCall,
    ) -> Result<Vec<AdmittedCall>, RefusedCalls> {
        let calls = vec![prepared];
        match decision {
            Ok(()) => self.check_all(calls).await,
            Err(error) => Err(RefusedCalls {
                calls,
                errors: HashMap::from([(0, error)]),
            }),
        }
    }

    /// Asks whether the calls run.
    async fn decide(&self, calls: Vec<PreparedCall>) -> Result<Vec<PreparedCall>, RefusedCalls> {
        let (mut judged, mut state) = (Vec::new(), BlockState::default());
        for prepared in calls {
            let call = consent::judge(&self.run, prepared, state).await;
            state.add(&call.prepared.call);
            judged.push(call);
        }
        let (mut calls, mut errors) = (Vec::new(), HashMap::new());
        for (prepared, decision) in consent::ask(&self.run, judged).await {
            if let Err(error) = decision {
                errors.insert(calls.len(), error);
            }
            calls.push(prepared);
        }
        match errors.is_empty() {
            true => Ok(calls),
            false => Err(RefusedCalls { calls, errors }),
        }
    }

    async fn check_all(
        &self,
        mut calls: Vec<PreparedCall>,
    ) -> Result<Vec<AdmittedCall>, RefusedCalls> {
        let session = self.run.context.supervision.as_ref();
        // A call of a tool that its role does not have ends with an error in its turn, whatever it holds.
        let has_tool =
            |call: &Call| session.is_none_or(|session| session.has_tool(call.spec().name));
        let inner = calls.iter_mut().map(|prepared| &mut prepared.call);
        let inner = inner.enumerate().filter(|(_, call)| has_tool(call));
        let (places, mut inner): (Vec<usize>, Vec<&mut Call>) = inner.unzip();
        for call in &mut inner {
            resolve::add_settings(call, &self.run.context.settings);
        }
        match self.check(&mut inner).await {
            Ok(()) => Ok(calls.into_iter().map(AdmittedCall).collect()),
            Err(errors) => {
                let errors = errors.into_iter();
                let errors = errors.filter_map(|(at, error)| Some((*places.get(at)?, error)));
                let errors = errors.collect();
                Err(RefusedCalls { calls, errors })
            }
        }
    }

    async fn check(&self, calls: &mut [&mut Call]) -> Result<(), HashMap<usize, ToolError>> {
        let secrets = &self.run.context.secrets;
        let is_known = |name: &SecretName| self.names.contains(name);
        let mut checked = resolve::check_names(calls.iter_mut().map(|call| &mut **call), &is_known);
        let is_stored =
            |name: &SecretName| is_known(name) || secrets.origin(name) == Some(Origin::Stored);
        if is_undefined(&checked) && secrets.has_source() {
            resolve::refresh(secrets, Need::Used).await;
            checked = resolve::check_names(calls.iter_mut().map(|call| &mut **call), &is_stored);
        }
        if self.run.cancel.is_interrupted() {
            return Err((0..calls.len())
                .map(|at| (at, not_started_error()))
                .collect());
        }
        if let Err(error) = checked {
            let refused = failing_calls(calls, &is_stored, &error);
            return Err(refused
                .map(|(at, error)| (at, resolve::explain(error, secrets)))
                .collect());
        }
        let allowed = self.run.policy_gate.check(calls, &self.run.context).await;
        allowed.map_err(|refused| HashMap::from([refused]))
    }
}

fn is_undefined(checked: &Result<(), ToolError>) -> bool {
    matches!(checked, Err(error) if error.code == ErrorCode::UndefinedVariable)
}

/// Returns the calls with an undefined or malformed name, by index. For undefined names each gets
/// the error of all calls, which lists all of them.
fn failing_calls<'a>(
    calls: &'a mut [&mut Call],
    is_known: &'a dyn Fn(&SecretName) -> bool,
    of_all: &'a ToolError,
) -> impl Iterator<Item = (usize, ToolError)> + 'a {
    calls.iter_mut().enumerate().filter_map(move |(at, call)| {
        let own = resolve::check_names(std::iter::once(&mut **call), is_known).err()?;
        let is_listed = own.code == of_all.code && own.code == ErrorCode::UndefinedVariable;
        Some((at, if is_listed { of_all.clone() } else { own }))
    })
}
