//! `<todo_update>`: adds duties to TODO.md, and moves those that are done to TODO.DONE.md.
//!
//! A language model puts references to contacts into a new entry, finds duplicates of it, and finds the entry that is
//! done. It is asked without a lock; what it says is checked, and the files change in one step. The setting
//! `without_model` replaces it by plain rules.

mod questions;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notebook::contacts::{self, Contacts};
use crate::notebook::todo_entry::{TodoEntry, is_chat_id, minute, one_line};
use crate::notebook::todo_file::TodoKind;
use crate::notebook::todo_match::{self, TodoMatch};
use crate::notebook::todo_store::{TodoChange, TodoRecorder, TodoStore, no_match};
use crate::tool::context::blocking;
use crate::tool::effect::{Access, PathBase};
use crate::tool::model_access::{self, ModelAccess};
use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_files::root::Root;
use questions::{Asker, MatchReply, NewEntry, ResolveReply, check_references};

/// The tool.
pub struct TodoUpdate;

/// Arguments of `todo_update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// `add` or `complete`.
    #[schemars(extend("enum" = ["add", "complete"], "x-karyi" = {"missing": "action is required", "misfit": "invalid action:"}))]
    pub action: String,
    /// To add: the text of the entry. To complete: words that tell which entry is done.
    #[schemars(extend("x-karyi" = {"raw": true, "missing": "content is required", "misfit": "content is required"}))]
    pub content: Template,
    /// To add: the people in the text, such as speaker and addressee; may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-karyi" = {"misfit": "people must be an array of strings"}))]
    pub people: Option<Vec<Template>>,
    /// Chat that the duty belongs to, such as `tg:-1001234567890`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-karyi" = {"misfit": "chat_id must be a string"}))]
    pub chat_id: Option<Template>,
}

/// Result of `todo_update`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// True when the files were changed.
    pub ok: bool,
    /// The action.
    pub action: String,
    /// Numbers of entries after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_counts: Option<EntryCounts>,
    /// Numbers of entries that were added and removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangeCounts>,
    /// The entry that was added or completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryFields>,
    /// Duplicates of it that were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<EntryFields>,
    /// Entries of which one may be meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<EntryFields>,
    /// Notes about the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Numbers of entries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntryCounts {
    /// Open entries.
    pub open_count: usize,
    /// Entries that are done.
    pub done_count: usize,
}

/// Numbers of changed entries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeCounts {
    /// Entries added to TODO.md.
    pub wip_added: usize,
    /// Entries removed from TODO.md.
    pub wip_removed: usize,
    /// Entries added to TODO.DONE.md.
    pub done_added: usize,
}

/// Entry of a TODO file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EntryFields {
    /// Time of its creation, UTC.
    pub created_at: String,
    /// Time of its end, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_at: Option<String>,
    /// Its chat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Its text.
    pub content: String,
}

impl From<TodoEntry> for EntryFields {
    fn from(entry: TodoEntry) -> Self {
        Self {
            created_at: entry.created_at,
            done_at: entry.done_at,
            chat_id: entry.chat_id,
            content: entry.content,
        }
    }
}

/// Warning that people in a text have no references.
const UNRESOLVED: &str = "reference_unresolved_write_raw";

