//! Decides with a person which calls run.

use std::collections::VecDeque;

use crate::approval::{AskedPart, CallAnswer, CallQuestion, Verdict, judge};
use crate::exec::call_title::title;
use crate::exec::decoder::{Approval, PreparedCall};
use crate::exec::edit_trial::{self, ChangedFile};
use crate::exec::interruption::not_started_error;
use crate::exec::jobs::JobTarget;
use crate::exec::live_names::{changed_names, note_start};
use crate::exec::resolve;
use crate::exec::run_context::RunContext;
use crate::tool::Effect;
use crate::tools::Call;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::Template;
use karyi_core::shell_word;
use karyi_vault::redact::Redactor;

/// Call with the decision of the rules.
#[derive(Debug)]
pub struct JudgedCall {
    /// The call.
    pub prepared: PreparedCall,
    /// The decision.
    pub verdict: Verdict,
}

/// Call with the decision of rules and person.
pub type DecidedCall = (PreparedCall, Result<(), ToolError>);

/// Place of a call in its block.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockState {
    /// True when calls before it are still to run. The shell is then asked about names when the call starts.
    pub has_pending: bool,
    /// True when the last command before it in the block takes commands from the terminal; `None` without one.
    pub takes_commands: Option<bool>,
}

impl BlockState {
    /// Records a call.
    pub fn add(&mut self, call: &Call) {
        self.has_pending = true;
        if let Call::Command(args) = call {
            self.takes_commands = Some(judge::takes_commands(args.text.source()));
        }
    }
}

/// Judges a call before it runs.
pub async fn judge(run: &RunContext, mut prepared: PreparedCall, block: BlockState) -> JudgedCall {
    let approvals = run.policy_gate.approvals();
    resolve::add_settings(&mut prepared.call, &run.context.settings);
    let call = &prepared.call;
    let place = run.context.sessions.as_ref();
    let types_code = block
        .takes_commands
        .unwrap_or_else(|| types_code(run, call));
    let mut verdict = approvals.judge(call, place, types_code);
    let tool = call.spec().name;
    let session = run.context.supervision.as_ref();
    let lacks_tool = session.is_some_and(|session| !session.has_tool(tool));
    if lacks_tool || run.context.settings.check_enabled(tool).is_err() {
        // It ends with an error whatever a person says.
        verdict = Verdict::Allow(Vec::new());
    }
    if let (Verdict::Allow(names), false) = (&verdict, block.has_pending)
        && matches!(call.effect(), Effect::Session)
        && let Some(terminal) = run.context.sessions.current()
        && !terminal.session.has_job()
    {
        let parts = changed_names(approvals, &terminal.session, names).await;
        match parts.is_empty() {
            true => prepared.approved = Approval::Names,
            false => verdict = Verdict::Ask(parts),
        }
    }
    JudgedCall { prepared, verdict }
}

/// Returns true when a call types into a job that may take commands.
fn types_code(run: &RunContext, call: &Call) -> bool {
    if !matches!(call, Call::Input(_) | Call::Ctrl(_)) {
        return false;
    }
    let target = run.jobs.for_input(call.job()).ok();
    let job = target.filter(|target| !target.job.is_empty());
    job.is_some_and(|target| run.policy_gate.approvals().takes_commands(&target.job))
}

impl JudgedCall {
    /// Returns the decision without a person.
    pub fn without_person(self) -> DecidedCall {
        let decision = match &self.verdict {
            Verdict::Allow(_) => Ok(()),
            Verdict::Deny(rule) => Err(denied_by(rule)),
            Verdict::Ask(parts) => Err(needs_approval(parts)),
        };
        (self.prepared, decision)
    }

    fn is_asked(&self) -> bool {
        matches!(self.verdict, Verdict::Ask(_))
    }

    /// Returns the parts that no rule allows.
    fn parts(&self) -> Vec<AskedPart> {
        match &self.verdict {
            Verdict::Ask(parts) => parts.clone(),
            Verdict::Allow(_) | Verdict::Deny(_) => Vec::new(),
        }
    }
}

