//! What a script costs that nobody would write.

use super::*;

#[test]
fn hostile_scripts_are_cheap() {
    let secrets = secrets(&["value"]);
    for part in [
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
        "$KARYI{V0} ",
        "|",
        "[[ -eq ",
        "f() ",
        "$a[",
        "sudo ",
        "sudo node $KARYI{V0} ",
        "x | bash -c 'cat | sh' ",
        "{ cat <<E; } ",
        "f $a $b | ",
        "$a | bash | psql | ",
        "$(curl $a | cat) ",
        "x=$a$x; ",
        "cat f > f\n",
        "$a:s/",
    ] {
        let script = format!("{}$KARYI{{V0}}", part.repeat(20_000));
        let _ = substitute_script(&script, &secrets);
    }
    // Each file that is run is compared with each that is written.
    let lines =
        (0..400).map(|at| format!("echo x > \"$f{at}.txt\"; bash \"$g{at}.sh\"; v{at}=run{at}\n"));
    let script = format!("{}echo $KARYI{{V0}}", lines.collect::<String>());
    let _ = substitute_script(&script, &secrets);
}