impl Tool for TodoUpdate {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "todo_update",
        summary: "Keep TODO.md and TODO.DONE.md",
        details: "An entry is one line; write people in it by name. Adding removes entries that ask for the same \
            thing, and lists them as `removed`; a person without a known contact stays as written, with a warning. \
            When several entries fit a completion, nothing changes and they are listed as `candidates`.",
        also_called: &[],
        heading: "> todo_update",
        starts_job: false,
        family: Family::Assistant,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Remember a duty that names a person",
                before: "",
                xml: "<todo_update action=\"add\"><content>Remind John to send the report</content><people>John</people></todo_update>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nothing like it is open",
                before: "",
                xml: "<todo_update action=\"complete\"><content>water the plants</content></todo_update>",
                status: Status::Error,
                code: Some("not_found"),
            },
        ],
    };
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::DESTRUCTIVE);

    fn effect(_: &Args) -> Effect {
        let of_state = |path: &str, is_write| Access {
            base: PathBase::State,
            path: Template::new(path),
            is_write,
        };
        let todo = [TodoKind::Open, TodoKind::Done].map(|kind| of_state(kind.file_name(), true));
        let files = todo.into_iter().chain([of_state(contacts::FILE, false)]);
        Effect::Outside {
            is_write: true,
            files: files.collect(),
        }
    }

    fn title(args: &Args) -> String {
        format!("{} {}", args.action, one_line(args.content.source()))
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.content);
        let people = args.people.iter_mut().flatten();
        people
            .chain(&mut args.chat_id)
            .for_each(|text| visit(Use::Shared, text));
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let content = one_line(args.content.text());
        if content.is_empty() {
            return Err(wrong(
                "content is required",
                "write the text of the entry as `content`",
            ));
        }
        if content.len() > limits::MAX_TODO_TEXT_BYTES {
            let (found, most) = (content.len(), limits::MAX_TODO_TEXT_BYTES);
            let message = format!("content: expected at most {most} bytes, found {found}");
            return Err(wrong(
                message,
                "keep long texts in a file and name it in the entry",
            ));
        }
        let work = Work::new(context)?;
        match args.action.as_str() {
            "add" => work.add(&args, content).await,
            "complete" => work.complete(&args, &content).await,
            other => Err(wrong(
                format!("invalid action: {other:?}"),
                "use add or complete",
            )),
        }
    }
}

fn wrong(message: impl Into<String>, hint: &str) -> ToolError {
    ToolError::new(ErrorCode::BadArguments, message).with_hint(hint)
}

/// Resources of a call.
struct Work<'a> {
    context: &'a Context,
    /// Directory of the files; nothing when it was not made yet.
    directory: Option<PathBuf>,
    /// The models; nothing when plain rules are to do.
    models: Option<Arc<dyn ModelAccess>>,
    now: Timestamp,
}

impl<'a> Work<'a> {
    /// Checks that the files and a model can be used.
    fn new(context: &'a Context) -> Result<Self, ToolError> {
        let directories = &context.settings.directories;
        let place = directories.directory(PathBase::State, Path::new(""));
        let is_missing = !place.as_os_str().is_empty() && !place.exists() && !place.is_symlink();
        let directory = match is_missing {
            true => None,
            false => {
                let root = directories.open(PathBase::State)?;
                root.directory().map(Path::to_owned)
            }
        };
        let models = match context.settings.todo_update.without_model {
            true => None,
            false => Some(model_access::usable(
                &context.models,
                TodoUpdate::SPEC.name,
                None,
            )?),
        };
        Ok(Self {
            context,
            directory,
            models,
            now: Timestamp::now(),
        })
    }

    /// Returns the contacts that can be referred to.
    async fn contacts(&self) -> Result<Contacts, ToolError> {
        let Some(directory) = self.directory.clone() else {
            return Ok(Contacts::default());
        };
        blocking(move || {
            let root = Root::confined(&directory)?;
            Contacts::read(&root.resolve(&directory, Path::new(contacts::FILE))?)
        })
        .await
    }

    /// Returns the open entries as they are now.
    async fn open_entries(&self) -> Result<Vec<TodoEntry>, ToolError> {
        match self.directory.clone() {
            Some(directory) => blocking(move || TodoStore::new(&directory)?.open_entries()).await,
            None => Ok(Vec::new()),
        }
    }

