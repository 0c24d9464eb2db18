//! Values of several short lines, as programs print them.

use super::*;

const CODES: &str =
    "1a2b3-c4d5e\nf6a7b-8c9d0\ne1f2a-3b4c5\nd6e7f-8a9b0\nc1d2e-3f4a5\nb6c7d-8e9f0\n";

/// Masked form of a line.
const PART: &str = "[KARYI:R:part]";

/// Checks a text composed of the value's lines, each of which is masked.
#[track_caller]
fn lines_in(make: impl Fn(&[&str]) -> String) {
    let lines: Vec<&str> = CODES.lines().collect();
    check(&[("R", CODES)], &make(&lines), &make(&[PART; 6]));
}

#[test]
fn each_line_is_masked_whatever_stands_before_it() {
    check(&[("R", CODES)], CODES, "$KARYI{R}");
    let each = |form: &dyn Fn(usize, &str) -> String| {
        lines_in(|lines| {
            let lines = lines.iter().enumerate();
            lines.map(|(at, line)| form(at + 1, line)).collect()
        });
    };
    each(&|number, line| format!("{number}:{line}\n"));
    each(&|number, line| format!("     {number}\t{line}\n"));
    each(&|_, line| format!("+{line}\n"));
    each(&|_, line| format!("\u{1b}[32m+{line}\u{1b}[m\n"));
    each(&|_, line| format!("> {line}\r\n"));
    each(&|_, line| format!("{line}$\n"));
    each(&|_, line| format!("\"{line}\"\n"));
    each(&|number, line| format!("ed/a.txt-{number}-{line}\n"));
    lines_in(|lines| lines.join(","));
    lines_in(|lines| format!("['{}']", lines.join("', '")));
}

/// A line alone, and lines in another order or form.
#[test]
fn a_line_alone_is_masked() {
    check(&[("R", CODES)], "is e1f2a-3b4c5.", "is [KARYI:R:part].");
    check(&[("R", CODES)], "is e1f2a-3b4c", "is e1f2a-3b4c");
    let hex = "is 65316632612d3362346335.";
    check(&[("R", CODES)], hex, "is [KARYI:R:hex].");
    let base64 = "is ZTFmMmEtM2I0YzU=.";
    check(&[("R", CODES)], base64, "is [KARYI:R:base64]=.");
    let joined = "x e1f2a%2D3b4c5 y";
    check(&[("R", CODES)], joined, "x [KARYI:R:percent] y");
    let sorted: String = CODES
        .lines()
        .rev()
        .map(|line| format!("{line}\n"))
        .collect();
    let shown = redacted_with("R", CODES, &sorted);
    assert!(CODES.lines().all(|line| !shown.contains(line)), "{shown}");
    let short = "12ab-cd3\n4567-ef8\n";
    check(&[("R", short)], "1. 4567-ef8", "1. [KARYI:R:part]");
    let cut = cut(&Redactor::new(&secrets(&[("R", CODES)])), "c1d2e");
    assert_eq!(cut, PART);
}

/// Lines are measured in characters, without a checkbox.
#[test]
fn short_lines_of_any_letters_are_masked() {
    let value = "пароль12\nсекрет34\n";
    check(&[("R", value)], "> секрет34", "> [KARYI:R:part]");
    check(&[("R", value)], "мой секрет", "мой секрет");
    let boxes = "[x] abcd1234\n[ ] efgh5678\n";
    check(&[("R", boxes)], "2: efgh5678", "2: [KARYI:R:part]");
}

fn redacted_with(name: &str, value: &str, text: &str) -> String {
    Redactor::new(&secrets(&[(name, value)]))
        .redact_str(text)
        .into_owned()
}

/// Common lines of manifests, headers of keys and settings.
#[test]
fn lines_of_plain_words_stay() {
    let kube = "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://10.0.0.1\n  name: dev-west1\n\
                users:\n- name: admin\n  user:\n    token: Zk7qPw2L\n";
    for text in [
        "dev-west1\n",
        "name: admin\n",
        "10.0.0.1\n",
        "kind: Config\n",
        "- cluster:\n",
    ] {
        check(&[("K", kube)], text, text);
    }
    check(
        &[("K", kube)],
        "curl -H Zk7qPw2L x",
        "curl -H [KARYI:K:part] x",
    );
    let words = "abandon\nzebra\nquartz\nmountain\numbrella\nturtle\n";
    let text = "a mountain with an umbrella\n";
    check(&[("K", words)], text, text);
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJx3Wq0Zr7mVx2LbN8yT1uJ5oHcE9aPsXfGdQwBvRkMI\n-----END PRIVATE KEY-----\n";
    let text = "-----BEGIN PRIVATE KEY-----\nother\n-----END PRIVATE KEY-----\n";
    check(&[("K", pem)], text, text);
    let json = "{\n  \"a\": {\n    \"token\": \"Zk7qPw2LmX9v\"\n  }\n}\n";
    let text = "{\n  \"a\": {\n    \"other\": \"x\"\n  }\n}\n";
    check(&[("K", json)], text, text);
}

/// Text around a token in a header, a cookie and a settings file.
#[test]
fn text_around_a_token_stays() {
    let kube = "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://1.2.3.4:6443\n  name: prod\n\
                users:\n- name: admin\n  user:\n    token: abcdefghijklmnop1234567890\n";
    for (value, texts) in [
        (
            kube,
            &[
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n",
                "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://10.0.0.1:6443\n",
                "users:\n- name: alice\n",
            ][..],
        ),
        (
            "NODE_ENV=production\nDATABASE_PASSWORD=Zx81Spectrum!\n",
            &["export NODE_ENV=production\nX=1\n"],
        ),
        (
            "machine api.github.com login bob password hunter2hunter2",
            &["machine api.github.com login alice\n"],
        ),
        (
            "Authorization: Bearer abcdef123456",
            &["> Authorization: Bearer \n", "Authorization: Bearer x"],
        ),
        (
            "session=abc123def456; Path=/; HttpOnly; Secure; SameSite=Lax",
            &["a=b; Path=/; HttpOnly; Secure; SameSite=Lax\n"],
        ),
    ] {
        for text in texts {
            check(&[("K", value)], text, text);
        }
        check(&[("K", value)], value, "$KARYI{K}");
    }
    check(
        &[("K", "Authorization: Bearer abcdef123456")],
        "abcdef123456",
        "[KARYI:K:part]",
    );
}

/// A file is recognised by its lines, too, though not in every encoding.
#[test]
fn lines_of_a_large_value_are_masked() {
    let lines =
        (0..2000_u32).map(|at| format!("{:05x}-{:05x}\n", at * 7919, at * 104_729 % 0xf_ffff));
    let value: String = lines.collect();
    assert!(value.len() > limits::MAX_ENCODED_SECRET_BYTES);
    let line = value.lines().nth(1234).unwrap();
    assert_eq!(
        redacted_with("R", &value, &format!("> {line}.")),
        "> [KARYI:R:part]."
    );
}

/// The text's own line continues like the value by chance.
#[test]
fn text_beside_a_line_stays() {
    check(
        &[("R", CODES)],
        "codes-3-f6a7b-8c9d0\ne-4-e1f2a-3b4c5\n",
        "codes-3-[KARYI:R:part]\ne-4-[KARYI:R:part]\n",
    );
    check(
        &[("R", CODES)],
        "size 0\ne1f2a-3b4c5\nend",
        "size 0\n[KARYI:R:part]\nend",
    );
    // A wrapped value of one line has no line end there.
    check(
        &[("K", T)],
        &format!("{}\n{}", &T[..36], &T[36..]),
        "[KARYI:K:part]",
    );
}