/// Asks a person about calls together, and again about those after a denied or changed one that do more than read.
pub async fn ask(run: &RunContext, calls: Vec<JudgedCall>) -> Vec<DecidedCall> {
    let mut decided = Vec::new();
    let mut rest = VecDeque::new();
    let is_asked = calls.iter().any(JudgedCall::is_asked);
    for mut call in calls {
        if is_asked {
            // The answers may take long.
            call.prepared.approved = Approval::Nothing;
        }
        match call.verdict {
            Verdict::Deny(_) => decided.push(call.without_person()),
            Verdict::Allow(_) | Verdict::Ask(_) => rest.push_back(call),
        }
    }
    while rest.iter().any(JudgedCall::is_asked) {
        let mut questions = Vec::new();
        for call in rest.iter().filter(|call| call.is_asked()) {
            let (id, call, parts) = (&call.prepared.id, &call.prepared.call, call.parts());
            questions.push(question(run, id, call, parts).await);
        }
        let mut answers = match answers(run, &questions).await {
            Answers::Given(answers) => answers.into_iter(),
            Answers::Nobody => break,
            Answers::Interrupted => {
                let calls = rest
                    .into_iter()
                    .map(|call| (call.prepared, Err(not_started_error())));
                decided.extend(calls);
                return in_order(decided);
            }
        };
        while let Some(call) = rest.pop_front() {
            // What the rules allow waits for its turn only, and is checked again when it starts.
            if !call.is_asked() {
                decided.push(call.without_person());
                continue;
            }
            let answer = answers.next().unwrap_or(CallAnswer::No(String::new()));
            let parts = call.parts();
            let is_changed = matches!(answer, CallAnswer::Edited(_));
            let (prepared, decision) = decide(run, call.prepared, &parts, answer).await;
            let cause = match decision.is_err() {
                true => Some("denied"),
                false => is_changed.then_some("changed"),
            };
            let id = prepared.id.clone();
            decided.push((prepared, decision));
            if let Some(cause) = cause {
                ask_again(run, &mut rest, (&id, cause));
                break;
            }
        }
    }
    decided.extend(rest.into_iter().map(JudgedCall::without_person));
    in_order(decided)
}

/// Returns calls in the order of the message.
fn in_order(mut calls: Vec<DecidedCall>) -> Vec<DecidedCall> {
    calls.sort_by_key(|(prepared, _)| prepared.index);
    calls
}

/// After a denied or changed call, asks about the later ones that do more than read.
fn ask_again(run: &RunContext, rest: &mut VecDeque<JudgedCall>, (id, cause): (&str, &str)) {
    let approvals = run.policy_gate.approvals();
    for call in rest {
        let place = run.context.sessions.as_ref();
        if matches!(call.verdict, Verdict::Allow(_))
            && !approvals.only_reads(&call.prepared.call, place)
        {
            let what = title(&call.prepared.call);
            let reason = format!("it may build on call {id}, which was {cause}");
            call.verdict = Verdict::Ask(vec![AskedPart::new(what, reason)]);
        }
    }
}

enum Answers {
    Given(Vec<CallAnswer>),
    Nobody,
    Interrupted,
}

async fn answers(run: &RunContext, questions: &[CallQuestion]) -> Answers {
    let Some(approver) = run.policy_gate.approvals().approver() else {
        return Answers::Nobody;
    };
    tokio::select! {
        biased;
        () = run.cancel.interrupted() => Answers::Interrupted,
        answers = approver.approve(questions) => answers.map_or(Answers::Nobody, Answers::Given),
    }
}

