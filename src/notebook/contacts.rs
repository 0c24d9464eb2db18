//! The contacts of `contacts/ACTIVE.md`: who can be referred to, and by which ids.
//!
//! Every fenced block of YAML is one contact. A block that cannot be read is left out and named; the others count all
//! the same. Blocks in comments do not count.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::reference::ReferenceId;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::words::fold;
use karyi_files::change::Change;

/// Path of the file below the directory of lasting files.
pub const FILE: &str = "contacts/ACTIVE.md";

/// Contact that can be referred to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// Its id in the file; made of its first reachable id where the file has none.
    pub contact_id: String,
    /// Name for people.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// Names at services, without `@`.
    pub usernames: Vec<String>,
    /// Ids that reach it, the best first.
    pub reachable_ids: Vec<ReferenceId>,
}

/// Contacts of a file, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contacts {
    /// The contacts.
    pub list: Vec<Contact>,
    /// Blocks that could not be read, each with the reason.
    pub problems: Vec<String>,
}

impl Contacts {
    /// Reads a file, whose path has every symlink resolved. Where there is none, there are no contacts.
    ///
    /// # Errors
    /// It is no regular file, is too large, or cannot be read.
    pub fn read(path: &Path) -> Result<Self, ToolError> {
        let change = Change::read(Path::new(FILE), path)?;
        let bytes = change.bytes().unwrap_or_default();
        if bytes.len() > limits::MAX_CONTACTS_BYTES {
            let (found, most) = (bytes.len(), limits::MAX_CONTACTS_BYTES);
            let message = format!("{FILE}: expected at most {most} bytes, found {found}");
            let hint = "move contacts that are not needed to contacts/INACTIVE.md";
            return Err(ToolError::new(ErrorCode::FileTooLarge, message).with_hint(hint));
        }
        Ok(Self::parse(&String::from_utf8_lossy(bytes)))
    }

    /// Reads the text of a file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut contacts = Self::default();
        for block in blocks(&without_comments(text)) {
            match serde_saphyr::from_str::<Profile>(&block.yaml) {
                Ok(profile) => match profile.contact(&block.title) {
                    Ok(contact) => contacts.list.push(contact),
                    Err(reason) => contacts.problems.push(format!("{}: {reason}", block.title)),
                },
                Err(error) => {
                    let reason = error.to_string();
                    let reason = reason.lines().next().unwrap_or_default();
                    contacts.problems.push(format!("{}: {reason}", block.title));
                }
            }
        }
        contacts.list.sort_by(|a, b| a.name.cmp(&b.name));
        contacts
    }

    /// Returns every id that reaches a contact.
    #[must_use]
    pub fn reachable_ids(&self) -> BTreeSet<&ReferenceId> {
        self.list
            .iter()
            .flat_map(|contact| &contact.reachable_ids)
            .collect()
    }

    /// Returns the contacts that are named in a text or a list of people, at most `most`.
    #[must_use]
    pub fn named_in(&self, text: &str, people: &[String], most: usize) -> Vec<&Contact> {
        let text = fold(text);
        let people: Vec<String> = people
            .iter()
            .map(|name| fold(name.trim_start_matches('@')).into_owned())
            .collect();
        let people: Vec<&String> = people.iter().filter(|name| !name.is_empty()).collect();
        let is_named = |contact: &&Contact| {
            contact.names().any(|name| {
                let name = fold(name);
                let is_person =
                    |person: &&String| name.contains(*person) || person.contains(&*name);
                !name.is_empty() && (text.contains(&*name) || people.iter().any(is_person))
            })
        };
        self.list.iter().filter(is_named).take(most).collect()
    }
}

impl Contact {
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = [&self.name, &self.contact_id]
            .into_iter()
            .chain(&self.aliases)
            .chain(&self.usernames);
        names
            .map(String::as_str)
            .chain(self.reachable_ids.iter().map(ReferenceId::as_str))
    }
}

/// Keys of a contact's block that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile {
    contact_id: Option<Scalar>,
    nickname: Option<Scalar>,
    aliases: Option<Vec<Scalar>>,
    tg_username: Option<Scalar>,
    tg_private_chat_id: Option<Scalar>,
    tg_group_chat_ids: Option<Vec<Scalar>>,
    maep_node_id: Option<Scalar>,
}

/// Text or number, since chats are written both ways.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(i64),
    Text(String),
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.trim().to_owned(),
        }
    }
}

impl Profile {
    fn contact(&self, title: &str) -> Result<Contact, String> {
        let text = |scalar: &Option<Scalar>| {
            let text = scalar.as_ref().map(Scalar::text);
            text.filter(|text| !text.is_empty())
        };
        let private = text(&self.tg_private_chat_id);
        let groups = self.tg_group_chat_ids.iter().flatten().map(Scalar::text);
        let chats = private
            .into_iter()
            .chain(groups.filter(|chat| !chat.is_empty()));
        let mut reachable_ids = Vec::new();
        for chat in chats {
            let id = ReferenceId::parse(&format!("tg:{}", chat.trim_start_matches("tg:")));
            reachable_ids.push(id.ok_or_else(|| format!("{chat:?} is no chat of Telegram"))?);
        }
        let username = text(&self.tg_username).map(|name| name.trim_start_matches('@').to_owned());
        let contact_id = text(&self.contact_id);
        let ids = [contact_id.clone(), text(&self.maep_node_id)];
        reachable_ids.extend(ids.iter().flatten().filter_map(|id| ReferenceId::parse(id)));
        let has_other = !reachable_ids.is_empty();
        let by_name = username
            .as_ref()
            .filter(|_| !has_other && contact_id.is_none());
        reachable_ids.extend(by_name.and_then(|name| ReferenceId::parse(&format!("tg:@{name}"))));
        let mut seen = BTreeSet::new();
        reachable_ids.retain(|id| seen.insert(id.clone()));
        let first = reachable_ids.first().map(ToString::to_string);
        Ok(Contact {
            contact_id: contact_id.or(first).unwrap_or_default(),
            name: text(&self.nickname).unwrap_or_else(|| title.to_owned()),
            aliases: self.aliases.iter().flatten().map(Scalar::text).collect(),
            usernames: username.into_iter().collect(),
            reachable_ids,
        })
    }
}

