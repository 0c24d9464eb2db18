//! The two directories of the family `assistant`, and the paths that name them.
//!
//! A path such as `file_cache_dir/notes.md` or `file_state_dir/TODO.md` names a file in one of them. Which one follows
//! from the text alone, so that calls on the same file keep their order.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::tool::effect::{Access, PathBase};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::Template;
use karyi_core::shell_word;
use karyi_files::root::{Root, canonical_for_plan};

/// The words that name the directories.
const ALIASES: [(&str, PathBase); 2] = [
    ("file_cache_dir", PathBase::Cache),
    ("file_state_dir", PathBase::State),
];

/// Places of the two directories. They are made when something is written to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnDirectories {
    /// For files that may be removed.
    pub cache: PathBuf,
    /// For lasting files.
    pub state: PathBuf,
    /// The user's home directory, for `~`.
    pub home: Option<PathBuf>,
    /// Files and directories of karyi, which lie in none of the two.
    pub private: Vec<PathBuf>,
}

/// Path of a call: a directory and the rest of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnPath<'a> {
    /// The directory that the rest is relative to.
    pub base: PathBase,
    /// The rest, which may be absolute when no directory is named.
    pub rest: &'a str,
}

impl<'a> OwnPath<'a> {
    /// Splits a text. Without one of the two words the path belongs to `usual`.
    ///
    /// # Errors
    /// `bad_arguments` when the path is empty or names a directory and no file.
    pub fn parse(text: &'a str, usual: PathBase) -> Result<Self, ToolError> {
        let text = text.trim();
        if text.is_empty() {
            let error = ToolError::new(ErrorCode::BadArguments, "missing required param: path");
            return Err(error.with_hint("name a file, as in path=\"file_cache_dir/notes.md\""));
        }
        let Some((name, base, rest)) = alias(text) else {
            let base = usual;
            return Ok(Self { base, rest: text });
        };
        if rest.is_empty() || rest == "." {
            let message = format!(
                "invalid path: alias requires a relative file path (for example: {name}/notes/todo.md)"
            );
            return Err(ToolError::new(ErrorCode::BadArguments, message));
        }
        Ok(Self { base, rest })
    }

    /// Splits a text that names a directory; one of the two words alone names its directory.
    #[must_use]
    pub fn parse_directory(text: &'a str) -> Self {
        let text = text.trim();
        let (base, rest) = match alias(text) {
            Some((_, base, "")) => (base, "."),
            Some((_, base, rest)) => (base, rest),
            None => (PathBase::Session, text),
        };
        Self { base, rest }
    }

    /// Returns the access to the path of a call.
    #[must_use]
    pub fn access(text: &Template, usual: PathBase, is_write: bool) -> Access {
        let source = text.source();
        let parsed = OwnPath::parse(source, usual).ok();
        let (base, path) = match parsed.filter(|_| !text.has_placeholder()) {
            // The home directory is not known here.
            Some(path) if path.rest.starts_with('~') => (path.base, Template::new("/")),
            Some(path) => (path.base, Template::new(path.rest)),
            None => (usual, text.clone()),
        };
        Access {
            base,
            path,
            is_write,
        }
    }
}

/// Returns the word that a text begins with, its directory, and the rest.
fn alias(text: &str) -> Option<(&'static str, PathBase, &str)> {
    let is_separator = |c| matches!(c, '/' | '\\');
    let text = text.trim_start_matches(is_separator);
    ALIASES.into_iter().find_map(|(name, base)| {
        let (start, rest) = text.split_at_checked(name.len())?;
        let is_whole = rest.is_empty() || rest.starts_with(is_separator);
        let is_named = start.eq_ignore_ascii_case(name) && is_whole;
        is_named.then(|| (name, base, rest.trim_start_matches(is_separator)))
    })
}

/// Returns the word for a directory.
#[must_use]
pub fn word(base: PathBase) -> &'static str {
    let found = ALIASES.iter().find(|(_, of)| *of == base);
    found.map_or("the session's directory", |(word, _)| word)
}

/// Replaces the words in a script by their directories, where they stand alone between signs of the shell.
///
/// # Errors
/// The script names a directory whose path a shell would not take as one plain word.
pub fn expand_words(script: &str, directories: &OwnDirectories) -> Result<String, ToolError> {
    let mut text = script.to_owned();
    for (word, base) in ALIASES {
        let place = directories.place(base);
        let found = find_word(&text, word, Case::Ignored);
        // The word may stand in quotes, so quoting cannot help.
        if !found.is_empty() && shell_word::word(place.as_os_str()) != place.to_string_lossy() {
            let shown = place.display();
            let message = format!("{word}: {shown} has characters that a shell would interpret");
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("set `cwd` to it, and use relative paths in the script"));
        }
        for at in found.into_iter().rev() {
            text.replace_range(at..at + word.len(), &place.to_string_lossy());
        }
    }
    Ok(text)
}

