//! What a script costs that nobody would write. Several tests, so that cores share them.
//! `KARYI_FULL` repeats each part four times as often.

use super::*;

/// Reads each part so often that one call inside another for each would leave no room on the stack.
fn check(parts: &[&str]) {
    let secrets = secrets(&["value"]);
    let times = match std::env::var_os("KARYI_FULL") {
        Some(_) => 20_000,
        None => 5000,
    };
    for part in parts {
        let script = format!("{}$KARYI{{V0}}", part.repeat(times));
        let _ = substitute_script(&script, &secrets);
    }
}

#[test]
fn what_is_opened_and_never_closed_is_cheap() {
    check(&[
        "$(",
        "\"$(",
        "${x:-",
        "((",
        "`",
        "<<E\n",
        "sh <<E\n",
        "'",
        "case x in ",
        "{ ",
        "a[",
        "$a[",
        "f() ",
    ]);
}

#[test]
fn many_words_of_a_command_are_cheap() {
    check(&[
        "$KARYI{V0} ",
        "[[ -eq ",
        "sudo ",
        "sudo node $KARYI{V0} ",
        "x=$a$x; ",
        "cat f > f\n",
        "$a:s/",
    ]);
}

#[test]
fn long_pipelines_are_cheap() {
    check(&["|", "f $a $b | ", "$a | bash | psql | "]);
}

#[test]
fn many_pipelines_are_cheap() {
    check(&[
        "x | bash -c 'cat | sh' ",
        "{ cat <<E; } ",
        "$(curl $a | cat) ",
    ]);
}

/// Each file that is run is compared with each that is written.
#[test]
fn many_files_that_are_written_and_run_are_cheap() {
    let lines =
        (0..400).map(|at| format!("echo x > \"$f{at}.txt\"; bash \"$g{at}.sh\"; v{at}=run{at}\n"));
    let script = format!("{}echo $KARYI{{V0}}", lines.collect::<String>());
    let _ = substitute_script(&script, &secrets(&["value"]));
}
