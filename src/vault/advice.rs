//! What a person should know about the secrets of a script, though it is allowed.
//!
//! In a shell neither programs nor hosts can be enforced: a script reaches anything by detours. So
//! these are warnings, made from what the script plainly says.

use std::collections::BTreeSet;

use super::policy::{Host, Policy};
use super::programs::Taker;
use super::script::{self, Hole};
use super::substitute;
use crate::secret::{Piece, SecretName};

/// Looks a policy up.
pub type FindPolicy<'a> = dyn Fn(&SecretName) -> Option<Policy> + 'a;

/// Returns the warnings about a script, each once.
#[must_use]
pub fn advice(text: &str, policy: &FindPolicy<'_>) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    let hosts = hosts(text);
    for (name, taker) in uses(text) {
        let policy = policy(&name).unwrap_or_default();
        let told = taker.and_then(|taker| told_by(&name, taker));
        if let Some((program, way_out)) = told {
            warnings.insert(format!(
                "{name} is an argument of {program}: everybody on this machine can read it there while it \
                 runs; {way_out}"
            ));
            warnings.extend(unfit_program(&name, &policy, &program));
        }
        warnings.extend(unfit_hosts(&name, &policy, &hosts));
    }
    warnings.into_iter().collect()
}

/// Returns the program that shows an argument to everybody, and how it gets the value otherwise.
fn told_by(name: &SecretName, taker: Taker) -> Option<(String, String)> {
    match taker {
        Taker::Program(program) => {
            let file = format!("$KARYI{{{name}|file}} is the path of a file with it");
            Some((program, file))
        }
        Taker::Header => {
            let input = format!(
                "printf 'Authorization: Bearer %s\\n' \"$KARYI{{{name}}}\" | curl -H @- URL sends such a header from its input"
            );
            Some(("curl".to_owned(), input))
        }
        Taker::Function => None,
    }
}

