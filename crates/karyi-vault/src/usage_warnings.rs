//! Warnings about the use of secrets in a script that is allowed to run.
//!
//! A shell script can reach any program or host indirectly, so neither can be enforced. The warnings cover what the
//! script states plainly.

use std::collections::BTreeSet;

use super::policy::{Host, Policy};
use super::rewriting::find_placeholders;
use super::shell_lexer::{self, Script, Site, Span, is_modifier};
use karyi_core::secret::{SecretName, VariableContent};

/// Looks up the policy of a secret.
pub type FindPolicy<'a> = dyn Fn(&SecretName) -> Option<Policy> + 'a;

/// Returns the warnings about a script, each once. `is_new` returns true when the user was not yet warned that a
/// secret is visible in an argument.
#[must_use]
pub fn usage_warnings(
    text: &str,
    policy: &FindPolicy<'_>,
    is_new: &mut dyn FnMut(&SecretName) -> bool,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let hosts = hosts(text);
    for (name, program) in uses(text) {
        let policy = policy(&name).unwrap_or_default();
        if let Some(program) = &program {
            if is_new(&name) {
                warnings.push(visible_argument_warning(&name, program));
            }
            warnings.extend(other_program_warning(&name, &policy, program));
        }
        warnings.extend(other_host_warnings(&name, &policy, &hosts));
    }
    let mut reported = BTreeSet::new();
    warnings.retain(|warning| reported.insert(warning.clone()));
    warnings
}

/// Returns the warning that other users can read an argument, with a safe alternative.
fn visible_argument_warning(name: &SecretName, program: &str) -> String {
    let way_out = match program {
        "curl" => format!(
            "printf 'Authorization: Bearer %s\\n' \"$KARYI{{{name}}}\" | curl -H @- URL sends a header from its input"
        ),
        _ => format!("$KARYI{{{name}|file}} is the path of a file with it"),
    };
    format!(
        "{name} is an argument of {program}, which other users of this machine can read while it runs; {way_out}"
    )
}

/// Returns warnings about misspelled placeholders of known secrets, such as `$KARYI_NAME`, `${KARYI_NAME}` and
/// `$karyi{NAME}`.
#[must_use]
pub fn misspelled_placeholders(text: &str, is_known: &dyn Fn(&SecretName) -> bool) -> Vec<String> {
    const SIGN: &str = "KARYI";
    let mut warnings = BTreeSet::new();
    for (at, _) in text.to_ascii_uppercase().match_indices(SIGN) {
        let (before, from) = text.split_at_checked(at).unwrap_or_default();
        let (sign, after) = from.split_at_checked(SIGN.len()).unwrap_or_default();
        let is_placeholder = sign == SIGN && before.ends_with('$') && after.starts_with(['{', '<']);
        let has_sign = before.strip_suffix('{').unwrap_or(before).ends_with('$');
        let rest = after.strip_prefix(['_', '{', '<', '(', '[', ':']);
        let Some(rest) = rest.filter(|_| has_sign && !is_placeholder) else {
            continue;
        };
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let name = rest.split(is_end).next().and_then(SecretName::parse);
        if let Some(name) = name.filter(|name| is_known(name)) {
            warnings.insert(format!(
                "line {} has no placeholder of {name}: did you mean $KARYI{{{name}}}?",
                1 + before.matches('\n').count()
            ));
        }
    }
    warnings.into_iter().collect()
}

fn other_program_warning(name: &SecretName, policy: &Policy, program: &str) -> Option<String> {
    (!policy.is_meant_for(program))
        .then(|| format!("{name} is meant for other programs than {program}"))
}

fn other_host_warnings(
    name: &SecretName,
    policy: &Policy,
    hosts: &BTreeSet<String>,
) -> Vec<String> {
    let Some(known) = policy.hosts.as_ref().filter(|known| !known.is_empty()) else {
        return Vec::new();
    };
    let is_unfit = |host: &&String| !known.iter().any(|rule| is_named(rule, host));
    let warn = |host| format!("{name} is meant for other hosts than {host}");
    hosts.iter().filter(is_unfit).map(warn).collect()
}