/// Applies the answer about a call.
async fn decide(
    run: &RunContext,
    mut prepared: PreparedCall,
    parts: &[AskedPart],
    answer: CallAnswer,
) -> DecidedCall {
    let approvals = run.policy_gate.approvals();
    match answer {
        CallAnswer::No(reason) => return (prepared, Err(denied(&reason))),
        CallAnswer::Yes => {}
        CallAnswer::Always(rules) => {
            prepared.notes.extend(allow(run, &rules).await);
        }
        CallAnswer::Edited(text) => {
            if let Some(own) = editable(&mut prepared.call) {
                let note =
                    format!("the user has changed the call; in place of it this ran: {text}");
                prepared.notes.push(note);
                *own = Template::new(text);
                prepared.approved = Approval::ByPerson;
            }
            let place = run.context.sessions.as_ref();
            if let Verdict::Deny(rule) = approvals.judge(&prepared.call, place, false) {
                return (prepared, Err(denied_by(&rule)));
            }
        }
    }
    prepared.approved = Approval::ByPerson;
    approvals.accept(parts);
    (prepared, Ok(()))
}

/// Adds rules that allow; returns a note when they could not be stored.
async fn allow(run: &RunContext, rules: &[String]) -> Option<String> {
    let error = run.policy_gate.approvals().allow(rules).await.err()?;
    let message = error.message;
    Some(format!("the rule holds for this session only: {message}"))
}

/// Checks a call of a shell when its turn has come, and records what it starts; may return a note for the model.
///
/// # Errors
/// It must not run.
pub(super) async fn check_in_session(
    run: &RunContext,
    (id, approved): (&str, Approval),
    call: &Call,
    target: &JobTarget,
) -> Result<Option<String>, ToolError> {
    let approvals = run.policy_gate.approvals();
    if !approvals.is_on() {
        return Ok(None);
    }
    let session = &target.terminal.session;
    if let Call::Command(args) = call {
        note_start(approvals, session).await;
        approvals.note_job(&target.job, judge::takes_commands(args.text.source()));
    }
    let types_code = approvals.takes_commands(&target.job) && !target.job.is_empty();
    if approved == Approval::ByPerson {
        return Ok(None);
    }
    let verdict = match approvals.judge(call, run.context.sessions.as_ref(), types_code) {
        Verdict::Allow(_) if approved == Approval::Names => return Ok(None),
        Verdict::Allow(names) => match changed_names(approvals, session, &names).await {
            parts if parts.is_empty() => return Ok(None),
            parts => Verdict::Ask(parts),
        },
        other => other,
    };
    ask_one(run, id, call, verdict).await
}

/// Checks a call without a shell when its turn has come: the session's directory may have changed. May return a note
/// for the model.
///
/// # Errors
/// It must not run.
pub(super) async fn check_outside_session(
    run: &RunContext,
    (id, approved): (&str, Approval),
    call: &Call,
) -> Result<Option<String>, ToolError> {
    let approvals = run.policy_gate.approvals();
    if approved == Approval::ByPerson || !approvals.is_on() {
        return Ok(None);
    }
    let verdict = approvals.judge(call, run.context.sessions.as_ref(), true);
    ask_one(run, id, call, verdict).await
}

/// Asks about one call whose turn has come.
async fn ask_one(
    run: &RunContext,
    id: &str,
    call: &Call,
    verdict: Verdict,
) -> Result<Option<String>, ToolError> {
    let parts = match verdict {
        Verdict::Allow(_) => return Ok(None),
        Verdict::Deny(rule) => return Err(denied_by(&rule)),
        Verdict::Ask(parts) => parts,
    };
    let mut question = question(run, id, call, parts.clone()).await;
    question.is_editable = false;
    let given = match answers(run, std::slice::from_ref(&question)).await {
        Answers::Given(answers) => answers.into_iter().next(),
        Answers::Nobody => return Err(needs_approval(&question.parts)),
        Answers::Interrupted => return Err(not_started_error()),
    };
    let note = match given {
        Some(CallAnswer::Yes) => None,
        Some(CallAnswer::Always(rules)) => allow(run, &rules).await,
        Some(CallAnswer::No(reason)) => return Err(denied(&reason)),
        // Another text was not asked for.
        Some(CallAnswer::Edited(_)) | None => return Err(denied("")),
    };
    run.policy_gate.approvals().accept(&parts);
    Ok(note)
}