/// Fenced block of YAML below a title.
struct Block {
    title: String,
    yaml: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut title = String::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        match &mut open {
            Some(yaml) if trimmed == "```" => {
                let yaml = std::mem::take(yaml);
                let number = blocks.len() + 1;
                let title = match title.is_empty() {
                    true => format!("contact {number}"),
                    false => title.clone(),
                };
                blocks.push(Block { title, yaml });
                open = None;
            }
            Some(yaml) => {
                yaml.push_str(line);
                yaml.push('\n');
            }
            None if matches!(trimmed, "```yaml" | "```yml") => open = Some(String::new()),
            None => {
                if let Some(heading) = trimmed.strip_prefix("## ") {
                    title = heading.trim().to_owned();
                }
            }
        }
    }
    blocks
}

/// Returns a text without its HTML comments; one that is not closed takes the rest with it.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIVE: &str = "---\ncreated_at: x\n---\n\n# Active Contacts\n\n<!-- One contact:\n```yaml\ncontact_id: \"tg:9\"\n```\n-->\n\n\
        ## Zoe\n\n```yaml\ncontact_id: \"tg:@zoe\"\nnickname: \"Zoe\"\ntg_username: \"zoe\"\n```\n\n\
        ## John\n\n```yaml\ncontact_id: tg:1001\nnickname: John Wick\nkind: human\ntg_username: \"@johnwick\"\n\
        tg_private_chat_id: \"1001\"\ntg_group_chat_ids:\n    - \"-1007\"\n    - -1008\nmaep_node_id: \"\"\ntopics: [a]\n```\n\n\
        ## Broken\n\n```yaml\ncontact_id: [\n```\n\n## Odd\n\n```yaml\nnickname: Odd\ntg_private_chat_id: abc\n```\n\n\
        ## Bot\n\n```yml\nkind: agent\nmaep_node_id: maep:12D3\n```\n";

    fn ids(contact: &Contact) -> Vec<&str> {
        contact
            .reachable_ids
            .iter()
            .map(ReferenceId::as_str)
            .collect()
    }

    #[test]
    fn contacts_are_read_block_by_block() {
        let contacts = Contacts::parse(ACTIVE);
        let found: Vec<_> = contacts
            .list
            .iter()
            .map(|c| (c.name.as_str(), c.contact_id.as_str(), ids(c)))
            .collect();
        let expected = [
            ("Bot", "maep:12D3", vec!["maep:12D3"]),
            (
                "John Wick",
                "tg:1001",
                vec!["tg:1001", "tg:-1007", "tg:-1008"],
            ),
            ("Zoe", "tg:@zoe", vec!["tg:@zoe"]),
        ];
        assert_eq!(found, expected);
        let [broken, odd] = contacts.problems.as_slice() else {
            panic!("{:?}", contacts.problems);
        };
        assert!(broken.starts_with("Broken: "), "{broken}");
        assert_eq!(odd, "Odd: \"abc\" is no chat of Telegram");
        assert_eq!(contacts.reachable_ids().len(), 5);
    }

    #[test]
    fn contacts_are_found_by_any_of_their_names() {
        let contacts = Contacts::parse(ACTIVE);
        let check = |text: &str, people: &[&str], expected: &[&str]| {
            let people: Vec<String> = people.iter().map(|name| (*name).to_owned()).collect();
            let found = contacts.named_in(text, &people, 9);
            let found: Vec<&str> = found.iter().map(|contact| contact.name.as_str()).collect();
            assert_eq!(found, expected, "{text} {people:?}");
        };
        check("Call john wick", &[], &["John Wick"]);
        check("Call", &["John"], &["John Wick"]);
        check("Call", &["@JohnWick"], &["John Wick"]);
        check("ask tg:-1007", &[], &["John Wick"]);
        check("zoe and bot", &[], &["Bot", "Zoe"]);
        check("Call", &["", "Nobody"], &[]);
        assert_eq!(contacts.named_in("zoe and bot", &[], 1).len(), 1);
    }

    #[test]
    fn hostile_files_have_no_contacts() {
        for text in [
            "",
            "<!--",
            "```yaml",
            "```yaml\n```",
            "```yaml\n- a\n```",
            "```yaml\n\u{0}\n```",
        ] {
            let contacts = Contacts::parse(text);
            assert!(
                contacts
                    .list
                    .iter()
                    .all(|contact| contact.reachable_ids.is_empty()),
                "{text}"
            );
        }
        let bomb =
            "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\n";
        let _ = Contacts::parse(&format!("```yaml\n{bomb}aliases: [*d,*d,*d]\n```"));
        let _ = Contacts::parse(&"## a\n```yaml\nnickname: b\n```\n".repeat(1_000));
        let _ = Contacts::parse(&format!("```yaml\nx: {}\n```", "[".repeat(100_000)));
    }
}