    /// Changes the files on a blocking thread. Their directory is made if need be.
    async fn change(
        &self,
        change: impl FnOnce(&TodoStore, TodoRecorder<'_>) -> Result<TodoChange, ToolError>
        + Send
        + 'static,
    ) -> Result<TodoChange, ToolError> {
        let context = self.context.clone();
        blocking(move || {
            let directories = &context.settings.directories;
            let root = directories.open_to_write(PathBase::State)?;
            let store = TodoStore::new(root.directory().unwrap_or(Path::new("")))?;
            let journal = TodoRecorder {
                recorder: &context.recorder,
                is_private: &|bytes| context.redactor.is_in(bytes),
            };
            change(&store, journal)
        })
        .await
    }

    async fn add(self, args: &Args, content: String) -> Result<Answer<Output>, ToolError> {
        let people = args.people.as_deref().ok_or_else(|| {
            let hint = "name the people in the text as `people`, or give an empty list";
            wrong("people is required for add action", hint)
        })?;
        let people: Vec<String> = people
            .iter()
            .map(|person| one_line(person.text()))
            .collect();
        let chat_id = self.chat_id(args)?;
        let contacts = self.contacts().await?;
        check_references(&content, &contacts.reachable_ids()).map_err(|message| {
            wrong(message, "refer to a contact of contacts/ACTIVE.md, as in [John](tg:1001), or write the name alone")
        })?;
        let new = NewEntry {
            content: &content,
            people: &people,
            chat_id,
            now: self.now,
        };
        let (content, mut warnings) = self.resolve(&new, &contacts).await?;
        let entry = TodoEntry {
            created_at: minute(self.now),
            done_at: None,
            chat_id: chat_id.map(str::to_owned),
            content,
        };
        let duplicates = self.duplicates(&entry, &mut warnings).await?;
        let now = self.now;
        let change = self.change(move |store, journal| store.add(journal, entry, &duplicates, now));
        let change = change.await?;
        Ok(Answer::ok(output("add", change, warnings)))
    }

    /// Returns the text of a new entry with references, and warnings about it.
    async fn resolve(
        &self,
        new: &NewEntry<'_>,
        contacts: &Contacts,
    ) -> Result<(String, Vec<String>), ToolError> {
        let mut warnings = contacts.problems.clone();
        warnings.truncate(limits::MAX_REPLY_WARNINGS);
        let raw = new.content.to_owned();
        // A model would see the mask of a value, and write that.
        let holds_value = self.context.redactor.is_in(raw.as_bytes());
        let Some(asker) = self.asker().filter(|_| !holds_value) else {
            let is_named = |person: &String| raw.contains(&format!("[{person}]("));
            if !new.people.iter().all(is_named) {
                warnings.push(UNRESOLVED.to_owned());
            }
            return Ok((raw, warnings));
        };
        let reply = asker.resolve(new, contacts).await;
        match reply.map_err(|error| error.into_error("reference_resolve"))? {
            ResolveReply::Text {
                content,
                warnings: more,
            } => {
                warnings.extend(more);
                Ok((content, warnings))
            }
            ResolveReply::Missing(people) => {
                warnings.push(UNRESOLVED.to_owned());
                if !people.is_empty() {
                    warnings.push(format!("missing_reference_id: {}", people.join(", ")));
                }
                Ok((raw, warnings))
            }
        }
    }

    /// Returns the open entries that a new one replaces. Only such as resemble it are shown to the model.
    async fn duplicates(
        &self,
        new: &TodoEntry,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<TodoEntry>, ToolError> {
        let Some(asker) = self.asker() else {
            return Ok(Vec::new());
        };
        let open = self.open_entries().await?;
        let near = todo_match::resembling(&open, &new.content, limits::MAX_ASKED_DUPLICATES);
        let items: Vec<&TodoEntry> = near.iter().filter_map(|index| open.get(*index)).collect();
        if items.is_empty() {
            return Ok(Vec::new());
        }
        match asker.duplicates(new, &items).await {
            Ok(found) => {
                let found = found.into_iter().filter_map(|index| items.get(index));
                Ok(found.copied().cloned().collect())
            }
            Err(error) => {
                let error = error.into_error("semantic_dedup");
                warnings.push(format!("{}; no duplicate was removed", error.message));
                Ok(Vec::new())
            }
        }
    }

    async fn complete(self, args: &Args, content: &str) -> Result<Answer<Output>, ToolError> {
        self.chat_id(args)?;
        let open = self.open_entries().await?;
        let query = todo_match::query_text(content);
        if open.is_empty() {
            return Err(no_match().with_hint("TODO.md has no open entry"));
        }
        let found = match self.asker() {
            None => todo_match::find(&open, content),
            Some(asker) => {
                let near = todo_match::nearest(&open, &query, limits::MAX_ASKED_ENTRIES);
                let items: Vec<&TodoEntry> =
                    near.iter().filter_map(|index| open.get(*index)).collect();
                let reply = asker.matched(&query, &items).await;
                let of_all = |index: usize| near.get(index).copied();
                match reply.map_err(|error| error.into_error("semantic_match"))? {
                    MatchReply::Nothing => TodoMatch::Nothing,
                    MatchReply::One(index) => {
                        of_all(index).map_or(TodoMatch::Nothing, TodoMatch::One)
                    }
                    MatchReply::Several(found) => {
                        TodoMatch::Several(found.into_iter().filter_map(of_all).collect())
                    }
                }
            }
        };
        let entry = match found {
            TodoMatch::Nothing => {
                return Err(no_match().with_hint("read TODO.md, and use the words of the entry"));
            }
            TodoMatch::Several(found) => return Ok(ambiguous(&open, &found)),
            TodoMatch::One(index) => open.get(index).cloned().ok_or_else(no_match)?,
        };
        let now = self.now;
        let change = self.change(move |store, journal| store.complete(journal, &entry, now));
        let change = change.await?;
        Ok(Answer::ok(output("complete", change, Vec::new())))
    }

    fn asker(&self) -> Option<Asker<'_>> {
        Some(Asker {
            models: self.models.as_deref()?,
            redactor: &self.context.redactor,
        })
    }

    fn chat_id<'c>(&self, args: &'c Args) -> Result<Option<&'c str>, ToolError> {
        match args.chat_id.as_ref().map(|chat_id| chat_id.text().trim()) {
            None | Some("") => Ok(None),
            Some(chat_id) if is_chat_id(chat_id) => Ok(Some(chat_id)),
            Some(other) => {
                let hint = "write tg: and the number of the chat, which is not 0";
                Err(wrong(format!("invalid chat_id: {}", one_line(other)), hint))
            }
        }
    }
}

