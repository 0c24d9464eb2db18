//! Random scripts around placeholders: what a program receives is what the script says.

use super::matrix::Matrix;
use super::values::HOSTILE;

/// A number made of those before it.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// A piece of a script and what it stands for.
type Piece = (String, String);

fn pair(script: &str, meaning: &str) -> Piece {
    (script.into(), meaning.into())
}

fn wrapped(before: &str, (script, meaning): Piece, after: &str, mark: &str) -> Piece {
    (
        format!("{before}{script}{after}"),
        format!("{meaning}{mark}"),
    )
}

fn joined(pieces: impl Iterator<Item = Piece>) -> Piece {
    pieces.fold(pair("", ""), |(script, meaning), (more, means)| {
        (script + &more, meaning + &means)
    })
}

/// A word outside of quotes.
fn word(dice: &mut Dice, depth: usize) -> Piece {
    let count = 1 + dice.roll(3);
    joined((0..count).map(|_| bare(dice, depth)))
}

fn bare(dice: &mut Dice, depth: usize) -> Piece {
    let deepest = if depth == 0 { 6 } else { 9 };
    match dice.roll(deepest) {
        0 => pair("ab", "ab"),
        1 | 2 => pair("VALUE", "VALUE"),
        3 => pair("'x \"VALUE$( # '", "x \"VALUE$( # "),
        4 => pair("$'q\\'\\tVALUE\\\\'", "q'\tVALUE\\"),
        5 => pair("\\'\\\"\\$", "'\"$"),
        6 => wrapped("\"", double(dice, depth - 1), "\"", ""),
        7 => wrapped("\"$(printf '%s.' ", word(dice, depth - 1), ")\"", "."),
        _ => wrapped("\"${unset:-", default(dice, depth - 1), "}\"", ""),
    }
}

/// Text in double quotes.
fn double(dice: &mut Dice, depth: usize) -> Piece {
    let count = 1 + dice.roll(3);
    joined(
        (0..count).map(|_| match dice.roll(if depth == 0 { 4 } else { 6 }) {
            0 => pair("it's # (", "it's # ("),
            1 | 2 => pair("VALUE", "VALUE"),
            3 => pair("\\\"\\$x\\`", "\"$x`"),
            4 => wrapped("$(printf '%s.' ", word(dice, depth - 1), ")", "."),
            _ => wrapped("${unset:-", default(dice, depth - 1), "}", ""),
        }),
    )
}

/// What stands in `"${unset:-...}"`.
fn default(dice: &mut Dice, depth: usize) -> Piece {
    match dice.roll(if depth == 0 { 2 } else { 3 }) {
        0 => pair("a VALUE b", "a VALUE b"),
        1 => pair("VALUE", "VALUE"),
        _ => wrapped("$(printf '%s.' ", word(dice, depth - 1), ")", "."),
    }
}

/// A line that means nothing for what comes after it.
fn noise(dice: &mut Dice) -> &'static str {
    const LINES: &[&str] = &[
        ": 'it\"s' \"don't\" # isn't \"\n",
        "case a in (b) : ')';; a|'c') : \"(\";; esac\n",
        "cat <<'Q' >/dev/null\nit's \" $( ` # (\nQ\n",
        "cat <<A >/dev/null; cat <<-B >/dev/null\n' \" \\$( #\nA\n\t'\n\tB\n",
        "x=$((1 + (2 << 3))); ((x > 1)) && :\n",
        "[[ '(' == \"(\" && a < b ]] || :\n",
        "a=(1 '2 #' \"$(echo ')')\" # )'\n)\n",
        "for i in 1 2; do :; done # done\n",
        "f() { : \"}\"; }; f # }\n",
        "y=${x#*'}'}; y=${x//\\}/\\{}\n",
        ": `echo \"a\" 'b'` $'\\'' \\\n  \\' \\#\n",
        "if :; then :; elif false; then :; else :; fi\n",
    ];
    LINES[dice.roll(LINES.len())]
}

fn script(dice: &mut Dice) -> Piece {
    let (text, meaning) = match dice.roll(4) {
        0 => {
            let (text, meaning) = double(dice, 0);
            // Quotes mean nothing in a here-document.
            (
                format!("recv - <<E\n{}\nE", text.replace("\\\"", "\"")),
                format!("{meaning}\n"),
            )
        }
        1 => wrapped("v=", word(dice, 3), "; recv \"$v\"", ""),
        2 => wrapped("recv - <<<", word(dice, 2), "", "\n"),
        _ => wrapped("recv ", word(dice, 3), "", ""),
    };
    let before: String = (0..dice.roll(4)).map(|_| noise(dice)).collect();
    let after = noise(dice);
    (format!("{before}{text}\n{after}"), format!("{meaning}|"))
}

#[test]
fn random_scripts_mean_what_they_say() {
    let seed = std::env::var("KARYI_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(0x9E37_79B9_7F4A_7C15);
    let count = if std::env::var_os("KARYI_FULL").is_some() {
        5000
    } else {
        60
    };
    let mut dice = Dice(seed);
    let mut matrix = Matrix::new("/bin/bash");
    for _ in 0..count {
        let (script, meaning) = script(&mut dice);
        let column = dice.roll(HOSTILE.len());
        matrix.check_script(&script, &meaning, None, column);
    }
    println!("seed {seed}");
    let tally = matrix.finish("random scripts");
    assert!(tally.right * 10 > count * 9, "{tally:?}");
}
