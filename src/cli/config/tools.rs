//! Settings of tools: the tables `[tools.NAME]`, and the directories of the family `assistant`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toml_edit::Item;

use crate::cli::config::check::number;
use crate::cli::config::{Settings, SettingsError};
use crate::cli::state_dir::{own_dirs, variable};
use crate::tool::own_directories::OwnDirectories;
use crate::tool::settings::{
    BashSettings, ReadFileSettings, TodoUpdateSettings, ToolSettings, WriteFileSettings,
};
use karyi_core::limits;

impl Settings {
    /// Returns the settings of tools.
    pub(in crate::cli) fn tools(&self) -> ToolSettings {
        ToolSettings {
            disabled: self.disabled_tools().map(str::to_owned).collect(),
            directories: self.own_directories(),
            read_file: ReadFileSettings {
                max_bytes: self
                    .bytes("read_file", "max_bytes")
                    .unwrap_or(limits::READ_FILE_TOOL_BYTES),
                deny_paths: self.texts("read_file", "deny_paths"),
            },
            write_file: WriteFileSettings {
                max_bytes: self
                    .bytes("write_file", "max_bytes")
                    .unwrap_or(limits::WRITE_FILE_TOOL_BYTES),
            },
            bash: self.bash(),
            todo_update: TodoUpdateSettings {
                without_model: self
                    .of_tool("todo_update", "without_model")
                    .and_then(Item::as_bool)
                    .unwrap_or(false),
            },
            web: self.web(),
        }
    }

    /// Returns the names of the tools that are switched off.
    pub(in crate::cli) fn disabled_tools(&self) -> impl Iterator<Item = &str> {
        let names = self.names(&["tools"]).into_iter();
        names.filter(|name| {
            let enabled = self.of_tool(name, "enabled").and_then(Item::as_bool);
            enabled == Some(false)
        })
    }

    fn bash(&self) -> BashSettings {
        let usual = BashSettings::default();
        let bytes = self.bytes("bash", "max_output_bytes");
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        BashSettings {
            timeout: self.seconds("bash", "timeout").unwrap_or(usual.timeout),
            max_output_bytes: bytes.unwrap_or(usual.max_output_bytes),
            deny_paths: self.texts("bash", "deny_paths"),
            deny_tokens: self.texts("bash", "deny_tokens"),
        }
    }

    /// Returns the two directories: those of the settings, else below the user's directories for such files.
    fn own_directories(&self) -> OwnDirectories {
        let home = variable("HOME").map(PathBuf::from);
        let own = variable("KARYI_HOME").map(PathBuf::from);
        let usual = |name: &str, variable_name: &str, below: &str| {
            if let Some(own) = &own {
                return own.join("assistant").join(name);
            }
            let told = variable(variable_name).map(PathBuf::from);
            let told = told.filter(|path| path.is_absolute());
            let base = told.or_else(|| home.as_ref().map(|home| home.join(below)));
            base.map_or_else(PathBuf::new, |base| base.join("karyi-assistant"))
        };
        let mut directories = OwnDirectories {
            cache: PathBuf::new(),
            state: PathBuf::new(),
            home: home.clone(),
            private: private_files(own.as_deref()),
        };
        let place = |name: &str, usual: PathBuf| match self.text(name) {
            Some(path) => directories.expand_home(path),
            None => usual,
        };
        let cache = place("file_cache_dir", usual("cache", "XDG_CACHE_HOME", ".cache"));
        let state = place(
            "file_state_dir",
            usual("state", "XDG_DATA_HOME", ".local/share"),
        );
        (directories.cache, directories.state) = (cache, state);
        directories
    }

    /// Returns a setting of a tool.
    pub(super) fn of_tool(&self, tool: &str, name: &str) -> Option<&Item> {
        self.item(&["tools", tool, name])
    }

    pub(super) fn bytes(&self, tool: &str, name: &str) -> Option<u64> {
        let bytes = self.of_tool(tool, name)?.as_integer()?;
        u64::try_from(bytes).ok()
    }

    pub(super) fn seconds(&self, tool: &str, name: &str) -> Option<Duration> {
        let seconds = number(self.of_tool(tool, name)?)?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn texts(&self, tool: &str, name: &str) -> Vec<String> {
        self.list(&["tools", tool, name])
            .map(str::to_owned)
            .collect()
    }

    /// Returns the texts of a list.
    pub(super) fn list(&self, path: &[&str]) -> impl Iterator<Item = &str> {
        let list = self.item(path).and_then(Item::as_array);
        list.into_iter().flatten().filter_map(|text| text.as_str())
    }
}

/// Returns the settings of tools in the user's file.
///
/// # Errors
/// The file cannot be read, or something in it is wrong.
pub(in crate::cli) fn tool_settings() -> Result<Arc<ToolSettings>, SettingsError> {
    Ok(Arc::new(Settings::load()?.tools()))
}

/// Returns karyi's own files and directories. In `KARYI_HOME` the usual two directories lie beside them.
fn private_files(own: Option<&Path>) -> Vec<PathBuf> {
    let mut private = own_dirs();
    if let Some(own) = own {
        let own = std::path::absolute(own).unwrap_or_else(|_| own.to_owned());
        private.retain(|path| *path != own);
        private.extend(["config", "config.toml", "state", "data"].map(|name| own.join(name)));
    }
    private
}
