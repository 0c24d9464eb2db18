//! Random messages whose blocks are well-formed XML and follow the grammar: every tool there is,
//! written in every way XML allows, with prose around it.

use std::fmt::{self, Debug, Formatter, Write};
use std::ops::Range;

use karyi::syntax::grammar::{
    AttributeRule, ContentRule, ElementRule, Grammar, LeafKind, ParameterRule,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::choices::Choices;

/// A message and where its blocks stand.
#[derive(Clone)]
pub(super) struct Document {
    pub(super) text: String,
    pub(super) blocks: Vec<Range<usize>>,
}

impl Debug for Document {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// A random document; fewer choices make a smaller one.
pub(super) fn any_document(grammar: Grammar) -> impl Strategy<Value = Document> {
    vec(any::<u8>(), 0..700).prop_map(move |bytes| document(&grammar, &bytes))
}

/// Makes the document that the bytes decide on.
pub(super) fn document(grammar: &Grammar, bytes: &[u8]) -> Document {
    let mut writer = Writer {
        choices: Choices::new(bytes),
        out: String::new(),
        ids: 0,
    };
    let mut blocks = Vec::new();
    if writer.choices.chance(5) {
        writer.out.push('\u{FEFF}');
    }
    let fence = writer.wrapper();
    for number in 0..=writer.choices.below(3) {
        if fence.is_none() && (number > 0 || writer.choices.chance(50)) {
            writer.prose();
        }
        writer.indent();
        let start = writer.out.len();
        writer.block(grammar);
        blocks.push(start..writer.out.len());
        writer.after_block();
    }
    writer.out.push_str(fence.unwrap_or_default());
    Document {
        text: writer.out,
        blocks,
    }
}

/// Characters that mean nothing to XML in text, and some that look as if they did.
const PLAIN: &[&str] = &[
    "a",
    "b",
    "Z",
    "0",
    " ",
    " ",
    "  ",
    "\n",
    "\n    ",
    "\r\n",
    "\r",
    "\t",
    ">",
    "]",
    "]]",
    "'",
    "\"",
    "/>",
    "$",
    "$KARYI{X}",
    "$$KARYI{",
    "{",
    "}",
    "#",
    ";",
    "=",
    "-",
    "--",
    "-->",
    "!",
    "?",
    "?>",
    "é",
    "中",
    "😀",
    "“",
    "”",
    "\u{85}",
    "\u{2028}",
    "\u{7f}",
    "\u{FFFD}",
    "\u{10FFFF}",
    "\u{feff}",
    "```",
    "~~~",
    "lt;",
    "tools>",
    "%",
    "@",
];

const BACKSLASHES: &[&str] = &["\\n", "\\\\", "\\x1b", "\\u{e9}", "\\d", "\\"];

/// The same for text in which a backslash means something.
const ESCAPES: &[&str] = &["\\n", "\\\\", "\\x1b", "\\u{e9}", "\\d", "\\0"];

const REFERENCES: &[&str] = &[
    "&amp;",
    "&lt;",
    "&gt;",
    "&quot;",
    "&apos;",
    "&#65;",
    "&#x4e2d;",
    "&#x4E2D;",
    "&#13;",
    "&#10;",
    "&#9;",
    "&#32;",
    "&#0010;",
    "&#x1F600;",
    "&#x10FFFF;",
    "&#xFFFD;",
    "&#133;",
    "&#38;",
    "&#60;",
    "&#x5d;",
];

/// What only a CDATA section may hold.
const MARKUP: &[&str] = &[
    "<",
    "&",
    "<tools>",
    "</tools>",
    "</command>",
    "<command>",
    "</find>",
    "<replace>",
    "</edit>",
    "<find>",
    "</content>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<?x?>",
    "<!DOCTYPE a>",
    "&amp;",
    "&#0;",
    "&nbsp;",
    "$KARYI<A>",
    "</input><command>",
    "</ctrl>",
    "<a b='c'/>",
];

/// Prose of one line or more that runs nothing.
const PROSE: &[&str] = &[
    "Let me look.\n",
    "\n",
    "I use `<tools>` and </tools> & <b>tags</b>.\n",
    "- <tools><command>no</command></tools>\n",
    "> <tools>\n",
    "```sh\n<tools><command>no</command></tools>\n```\n",
    "  ````xml\n```\n<tools>\n````\n",
    "~~~\n<tools>\n```\n~~~~  \n",
    "<?xml version=\"1.0\"?>\r\n",
    "<!DOCTYPE tools [<!ENTITY a \"b\">]>\n",
    "中文 😀 {\"tools\": \"<tools>\"}\r",
    "`` a ``` b\n",
    "<toolsx> <tool>\n",
    "&amp; ]]> <![CDATA[ <!--\n",
];

/// Names of elements that an argument may hold.
const NAMES: &[&str] = &[
    "item", "entry", "a", "B", "_x.y-1", "k:v", "中文", "é", "tools", "command", "items",
];

struct Writer<'b> {
    choices: Choices<'b>,
    out: String,
    ids: usize,
}

impl Writer<'_> {
    /// Starts the one fence in which blocks run; returns its end.
    fn wrapper(&mut self) -> Option<&'static str> {
        if !self.choices.chance(10) {
            return None;
        }
        let info = self.choices.pick(&["xml", "", "ToolsXML", " tools "]);
        writeln!(self.out, "```{info}").unwrap();
        Some("\n```\nprose")
    }

    fn prose(&mut self) {
        self.out.push_str("So:\n");
        for _ in 0..self.choices.below(4) {
            self.out.push_str(self.choices.pick(PROSE));
        }
    }

    fn indent(&mut self) {
        self.out
            .push_str(self.choices.pick(&["", "  ", "\t", "\n "]));
    }

    fn after_block(&mut self) {
        let rest = [
            "\n",
            " and so on\n",
            "\r\n",
            " <tools><command>no</command></tools>\n",
        ];
        self.out.push_str(self.choices.pick(&rest));
    }

    fn block(&mut self, grammar: &Grammar) {
        let options = [
            [""; 2],
            ["order", "auto"],
            ["order", "sequential"],
            ["on_error", "continue"],
            ["on_error", "stop"],
            ["xml:space", "default"],
            ["xml:space", "preserve"],
        ];
        self.out.push_str("<tools");
        let mut given = String::new();
        for _ in 0..self.choices.below(3) {
            let [name, value] = self.choices.pick(&options);
            if name.is_empty() || given.contains(name) {
                continue;
            }
            given.push_str(name);
            self.attribute(name, |writer, _| writer.out.push_str(value));
        }
        self.space();
        self.out.push('>');
        self.between();
        for _ in 0..self.choices.below(5) {
            let tool = self.choices.below(grammar.tools.len());
            self.element(&grammar.tools[tool], true);
            self.between();
        }
        self.end_tag("tools");
    }

    fn element(&mut self, rule: &ElementRule, is_tool: bool) {
        let name = &rule.name;
        write!(self.out, "<{name}").unwrap();
        let parameters = match &rule.content {
            ContentRule::Parameters(parameters) => parameters.as_slice(),
            ContentRule::Leaf(_) | ContentRule::Empty | ContentRule::Children { .. } => &[],
        };
        let children = self.attributes(&rule.attributes, parameters, is_tool);
        match &rule.content {
            ContentRule::Empty => self.elements(name, |_| false),
            ContentRule::Leaf(kind) => self.leaf(name, *kind),
            ContentRule::Children { groups, min } => {
                let mut left = min + self.choices.below(3);
                self.elements(name, |writer| {
                    if left == 0 {
                        return false;
                    }
                    left -= 1;
                    let group = writer.choices.below(groups.len());
                    for rule in &groups[group] {
                        writer.between();
                        writer.element(rule, false);
                    }
                    true
                });
            }
            ContentRule::Parameters(_) => {
                let mut children = children.into_iter();
                self.elements(name, |writer| {
                    let Some(parameter) = children.next() else {
                        return false;
                    };
                    write!(writer.out, "<{}", parameter.name).unwrap();
                    match parameter.is_raw {
                        true => writer.leaf(&parameter.name, LeafKind::Text),
                        false => writer.value(&parameter.name, 0),
                    }
                    true
                });
            }
        }
    }

    /// Writes the attributes; returns the parameters that become children.
    fn attributes<'p>(
        &mut self,
        declared: &[AttributeRule],
        parameters: &'p [ParameterRule],
        is_tool: bool,
    ) -> Vec<&'p ParameterRule> {
        let mut names: Vec<&str> = Vec::new();
        let mut children = Vec::new();
        for parameter in parameters {
            match self
                .choices
                .below(if parameter.is_required { 2 } else { 3 })
            {
                0 => names.push(&parameter.name),
                1 => {
                    let count = 1 + self
                        .choices
                        .below(if parameter.is_repeated { 3 } else { 1 });
                    children.extend(std::iter::repeat_n(parameter, count));
                }
                _ => {}
            }
        }
        for attribute in declared {
            let is_parameter = parameters.iter().any(|p| p.name == attribute.name);
            if !is_parameter && (attribute.is_required || self.choices.chance(30)) {
                names.push(&attribute.name);
            }
        }
        let has_id = is_tool && self.choices.chance(20);
        names.extend(has_id.then_some("id"));
        self.choices.shuffle(&mut names);
        self.choices.shuffle(&mut children);
        for name in names {
            self.attribute(name, |writer, quote| match name {
                "id" => writer.id(),
                _ => writer.attribute_value(quote),
            });
        }
        children
    }

    /// Writes an id that no other call has.
    fn id(&mut self) {
        self.ids += 1;
        let before = self.choices.pick(&["x", "10000", "é&amp;", "0", " "]);
        write!(self.out, "{before}{}", self.ids).unwrap();
    }

    fn attribute(&mut self, name: &str, value: impl FnOnce(&mut Self, char)) {
        self.out
            .push_str(self.choices.pick(&[" ", "\n  ", "\t", " \r\n"]));
        self.out.push_str(name);
        self.space();
        self.out.push('=');
        self.space();
        let quote = self.choices.pick(&['"', '\'']);
        self.out.push(quote);
        value(self, quote);
        self.out.push(quote);
    }

    fn attribute_value(&mut self, quote: char) {
        for _ in 0..self.choices.below(5) {
            let piece = match self.choices.below(4) {
                0 | 1 => self.choices.pick(PLAIN),
                2 => self.choices.pick(REFERENCES),
                _ => self.choices.pick(BACKSLASHES),
            };
            match piece.contains(quote) {
                true => self.out.push_str("&#x27;"),
                false => self.out.push_str(piece),
            }
        }
    }

    /// Writes the rest of an element of which the tag is open, and whose text is a leaf's.
    fn leaf(&mut self, name: &str, kind: LeafKind) {
        let text = match kind {
            LeafKind::Word(is_known) => self.word(is_known),
            LeafKind::Text | LeafKind::Script => self.text(BACKSLASHES),
            LeafKind::Escaped => self.text(ESCAPES),
        };
        self.close_with_text(name, &text);
    }

    fn close_with_text(&mut self, name: &str, text: &str) {
        self.space();
        if text.is_empty() && self.choices.chance(50) {
            return self.out.push_str("/>");
        }
        self.out.push('>');
        self.out.push_str(text);
        self.end_tag(name);
    }

    fn word(&mut self, is_known: fn(&str) -> bool) -> String {
        let words = ["c", "a", "\\", "[", "enter", "esc", "up", "f1", "delete"];
        let words: Vec<&str> = words.into_iter().filter(|word| is_known(word)).collect();
        let word = self.choices.pick(&words);
        let word = match self.choices.below(4) {
            0 => word.to_owned(),
            1 => word.to_uppercase(),
            2 => format!("<![CDATA[{word}]]>"),
            _ => word
                .chars()
                .map(|c| format!("&#{};", u32::from(c)))
                .collect(),
        };
        let space = self.choices.pick(&["", " ", "\r\n", "&#32;"]);
        format!("{space}{word}{space}")
    }

    /// Returns text as XML allows it: characters, references, CDATA sections.
    fn text(&mut self, backslashes: &[&str]) -> String {
        let mut text = String::new();
        let mut run = String::new();
        for _ in 0..self.choices.below(7) {
            match self.choices.below(9) {
                0..=3 => run.push_str(self.choices.pick(PLAIN)),
                4 => run.push_str(self.choices.pick(backslashes)),
                5 | 6 => run.push_str(self.choices.pick(REFERENCES)),
                7 => run.push_str("    x\n"),
                _ => {
                    text.push_str(&run.replace("]]>", "]]&gt;"));
                    run.clear();
                    text.push_str(&self.cdata(backslashes));
                }
            }
        }
        text + &run.replace("]]>", "]]&gt;")
    }

    fn cdata(&mut self, backslashes: &[&str]) -> String {
        let mut body = String::new();
        for _ in 0..self.choices.below(5) {
            body.push_str(match self.choices.below(4) {
                0 | 1 => self.choices.pick(MARKUP),
                2 => self.choices.pick(PLAIN),
                _ => self.choices.pick(backslashes),
            });
        }
        format!("<![CDATA[{}]]>", body.replace("]]>", "]] >"))
    }

    /// Writes the rest of an argument of which the tag is open: text or elements.
    fn value(&mut self, name: &str, depth: usize) {
        if depth == 4 || !self.choices.chance(30) {
            let text = self.text(BACKSLASHES);
            return self.close_with_text(name, &text);
        }
        let mut left = 1 + self.choices.below(3);
        self.elements(name, |writer| {
            if left == 0 {
                return false;
            }
            left -= 1;
            let name = writer.choices.pick(NAMES);
            write!(writer.out, "<{name}").unwrap();
            let mut names = ["key", "x", "中", "xml:lang"];
            writer.choices.shuffle(&mut names);
            for attribute in &names[..writer.choices.below(3)] {
                writer.attribute(attribute, Self::attribute_value);
            }
            writer.value(name, depth + 1);
            true
        });
    }

    /// Writes the rest of an element that holds elements; `next` writes one more, or says no.
    fn elements(&mut self, name: &str, mut next: impl FnMut(&mut Self) -> bool) {
        self.space();
        let before = self.out.len();
        self.out.push('>');
        self.between();
        let mut is_empty = true;
        while next(self) {
            is_empty = false;
            self.between();
        }
        if is_empty && self.choices.chance(50) {
            self.out.truncate(before);
            return self.out.push_str("/>");
        }
        self.end_tag(name);
    }

    fn end_tag(&mut self, name: &str) {
        write!(self.out, "</{name}").unwrap();
        self.space();
        self.out.push('>');
    }

    /// Writes white space that a tag may hold.
    fn space(&mut self) {
        self.out
            .push_str(self.choices.pick(&["", "", "", " ", "\n", "\t \r\n"]));
    }

    /// Writes what may stand between elements.
    fn between(&mut self) {
        let pieces = [
            "",
            "",
            "",
            "\n  ",
            " ",
            "\r\n",
            "\r",
            "<!-- </tools> & <b> -->",
            "<!---->",
            "\n<!-- - > ]]> <![CDATA[ 中 -->\t",
            "<!--</command>--> <!--<tools>-->",
        ];
        self.out.push_str(self.choices.pick(&pieces));
    }
}
