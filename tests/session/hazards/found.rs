//! Hazards that were found here.

use super::{Hazard, hazard};

pub(super) const HAZARDS: &[Hazard] = &[
    hazard("set -v", "set -v; echo q; set +v", &[], "q", Some(0)),
    hazard("set -x stays on", "set -x", &[], "", Some(0)),
    hazard("set -x off", "set +x", &[], "", Some(0)),
    hazard(
        "function named builtin",
        "builtin() { :; }",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "functions named like special built-ins",
        "unset() { :; }; set() { :; }; eval() { :; }",
        &[],
        "",
        Some(0),
    )
    .differs(&[
        ("dash", "forbidden there"),
        ("busybox", "forbidden there"),
        ("ksh", "forbidden there"),
    ]),
    hazard(
        "those gone",
        "POSIXLY_CORRECT=1\n\\unset -f unset set eval; unset POSIXLY_CORRECT
         unfunction unset set eval 2>/dev/null; true",
        &[],
        "",
        Some(0),
    ),
    hazard(
        "alias for builtin",
        "alias builtin=false printf=false echo='echo '",
        &[],
        "",
        Some(0),
    ),
    hazard("unalias", "unalias -a", &[], "", Some(0)),
    hazard("return", "return 5", &[], "", Some(5))
        .differs(&[("mksh", "gives 0 there once TERM has ended a script")]),
    hazard("stdin closed", "exec 0<&- 1>&- 2>&-", &[], "", Some(0)),
    hazard(
        "a reader in the background",
        "cat & sleep 0.1; kill $!; true",
        &[],
        "",
        Some(0),
    ),
    hazard("nounset", "set -u; unset PWD; true", &[], "", Some(0)),
    hazard(
        "raw terminal left on",
        "cd /; stty raw -echo",
        &[],
        "",
        Some(0),
    ),
    hazard("set -o posix", "set -o posix; true", &[], "", Some(0))
        .differs(&[("dash", "no such option"), ("zsh", "no such option")]),
    hazard("set +o posix", "set +o posix +u; true", &[], "", Some(0))
        .differs(&[("dash", "no such option"), ("zsh", "no such option")]),
    hazard(
        "keyword arguments and no globs",
        "set -k -f; true",
        &[],
        "",
        Some(0),
    )
    .differs(&[("dash", "no such option"), ("busybox", "no such option")]),
    hazard("those off", "set +k +f; true", &[], "", Some(0))
        .differs(&[("dash", "no such option"), ("busybox", "no such option")]),
    hazard(
        "exec of another program",
        "exec sh -c 'echo other; exit 4'",
        &[],
        "other",
        Some(4),
    ),
    hazard(
        "a job killed by a signal",
        "sh -c 'kill -SEGV $$'",
        &[],
        "",
        Some(139),
    )
    .differs(&[(
        "ksh",
        "a sourced script ends with the signal's number there",
    )]),
    hazard(
        "one command and out",
        "set -t; echo once",
        &[],
        "once",
        None,
    )
    .differs(&[
        ("dash", "no such option"),
        ("busybox", "no such option"),
        ("mksh", "no such option"),
        ("zsh", "no such option"),
    ]),
];