/// Treatment of upper and lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Both are the same.
    Ignored,
    /// They differ.
    Kept,
}

/// Returns the offsets at which a word stands between ends of the text, blanks, quotes and signs of the shell.
#[must_use]
pub fn find_word(text: &str, word: &str, case: Case) -> Vec<usize> {
    if word.is_empty() {
        return Vec::new();
    }
    let is_same = |piece: &str| match case {
        Case::Ignored => piece.eq_ignore_ascii_case(word),
        Case::Kept => piece == word,
    };
    let is_boundary =
        |c: Option<char>| c.is_none_or(|c| " \t\r\n\"'`;|&(){}[]<>=:,?#/".contains(c));
    let first = word.chars().next().unwrap_or_default();
    let starts = text
        .char_indices()
        .filter(|(_, c)| c.eq_ignore_ascii_case(&first));
    let starts = starts.map(|(at, _)| at);
    starts
        .filter(|at| {
            let piece = text.get(*at..at + word.len());
            let before = text.get(..*at).and_then(|text| text.chars().next_back());
            let after = text
                .get(at + word.len()..)
                .and_then(|text| text.chars().next());
            piece.is_some_and(is_same) && is_boundary(before) && is_boundary(after)
        })
        .collect()
}

/// Returns the entry of a list that denies a path: one whose last part is the name of the file.
#[must_use]
pub fn denied_path<'e>(entries: &'e [String], path: &Path) -> Option<&'e str> {
    let name = path.file_name()?;
    let mut denied = entries.iter().map(String::as_str);
    denied.find(|entry| Path::new(entry).file_name() == Some(name))
}

impl OwnDirectories {
    /// Returns the path of one of the two directories; for the session's, that of the cache.
    #[must_use]
    pub fn place(&self, base: PathBase) -> &Path {
        match base {
            PathBase::State => &self.state,
            PathBase::Cache | PathBase::Session => &self.cache,
        }
    }

    /// Returns the directory that paths of a base are relative to.
    #[must_use]
    pub fn directory<'a>(&'a self, base: PathBase, session: &'a Path) -> &'a Path {
        match base {
            PathBase::Session => session,
            PathBase::Cache | PathBase::State => self.place(base),
        }
    }

