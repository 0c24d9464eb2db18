//! Variables with a meaning: to the shell that assigns to them, or to the programs it starts.
//!
//! What a variable makes code is known by name, and for families of programs by how names end: whatever
//! ends in `_EDITOR` or `_PAGER` is run, whatever starts with `LD_` names what is loaded.

use crate::vault::words::{Demands, Word};

/// Returns what assigning to a variable demands of the value.
pub(in crate::vault) fn assignment_demands(name: &str) -> Demands {
    // `functions[x]`
    let name = name.split('[').next().unwrap_or(name);
    if INTEGER_VARIABLES.contains(&name) {
        Demands::NUMBER
    } else if SHELL_CODE_VARIABLES.contains(&name) {
        Demands::forbidden("in code that runs later")
    } else if is_run_by_programs(name) {
        Demands::CODE_VARIABLE
    } else if ZSH_TABLES.contains(&name) {
        Demands::ZSH
    } else {
        Demands::NONE
    }
}

/// Whether a word so far is `NAME=` of a variable that names a file whose content programs load.
pub(in crate::vault) fn names_loaded(word: &Word) -> bool {
    const DATA: &[&str] = &["_ASKPASS", "_SSH_COMMAND", "GIT_SSH"];
    let Some(name) = word.text().strip_suffix('=') else {
        return false;
    };
    let is_data = DATA.iter().any(|end| name.ends_with(end));
    (is_run_by_programs(name) || SHELL_CODE_VARIABLES.contains(&name)) && !is_data
}

/// Whether programs take the text of a variable for code, a command, options of an interpreter, or a place
/// to load code from.
fn is_run_by_programs(name: &str) -> bool {
    PROGRAM_VARIABLES.contains(&name)
        || CODE_PREFIXES.iter().any(|start| name.starts_with(start))
        || CODE_ENDINGS.iter().any(|end| name.ends_with(end))
}

/// Variables to which bash or zsh assigns by calculating.
const INTEGER_VARIABLES: &[&str] = &[
    "RANDOM",
    "SRANDOM",
    "ZLE_RPROMPT_INDENT",
    "BASH_ARGC",
    "EPOCHREALTIME",
    "COMP_POINT",
    "SECONDS",
    "OPTIND",
    "PPID",
    "LINENO",
    "HISTCMD",
    "EPOCHSECONDS",
    "SHLVL",
    "COLUMNS",
    "LINES",
    "HISTSIZE",
    "SAVEHIST",
    "UID",
    "USER_ID",
    "EUID",
    "GID",
    "EGID",
    "FUNCNEST",
    "KEYTIMEOUT",
    "LISTMAX",
    "LOGCHECK",
    "MAILCHECK",
    "TMOUT",
    "REPORTTIME",
    "DIRSTACKSIZE",
    "ERRNO",
    "TTYIDLE",
    "PERIOD",
    "BAUD",
    "TRY_BLOCK_ERROR",
    "TRY_BLOCK_INTERRUPT",
];

/// Variables whose text the shell itself runs later.
const SHELL_CODE_VARIABLES: &[&str] = &[
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT",
    "RPROMPT",
    "PROMPT2",
    "PROMPT3",
    "PROMPT4",
    "RPS1",
    "RPS2",
    "RPROMPT2",
    "SPROMPT",
    "PROMPT_COMMAND",
    "BASH_ENV",
    "ENV",
    "BASH_ALIASES",
    "MAILPATH",
    "mailpath",
    "BASH_CMDS",
    "FCEDIT",
    "READNULLCMD",
    "NULLCMD",
];

/// Variables whose text programs run, or load code from.
const PROGRAM_VARIABLES: &[&str] = &[
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "LESS",
    "MORE",
    "SHELL",
    "LESSOPEN",
    "LESSCLOSE",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PROXY_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "SVN_SSH",
    "RSYNC_CONNECT_PROG",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MFLAGS",
    "PERL5OPT",
    "PERL5DB",
    "PERL5LIB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_PATH",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONWARNINGS",
    "PYTHONBREAKPOINT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "TCLLIBPATH",
    "CLASSPATH",
    "JAVA_OPTS",
    "HGEDITOR",
    "EXINIT",
    "VIMINIT",
    "GVIMINIT",
    "MYVIMRC",
    "EMACSLOADPATH",
    "ZDOTDIR",
    "INPUTRC",
    "GCONV_PATH",
];

/// How the names of others of them start.
const CODE_PREFIXES: &[&str] = &[
    "GIT_CONFIG_",
    "FZF_DEFAULT_",
    "BASH_",
    "LD_",
    "DYLD_",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "R_PROFILE",
    "R_ENVIRON",
];

/// How the names of others of them end.
const CODE_ENDINGS: &[&str] = &[
    "_EDITOR",
    "_PAGER",
    "_ASKPASS",
    "_RSH",
    "_SSH_COMMAND",
    "_OPTIONS",
    "_OPTS",
    "ERL_FLAGS",
    "ERL_AFLAGS",
    "ERL_ZFLAGS",
    "MANPAGER",
];

/// Tables of zsh, whose elements are code, commands or names; elsewhere these are names as any.
const ZSH_TABLES: &[&str] = &[
    "aliases",
    "builtins",
    "commands",
    "dis_aliases",
    "dis_builtins",
    "dis_functions",
    "dis_galiases",
    "dis_patchars",
    "dis_reswords",
    "dis_saliases",
    "functions",
    "functions_source",
    "galiases",
    "keymaps",
    "mapfile",
    "modules",
    "nameddirs",
    "options",
    "parameters",
    "saliases",
    "termcap",
    "terminfo",
    "userdirs",
    "usergroups",
    "widgets",
];