/// Returns true when a rule names the host, at any port: the port is not known here.
fn is_named(rule: &Host, host: &str) -> bool {
    rule.permits("https", host, rule.port().or(Some(443)))
}

/// Returns each use of a secret, with the program whose argument it is.
fn uses(text: &str) -> Vec<(SecretName, Option<String>)> {
    let Ok(placeholders) = find_placeholders(text) else {
        return Vec::new();
    };
    let spans: Vec<Span> = placeholders
        .iter()
        .map(|placeholder| placeholder.span.clone())
        .collect();
    let script = shell_lexer::read(text, &spans).unwrap_or_default();
    let uses = placeholders.into_iter().zip(&script.placements);
    let uses = uses.filter_map(|(placeholder, placement)| {
        let (name, holds) = placeholder.name?;
        let program = match (holds, placement.site) {
            (VariableContent::Value, Site::Word(command, word)) => program(&script, command, word),
            _ => None,
        };
        Some((name, program))
    });
    uses.collect()
}

/// Returns the program of a command whose argument other users can see.
fn program(script: &Script, command: usize, word: usize) -> Option<String> {
    let command = script.commands.get(command).filter(|c| c.is_simple())?;
    let mut words = command.words.iter().enumerate();
    let (at, first) = words.find(|(_, word)| !is_modifier(&word.text))?;
    let is_path = first.text.contains('/');
    let is_own = !is_path && script.functions.contains(&first.text);
    let is_builtin = BUILTINS
        .split_ascii_whitespace()
        .any(|name| name == first.text);
    let name = first.text.rsplit('/').next().unwrap_or_default();
    (at < word && !is_own && !is_builtin && !name.is_empty()).then(|| name.to_owned())
}

/// Commands that bash or zsh run without a program.
const BUILTINS: &str = ". : [ [[ alias autoload bg bind bindkey break builtin caller case cd compgen complete \
    continue coproc declare dirs disown echo emulate enable eval export false fc fg float for function getopts hash \
    history if integer jobs kill let local logout mapfile popd print printf pushd pwd read readarray readonly return \
    select set setopt shift shopt source suspend test time times trap true type typeset ulimit umask unalias unset \
    unsetopt until vared wait whence where which while zstyle";