    /// Opens a directory to read in it; no link is followed out of it.
    ///
    /// # Errors
    /// It does not exist, is a link, or cannot be opened.
    pub fn open(&self, base: PathBase) -> Result<Root, ToolError> {
        let place = self.place(base);
        if place.as_os_str().is_empty() {
            let message = format!("base dir {} is not configured", word(base));
            return Err(ToolError::new(ErrorCode::NotFound, message)
                .with_hint("ask the user to set HOME, XDG_CACHE_HOME or KARYI_HOME"));
        }
        if !place.is_absolute() {
            let (word, shown) = (word(base), place.display());
            let message = format!("base dir {word}: expected an absolute path, found {shown}");
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("ask the user to correct it in config.toml"));
        }
        if place.is_symlink() {
            let message = format!("refusing symlink base dir: {}", place.display());
            return Err(ToolError::new(ErrorCode::SymlinkEscape, message)
                .with_hint("ask the user to make a directory of it"));
        }
        self.check_apart(base)?;
        Root::confined(place)
    }

    /// Opens a directory to write in it; it is made, for its user alone, if there is none.
    ///
    /// # Errors
    /// It cannot be made, or as for [`Self::open`].
    pub fn open_to_write(&self, base: PathBase) -> Result<Root, ToolError> {
        let place = self.place(base);
        if place.is_absolute() && !place.is_symlink() && !place.exists() {
            self.check_apart(base)?;
            let mut builder = std::fs::DirBuilder::new();
            let made = builder.recursive(true).mode(0o700).create(place);
            made.map_err(|error| ToolError::from_io(place, &error))?;
        }
        self.open(base)
    }

    /// Checks that a directory neither holds files of karyi nor lies among them.
    fn check_apart(&self, base: PathBase) -> Result<(), ToolError> {
        let place = canonical_for_plan(self.place(base));
        let mut private = self.private.iter().map(|path| canonical_for_plan(path));
        match private.find(|own| own.starts_with(&place) || place.starts_with(own)) {
            None => Ok(()),
            Some(own) => {
                let (word, place, own) = (word(base), place.display(), own.display());
                let message =
                    format!("base dir {word}: {place} is not apart from karyi's own {own}");
                Err(
                    ToolError::new(ErrorCode::PolicyDenied, message).with_hint(format!(
                        "ask the user to choose another {word} in config.toml"
                    )),
                )
            }
        }
    }

    /// Writes the path of a file in one of the two directories as the word of the directory and the rest, with every
    /// link resolved. Other paths stay as they are.
    pub fn name(&self, path: &mut Template) {
        let parsed = OwnPath::parse(path.source(), PathBase::Cache).ok();
        let Some(parsed) = parsed.filter(|_| !path.has_placeholder()) else {
            return;
        };
        let given = self.expand_home(parsed.rest);
        let real = canonical_for_plan(&self.place(parsed.base).join(given));
        let Some(base) = self.base_of(&real) else {
            return;
        };
        let rest = real.strip_prefix(canonical_for_plan(self.place(base)));
        let rest = rest.ok().and_then(Path::to_str);
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            *path = Template::new(format!("{}/{rest}", word(base)));
        }
    }

    /// Returns the directory that a resolved path lies in.
    #[must_use]
    pub fn base_of(&self, real: &Path) -> Option<PathBase> {
        [PathBase::Cache, PathBase::State].into_iter().find(|base| {
            let place = self.place(*base);
            place.is_absolute() && real.starts_with(canonical_for_plan(place))
        })
    }

    /// Returns a path with the home directory in place of `~`.
    #[must_use]
    pub fn expand_home(&self, path: &str) -> PathBuf {
        let rest = match path {
            "~" => Some(""),
            _ => path.strip_prefix("~/"),
        };
        match (rest, &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => path.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_word_names_a_directory() {
        let check = |text: &str, base, rest: &str| {
            let path = OwnPath::parse(text, PathBase::Session).unwrap();
            assert_eq!((path.base, path.rest), (base, rest), "{text}");
        };
        check("file_cache_dir/a", PathBase::Cache, "a");
        check("/FILE_CACHE_DIR/a", PathBase::Cache, "a");
        check("FILE_STATE_DIR\\a\\b", PathBase::State, "a\\b");
        check(" //file_state_dir//a/../b ", PathBase::State, "a/../b");
        check("file_cache_dirs/a", PathBase::Session, "file_cache_dirs/a");
        check("myfile_cache_dir", PathBase::Session, "myfile_cache_dir");
        check("./file_cache_dir", PathBase::Session, "./file_cache_dir");
        check(
            "日本語の名前です/a",
            PathBase::Session,
            "日本語の名前です/a",
        );
        let refused = |text: &str| {
            let error = OwnPath::parse(text, PathBase::Cache).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadArguments);
            error.message
        };
        assert_eq!(refused("  "), "missing required param: path");
        for text in [
            "file_state_dir",
            "file_state_dir/",
            "/File_State_Dir\\.",
            "file_state_dir//",
        ] {
            assert_eq!(
                refused(text),
                "invalid path: alias requires a relative file path (for example: \
                 file_state_dir/notes/todo.md)"
            );
        }
    }

    #[test]
    fn words_of_a_script_are_replaced_where_they_stand_alone() {
        let directories = OwnDirectories {
            cache: "/c".into(),
            state: "/s".into(),
            ..OwnDirectories::default()
        };
        let check = |script: &str, expected: &str| {
            assert_eq!(
                expand_words(script, &directories).unwrap(),
                expected,
                "{script}"
            );
        };
        check("cat file_cache_dir/x", "cat /c/x");
        check(
            "cat \"FILE_STATE_DIR/x\";ls file_cache_dir",
            "cat \"/s/x\";ls /c",
        );
        check("A=file_cache_dir file_cache_dir", "A=/c /c");
        check("echo /file_cache_dir/x", "echo //c/x");
        for script in [
            "myfile_cache_dir",
            "file_cache_dirs",
            "file_cache_dir.txt",
            "$file_cache_dir",
            "-file_cache_dir",
            "~file_cache_dir",
            "file_cache_dir*",
            "é_file_cache_dir",
            "file_cache_diré",
        ] {
            check(script, script);
        }
    }

    #[test]
    fn a_file_has_one_name() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let directories = OwnDirectories {
            cache: top.join("c"),
            state: top.join("home/s"),
            home: Some(top.join("home")),
            private: Vec::new(),
        };
        std::fs::create_dir_all(top.join("c/d")).unwrap();
        std::os::unix::fs::symlink("d", top.join("c/link")).unwrap();
        let check = |path: &str, expected: &str| {
            let mut named = Template::new(path);
            directories.name(&mut named);
            assert_eq!(named.source(), expected, "{path}");
        };
        check("a", "file_cache_dir/a");
        check("link/../link/a", "file_cache_dir/d/a");
        check("FILE_STATE_DIR/a/../b", "file_state_dir/b");
        check("~/s/x", "file_state_dir/x");
        check(&format!("{}/home/s/x", top.display()), "file_state_dir/x");
        for path in [
            "/etc/x",
            "../x",
            "file_state_dir",
            ".",
            "",
            "$KARYI{NAME}/a",
        ] {
            check(path, path);
        }
    }

    #[test]
    fn a_directory_with_signs_of_the_shell_is_no_part_of_a_script() {
        for place in ["/my cache", "/a;b", "/$HOME", "/a'b"] {
            let directories = OwnDirectories {
                cache: place.into(),
                state: "/s".into(),
                ..OwnDirectories::default()
            };
            let error = expand_words("rm -r file_cache_dir/x", &directories).unwrap_err();
            assert!(
                error.message.contains("a shell would interpret"),
                "{}",
                error.message
            );
            assert_eq!(
                expand_words("ls file_state_dir", &directories).unwrap(),
                "ls /s"
            );
        }
    }

    #[test]
    fn a_list_denies_names_and_ends_of_paths() {
        let check = |entry: &str, path: &str, expected: bool| {
            let entries = [String::new(), entry.to_owned()];
            let found = denied_path(&entries, Path::new(path));
            assert_eq!(found, expected.then_some(entry), "{entry} {path}");
        };
        check("config.yaml", "./x/config.yaml", true);
        check("config.yaml", "./x/config.yaml.bak", false);
        check("config.yaml", "./xconfig.yaml", false);
        check("sub/private.txt", "/zzz/private.txt", true);
        check("sub/private.txt", "/a/sub/private.txt", true);
        check("/etc/passwd", "/etc/passwd", true);
        check("Config.yaml", "config.yaml", false);
    }

    #[test]
    fn a_directory_is_made_for_its_user_alone() {
        let temp = tempfile::tempdir().unwrap();
        let directories = OwnDirectories {
            cache: temp.path().join("a/b"),
            state: temp.path().join("link"),
            home: Some("/home/me".into()),
            private: vec![temp.path().join("own/state")],
        };
        assert_eq!(
            directories.open(PathBase::Cache).unwrap_err().code,
            ErrorCode::NotFound
        );
        let root = directories.open_to_write(PathBase::Cache).unwrap();
        let made = root.directory().unwrap();
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        // A directory that the user made keeps its mode.
        std::fs::set_permissions(made, PermissionsExt::from_mode(0o755)).unwrap();
        directories.open_to_write(PathBase::Cache).unwrap();
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        for place in ["", "own", "own/state", "own/state/journal", "own/../own"] {
            let apart = OwnDirectories {
                cache: temp.path().join(place),
                ..directories.clone()
            };
            let error = apart.open_to_write(PathBase::Cache).unwrap_err();
            assert_eq!(
                error.code,
                ErrorCode::PolicyDenied,
                "{place}: {}",
                error.message
            );
        }
        assert!(!temp.path().join("own").exists());
        let relative = OwnDirectories {
            cache: "relative".into(),
            ..OwnDirectories::default()
        };
        let error = relative.open_to_write(PathBase::Cache).unwrap_err();
        let message = "base dir file_cache_dir: expected an absolute path, found relative";
        assert_eq!(error.message, message);
        std::os::unix::fs::symlink("/", &directories.state).unwrap();
        let error = directories.open_to_write(PathBase::State).unwrap_err();
        assert!(
            error.message.starts_with("refusing symlink base dir: "),
            "{}",
            error.message
        );
        let error = OwnDirectories::default()
            .open_to_write(PathBase::State)
            .unwrap_err();
        assert_eq!(error.message, "base dir file_state_dir is not configured");
        assert_eq!(directories.expand_home("~/a"), Path::new("/home/me/a"));
        assert_eq!(directories.expand_home("~b"), Path::new("~b"));
    }
}