/// Returns the result of a change.
fn output(action: &str, change: TodoChange, mut warnings: Vec<String>) -> Output {
    let is_done = change.entry.done_at.is_some();
    warnings.extend(change.receipt.warnings());
    Output {
        ok: true,
        action: action.to_owned(),
        updated_counts: Some(EntryCounts {
            open_count: change.open_count,
            done_count: change.done_count,
        }),
        changed: Some(ChangeCounts {
            wip_added: usize::from(!is_done),
            wip_removed: change.removed.len() + usize::from(is_done),
            done_added: usize::from(is_done),
        }),
        entry: Some(change.entry.into()),
        removed: change.removed.into_iter().map(EntryFields::from).collect(),
        candidates: Vec::new(),
        warnings,
    }
}

/// Returns the result of a completion that may mean several entries.
fn ambiguous(open: &[TodoEntry], found: &[usize]) -> Answer<Output> {
    let candidates = found.iter().filter_map(|index| open.get(*index).cloned());
    let candidates = candidates.take(limits::MAX_TODO_CANDIDATES);
    Answer {
        status: Status::Error,
        output: Output {
            action: "complete".to_owned(),
            candidates: candidates.map(EntryFields::from).collect(),
            ..Output::default()
        },
        problem: Some(
            ToolError::new(ErrorCode::Ambiguous, "ambiguous todo item match")
                .with_hint("complete one of the candidates by its whole text"),
        ),
    }
}