/// Returns the hosts of the URLs in a text.
#[must_use]
pub fn hosts(text: &str) -> BTreeSet<String> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let parts = text.split("://").skip(1);
    let mut hosts = BTreeSet::new();
    for part in parts {
        let end = part.find(['/', ' ', '"', '\'', '\n', '?', '#']);
        let authority = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host: String = host.chars().take_while(|c| is_host(*c)).collect();
        if !host.is_empty() {
            hosts.insert(host.to_ascii_lowercase());
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyTerms;

    fn check(terms: &str, script: &str, expected: &[&str]) {
        let terms: PolicyTerms = toml::from_str(terms).unwrap();
        let policy = terms.policy(jiff::Timestamp::UNIX_EPOCH).unwrap();
        let found = usage_warnings(script, &|_| Some(policy.clone()), &mut |_| true);
        let short: Vec<&str> = found
            .iter()
            .map(|text| text.split([',', ';']).next().unwrap())
            .collect();
        assert_eq!(short, expected, "{script}");
    }

    #[test]
    fn arguments_of_programs_cause_warnings() {
        for (script, program) in [
            ("curl -H \"X: $KARYI{K}\" a", "curl"),
            ("sudo -n /usr/bin/curl $KARYI{K}", "sudo"),
            ("x=1 env curl $KARYI{K}", "env"),
            ("$(curl '$KARYI{K}')", "curl"),
            ("docker run -e X=$KARYI{K} image", "docker"),
            ("f $KARYI{K}", "f"),
            ("f() { :; }; env f $KARYI{K}", "env"),
            ("f() { :; }; ./f $KARYI{K}", "f"),
            ("exec /opt/a/gh $KARYI{K}", "gh"),
            ("command gh $KARYI{K} && gh $KARYI{K}", "gh"),
        ] {
            check("", script, &[&format!("K is an argument of {program}")]);
        }
        for quiet in [
            "printf %s $KARYI{K} | gh auth login --with-token",
            "X=$KARYI{K} curl a",
            "curl -H @$KARYI{K|file} a",
            "cat <<EOF | curl -K -\n$KARYI{K}\nEOF",
            "curl a <<< $KARYI{K}",
            "[[ $x == $KARYI{K} ]] && export Y=$KARYI{K}",
            "a=(1 $KARYI{K})",
            "curl a > $KARYI{K}",
            "for x in $KARYI{K}; do :; done",
            "curl a # $KARYI{K}",
            "f() { printf %s \"$1\" | curl -K -; }; f $KARYI{K}",
            "f() (:); noglob f $KARYI{K}; ! f $KARYI{K}; f $KARYI{K}; command printf $KARYI{K}",
            "read -p $KARYI{K} x; type \"$KARYI{K}\"; setopt $KARYI{K}; return $KARYI{K}",
            "while [ $KARYI{K} ]; do case $KARYI{K} in ($KARYI{K}) test $KARYI{K};; esac; done",
        ] {
            check("", quiet, &[]);
        }
    }

    #[test]
    fn an_argument_causes_one_warning() {
        let mut reported = BTreeSet::new();
        let mut tell =
            |script| usage_warnings(script, &|_| None, &mut |name| reported.insert(name.clone()));
        let found = tell("gh $KARYI{K}; curl $KARYI{K} $KARYI{L}");
        let expected = [
            "K is an argument of gh, which other users of this machine can read while it runs; $KARYI{K|file} is the \
             path of a file with it",
            "L is an argument of curl, which other users of this machine can read while it runs; printf \
             'Authorization: Bearer %s\\n' \"$KARYI{L}\" | curl -H @- URL sends a header from its input",
        ];
        assert_eq!(found, expected);
        assert!(tell("gh $KARYI{K} $KARYI{L}").is_empty());
    }

    #[test]
    fn a_misspelled_placeholder_causes_a_warning() {
        let name = |name: &SecretName| name.as_str() == "TOK";
        let found = |text: &str| misspelled_placeholders(text, &name);
        for text in [
            "echo $KARYI_TOK",
            "echo ${KARYI_TOK}",
            "echo \"$KARYI(TOK)\"",
            "echo $KARYI[TOK]",
            "echo $karyi{TOK}",
            "echo ${KARYI{TOK}}",
            "echo ${KARYI_TOK:-x} $Karyi<TOK>",
        ] {
            let reported = ["line 2 has no placeholder of TOK: did you mean $KARYI{TOK}?"];
            assert_eq!(found(&format!("é\n{text}")), reported, "{text}");
        }
        for text in [
            "$KARYI{TOK} $KARYI<TOK> $$KARYI{TOK} $KARYI{TOK|file}",
            "$KARYI_TOKEN ${KARYI_HOME} KARYI_TOK=x karyi{TOK} $karyiTOK $KARYI",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn other_programs_and_hosts_cause_warnings() {
        let terms = "commands = ['gh']\nhosts = ['api.a.com', '*.b.com', 'c.com:8443']";
        check(
            terms,
            "printf %s $KARYI{K} | gh x https://api.a.com/ https://x.b.com ftp://c.com:8443",
            &[],
        );
        check(
            terms,
            "wget $KARYI{K}",
            &[
                "K is an argument of wget",
                "K is meant for other programs than wget",
            ],
        );
        check(
            terms,
            "echo $KARYI{K}; true https://u:p@evil.org:80/x 'http://B.com'",
            &[
                "K is meant for other hosts than b.com",
                "K is meant for other hosts than evil.org",
            ],
        );
    }
}
