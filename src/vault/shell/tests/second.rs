//! Second readings by programs whose words end early, are split again or open a console.

use super::check_outcomes;

const CODE: &[&str] = &[
    "find . -maxdepth 0 -exec bash \\; <<< VALUE",
    "echo VALUE | find . -maxdepth 0 -exec bash \\;",
    "find . -exec python3 \\; <<EOF\nVALUE\nEOF",
    "env -S 'python3 -u' - <<< VALUE",
    "env -S'python3 -' <<< VALUE",
    "env -S 'FOO=bar bash' <<EOF\nVALUE\nEOF",
    "env -S 'bash -c' -- VALUE",
    "echo VALUE | python3 manage.py shell",
    "python3 manage.py shell --command VALUE",
    "./manage.py shell <<< VALUE",
    "rails runner VALUE",
    "bundle exec rails runner VALUE",
    "php artisan tinker --execute=VALUE",
    "docker exec -i app python manage.py shell <<< VALUE",
    "script --c=VALUE /dev/null",
    "jq -n --arg a b --args VALUE",
    "jq -n --argjson a 1 --args VALUE",
    "oc rsh pod <<< VALUE",
    "docker-compose exec -T db sh <<< VALUE",
    "arch-chroot /mnt bash <<< VALUE",
    "uv run python3 - <<< VALUE",
    "bun run - <<< VALUE",
    "sqlplus u/p <<< VALUE",
    "psql -o VALUE db",
    "mysql --pager=VALUE db",
    "sort --compress-program=VALUE f",
    "git config --global --add alias.x VALUE",
];

const DATA: &[&str] = &[
    "find . -name x -exec grep -l VALUE {} \\; -exec curl VALUE \\;",
    "python3 manage.py createsuperuser --token VALUE",
    "rails server -b VALUE",
    "jq -n --arg a b --args '$ARGS' VALUE",
    "docker-compose exec -T db psql -U u VALUE",
    "sort -k 2 <<< VALUE",
    "env -u A B=1 curl VALUE",
    "npm publish --token VALUE",
];

#[test]
fn words_that_end_early_or_are_split_again_hide_no_code() {
    check_outcomes("a[$(touch pwned)] '\"", CODE, "unsafe_nested_parse");
    check_outcomes("a[$(touch pwned)] '\"", DATA, "accepted");
    check_outcomes(
        "plain-value",
        &[
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_PARAMETERS=VALUE git x",
            "NODE_OPTIONS=VALUE node x.js",
        ],
        "unsafe_context",
    );
}

#[test]
fn a_path_of_karyi_is_no_code() {
    let scripts = [
        "sed -n 1p $KARYI{V0|file}",
        "jq -r .id $KARYI{V0|file}",
        "python3 -c \"print(open('$KARYI{V0|file}').read())\"",
        "awk '{print $1}' $KARYI{V0|file}",
        "rsync -e 'ssh -i $KARYI{V0|file}' a h:b",
    ];
    check_outcomes("a[$(touch pwned)] '\"", &scripts, "accepted");
}