/// Returns warnings of what looks like the placeholder of a known secret, and is something else to a shell: `$KARYI_NAME`,
/// `${KARYI_NAME}`, `$karyi{NAME}`.
#[must_use]
pub fn misspelt(text: &str, is_known: &dyn Fn(&SecretName) -> bool) -> Vec<String> {
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

fn unfit_program(name: &SecretName, policy: &Policy, program: &str) -> Option<String> {
    (!policy.is_meant_for(program))
        .then(|| format!("{name} is meant for other programs than {program}"))
}

fn unfit_hosts(name: &SecretName, policy: &Policy, hosts: &BTreeSet<String>) -> Vec<String> {
    let Some(known) = policy.hosts.as_ref().filter(|known| !known.is_empty()) else {
        return Vec::new();
    };
    let is_unfit = |host: &&String| !known.iter().any(|rule| is_named(rule, host));
    let warn = |host| format!("{name} is meant for other hosts than {host}");
    hosts.iter().filter(is_unfit).map(warn).collect()
}

/// Whether a host is one of a rule's, at any port: the port is not known here.
fn is_named(rule: &Host, host: &str) -> bool {
    rule.permits("https", host, rule.port().or(Some(443)))
}

/// Returns each use of a secret, with what gets its value as an argument.
fn uses(text: &str) -> Vec<(SecretName, Option<Taker>)> {
    let Ok(pieces) = substitute::pieces(text) else {
        return Vec::new();
    };
    let (mut at, mut names, mut holes) = (0, Vec::new(), Vec::<Hole>::new());
    for piece in pieces {
        let length = match piece {
            Piece::Literal(literal) => literal.len(),
            Piece::Escaped(escaped) => escaped.len() + 1,
            Piece::Secret(name) => {
                let length = "$KARYI{}".len() + name.as_str().len();
                holes.push(at..at + length);
                names.push((name, true));
                length
            }
            Piece::File(name) => {
                let length = "$KARYI{|file}".len() + name.as_str().len();
                holes.push(at..at + length);
                names.push((name, false));
                length
            }
        };
        at += length;
    }
    let places = script::places(text, &holes).unwrap_or_default();
    let takers = places.into_iter().map(|place| place.taker);
    let uses = names.into_iter().zip(takers);
    uses.map(|((name, is_value), taker)| (name, taker.filter(|_| is_value)))
        .collect()
}

/// Returns the hosts of the addresses a text spells out.
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
    use crate::vault::policy::Terms;

    fn check(terms: &str, script: &str, expected: &[&str]) {
        let terms: Terms = toml::from_str(terms).unwrap();
        let policy = terms.policy(jiff::Timestamp::UNIX_EPOCH).unwrap();
        let found = advice(script, &|_| Some(policy.clone()));
        let short: Vec<&str> = found
            .iter()
            .map(|text| text.split([':', ';']).next().unwrap())
            .collect();
        assert_eq!(short, expected, "{script}");
    }

    #[test]
    fn arguments_of_programs_are_told() {
        check(
            "",
            "curl -H \"X: $KARYI{K}\" a",
            &["K is an argument of curl"],
        );
        check(
            "",
            "sudo -n /usr/bin/curl $KARYI{K}",
            &["K is an argument of curl"],
        );
        check("", "x=1 env curl $KARYI{K}", &["K is an argument of curl"]);
        check("", "$(curl '$KARYI{K}')", &["K is an argument of curl"]);
        // One of an earlier command may be a function; nobody knows.
        check("", "f $KARYI{K}", &["K is an argument of f"]);
        check(
            "",
            "f() { :; }; env f $KARYI{K}",
            &["K is an argument of f"],
        );
        check("", "f() { :; }; ./f $KARYI{K}", &["K is an argument of f"]);
        check("", "f $KARYI{K}; f() { :; }", &["K is an argument of f"]);
        // A function that hands it on to a program.
        check(
            "",
            "f() { echo \"$2\"; curl -H \"X: $1\" a; }; f $KARYI{K}",
            &["K is an argument of curl"],
        );
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
            "function f { X=\"$1\" curl a; }\nif f $KARYI{K}; then time f a \"$KARYI{K}\"; fi",
            "f() (:); noglob f $KARYI{K}; coproc f '$KARYI{K}'; ! f $KARYI{K}",
            "read -p $KARYI{K} x; type \"$KARYI{K}\"; caller $KARYI{K}; setopt $KARYI{K}; return $KARYI{K}",
            "while [ $KARYI{K} ]; do case $KARYI{K} in ($KARYI{K}) test $KARYI{K};; esac; done",
        ] {
            check("", quiet, &[]);
        }
    }

    #[test]
    fn a_header_has_a_way_out_that_sends_it() {
        let input = "K is an argument of curl: everybody on this machine can read it there while it runs; printf \
                     'Authorization: Bearer %s\\n' \"$KARYI{K}\" | curl -H @- URL sends such a header from its input";
        for (script, is_header) in [
            ("curl -H \"Authorization: Bearer $KARYI{K}\" h", true),
            ("curl -sSH 'A: $KARYI{K}' h", true),
            ("curl --header \"A: $KARYI{K}\" h", true),
            ("sudo curl -H\"A: $KARYI{K}\" h", true),
            ("f() { curl -H \"A: $1\" h; }; f $KARYI{K}", true),
            ("curl -u \"u:$KARYI{K}\" -H x h", false),
            ("ldapsearch -H $KARYI{K}", false),
        ] {
            let found = advice(script, &|_| None);
            assert_eq!(found == [input], is_header, "{script}: {found:?}");
        }
    }

    #[test]
    fn a_misspelt_placeholder_is_told() {
        let name = |name: &SecretName| name.as_str() == "TOK";
        let found = |text: &str| misspelt(text, &name);
        for text in [
            "echo $KARYI_TOK",
            "echo ${KARYI_TOK}",
            "echo \"$KARYI(TOK)\"",
            "echo $KARYI[TOK]",
            "echo $karyi{TOK}",
            "echo ${KARYI{TOK}}",
            "echo ${KARYI_TOK:-x} $Karyi<TOK>",
        ] {
            let told = ["line 2 has no placeholder of TOK: did you mean $KARYI{TOK}?"];
            assert_eq!(found(&format!("é\n{text}")), told, "{text}");
        }
        for text in [
            "$KARYI{TOK} $KARYI<TOK> $$KARYI{TOK} $KARYI{TOK|file}",
            "$KARYI_TOKEN ${KARYI_HOME} KARYI_TOK=x karyi{TOK} $karyiTOK $KARYI",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn other_programs_and_hosts_are_told() {
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