async fn question(run: &RunContext, id: &str, call: &Call, parts: Vec<AskedPart>) -> CallQuestion {
    let changes = edit_trial::changes(&run.context, call).await;
    let changes = changes.filter(|files| files.iter().all(ChangedFile::is_whole));
    let changes = changes.map(|files| files.iter().map(ChangedFile::text).collect());
    let mut question = CallQuestion {
        id: id.to_owned(),
        tool: call.spec().name,
        title: title(call),
        text: changes.unwrap_or_else(|| text(call)),
        parts,
        is_editable: matches!(call, Call::Command(_) | Call::Input(_) | Call::Bash(_)),
    };
    mask(&mut question, &run.context.redactor);
    question
}

/// Masks the values in a question. A rule that would store one is not offered, and a text that has one is not changed.
fn mask(question: &mut CallQuestion, redactor: &Redactor) {
    let is_known = |text: &String| redactor.redact_again(text) != *text;
    question.is_editable &= !is_known(&question.text);
    for part in &mut question.parts {
        part.rule.take_if(|rule| is_known(rule));
        part.wider_rule.take_if(|rule| is_known(rule));
        redactor.redact_in_again(&mut part.what);
        redactor.redact_in_again(&mut part.reason);
    }
    for text in [&mut question.title, &mut question.text] {
        redactor.redact_in_again(text);
    }
}

/// Returns the whole text that a call would run, type or write.
fn text(call: &Call) -> String {
    let Call::Edit(args) = call else {
        return call.title();
    };
    let mut text = String::new();
    for file in &args.files {
        let source =
            |template: &Option<Template>| template.as_ref().map(|text| text.source().to_owned());
        let lines = |sign: &str, text: &str| {
            text.lines()
                .map(|line| format!("{sign}{line}\n"))
                .collect::<String>()
        };
        text.push_str(file.src.source());
        text.push_str(
            &source(&file.to)
                .map(|to| format!(" -> {to}"))
                .unwrap_or_default(),
        );
        text.push_str(if file.delete { " (deleted)\n" } else { "\n" });
        text.push_str(
            &source(&file.content)
                .map(|all| lines("+", &all))
                .unwrap_or_default(),
        );
        for pair in &file.edits {
            text.push_str(&lines("-", pair.find.source()));
            text.push_str(&lines("+", pair.replace.source()));
        }
    }
    text
}

/// Returns the text of a call that a person may change.
fn editable(call: &mut Call) -> Option<&mut Template> {
    match call {
        Call::Command(args) => Some(&mut args.text),
        Call::Input(args) => Some(&mut args.text),
        Call::Bash(args) => Some(&mut args.cmd),
        _ => None,
    }
}

fn needs_approval(parts: &[AskedPart]) -> ToolError {
    let rules: Option<Vec<String>> = parts
        .iter()
        .map(|part| {
            part.rule
                .as_ref()
                .map(|rule| shell_word::word(rule.as_ref()))
        })
        .collect();
    let parts: Vec<String> = parts
        .iter()
        .map(|part| format!("`{}`: {}", part.what, part.reason))
        .collect();
    let message = format!("nobody has permitted it; {}", parts.join("; "));
    let error = ToolError::new(ErrorCode::NeedsApproval, message);
    match rules {
        Some(rules) if !rules.is_empty() => {
            let commands = rules
                .iter()
                .map(|rule| format!("`karyi policy add {rule}`"));
            let commands = commands.collect::<Vec<_>>().join(" and ");
            error.with_hint(format!(
                "tell the user what you would run and why; {commands} permits it from the next call on"
            ))
        }
        _ => error,
    }
}

fn denied_by(rule: &str) -> ToolError {
    ToolError::new(ErrorCode::Denied, format!("{rule} does not permit it"))
}

fn denied(reason: &str) -> ToolError {
    let message = match reason.trim() {
        "" => "the user does not want it".to_owned(),
        reason => format!("the user does not want it: {reason}"),
    };
    ToolError::new(ErrorCode::Denied, message)
}
