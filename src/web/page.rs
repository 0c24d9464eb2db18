//! Makes readable text of a page: headings, lists, rows of tables, and links with numbers.
//!
//! The open elements are a stack with a count of each name, so that an end tag costs no search. A deep page costs as
//! much as a flat one: what is repeated on every line is limited.

use std::borrow::Cow;
use std::collections::HashMap;

use karyi_core::limits;
use karyi_net::WebUrl;

use super::layout::{Gap, Layout};
use super::references;
use super::tokens::{StartTag, Token, Tokens};

/// Text of a page for a reader.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Title.
    pub title: Option<String>,
    /// Text. A link has its number in brackets behind it.
    pub text: String,
    /// Targets of the links; the first has the number 1.
    pub links: Vec<String>,
}

/// Open element.
struct Element<'p> {
    name: Cow<'p, str>,
    is_hidden: bool,
    /// Target of a link, and the length of the text at its start.
    link: Option<Box<(String, usize)>>,
    /// Number of the next item, in an ordered list.
    next_item: Option<u32>,
}

struct Reader<'p> {
    open: Vec<Element<'p>>,
    counts: HashMap<Cow<'p, str>, usize>,
    layout: Layout,
    base: WebUrl,
    has_base: bool,
    title: Option<String>,
    links: Vec<String>,
    numbers: HashMap<String, usize>,
}

/// Elements that have no end.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Elements whose text is not for readers.
const UNSEEN: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "canvas", "title", "iframe", "object",
    "noembed", "noframes", "datalist",
];
/// Elements that a following one of the same name ends.
const SIBLINGS: &[&str] = &["p", "li", "dt", "dd", "tr", "td", "th", "option"];
/// Elements on lines of their own.
const LINES: &[&str] = &[
    "div",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "nav",
    "aside",
    "form",
    "fieldset",
    "figure",
    "figcaption",
    "address",
    "details",
    "summary",
    "dt",
    "dd",
    "option",
    "legend",
    "caption",
    "tr",
    "li",
    "body",
    "hgroup",
    "search",
];
/// Elements with an empty line before and after them.
const PARAGRAPHS: &[&str] = &[
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "menu",
    "dl",
    "table",
    "blockquote",
    "pre",
];

/// Makes readable text of a page at a URL.
#[must_use]
pub fn read(html: &str, url: &WebUrl) -> Page {
    let mut reader = Reader {
        open: Vec::new(),
        counts: HashMap::new(),
        layout: Layout::default(),
        base: url.clone(),
        has_base: false,
        title: None,
        links: Vec::new(),
        numbers: HashMap::new(),
    };
    for token in Tokens::of(html) {
        match token {
            Token::Text(text) => reader.text(text),
            Token::Start(tag) => reader.start(tag),
            Token::End(name) => reader.end(&name),
        }
    }
    while let Some(element) = reader.open.pop() {
        reader.leave(element);
    }
    Page {
        title: reader.title,
        text: reader.layout.finish(),
        links: reader.links,
    }
}

impl<'p> Reader<'p> {
    fn is_hidden(&self) -> bool {
        self.open.last().is_some_and(|element| element.is_hidden)
    }

    fn is_in(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 0)
    }

    fn text(&mut self, text: &str) {
        if self.title.is_none()
            && self
                .open
                .last()
                .is_some_and(|element| element.name == "title")
            && !self.is_in("svg")
        {
            let title = references::decode(text);
            let title: Vec<&str> = title.split_whitespace().collect();
            let title = title
                .join(" ")
                .chars()
                .take(limits::MAX_PAGE_TITLE_CHARS)
                .collect();
            self.title = Some(title).filter(|title: &String| !title.is_empty());
        } else if !self.is_hidden() {
            let text = references::decode(text);
            match self.is_in("pre") {
                true => self.layout.exact(&text),
                false => self.layout.words(&text),
            }
        }
    }

    fn start(&mut self, tag: StartTag<'p>) {
        if SIBLINGS.contains(&&*tag.name)
            && self
                .open
                .last()
                .is_some_and(|element| element.name == tag.name)
            || is_block(&tag.name) && self.open.last().is_some_and(|element| element.name == "p")
        {
            self.close_last();
        }
        if tag.name == "a" {
            // A link ends where another begins.
            self.end("a");
        }
        let is_hidden = self.is_hidden() || UNSEEN.contains(&&*tag.name) || is_hidden(&tag);
        if VOID.contains(&&*tag.name) {
            if !is_hidden {
                self.void(&tag);
            } else if tag.name == "base" {
                self.base(&tag);
            }
            return;
        }
        if !is_hidden {
            self.enter(&tag.name);
        }
        let link = match &*tag.name {
            "a" if !is_hidden => self.target(tag.attribute("href")),
            _ => None,
        };
        if tag.name == "iframe"
            && !self.is_hidden()
            && let Some(target) = self.target(tag.attribute("src"))
        {
            let number = self.number(target);
            self.layout.words(&number);
        }
        let next_item = (tag.name == "ol").then(|| {
            let start = tag
                .attribute("start")
                .and_then(|start| start.trim().parse().ok());
            start.unwrap_or(1)
        });
        // Only drawings have elements that end at once.
        if tag.is_closed && self.is_in("svg") {
            return;
        }
        let link = link.map(|target| Box::new((target, self.layout.len())));
        *self.counts.entry(tag.name.clone()).or_default() += 1;
        self.open.push(Element {
            name: tag.name,
            is_hidden,
            link,
            next_item,
        });
    }

    fn end(&mut self, name: &str) {
        if name == "br" {
            return self.layout.line();
        }
        while self.is_in(name) {
            let is_found = self.open.last().is_some_and(|element| element.name == name);
            self.close_last();
            if is_found {
                break;
            }
        }
    }

    fn close_last(&mut self) {
        if let Some(element) = self.open.pop() {
            if let Some(count) = self.counts.get_mut(&element.name) {
                *count -= 1;
            }
            self.leave(element);
        }
    }

    /// Lays out the start of an element.
    fn enter(&mut self, name: &str) {
        let gap = self.gap(name);
        self.layout.gap(gap);
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name
                    .bytes()
                    .last()
                    .map_or(1, |digit| usize::from(digit - b'0'));
                self.layout.mark(&format!("{} ", "#".repeat(level)));
            }
            "li" => {
                let list = self.open.last_mut();
                match list.and_then(|list| list.next_item.as_mut()) {
                    Some(number) => {
                        self.layout.mark(&format!("{number}. "));
                        *number = number.saturating_add(1);
                    }
                    None => self.layout.mark("- "),
                }
            }
            "ul" | "ol" | "menu" => self.layout.indent("  "),
            "blockquote" => self.layout.indent("> "),
            "td" | "th" => self.layout.cell(),
            _ => {}
        }
    }

    /// Lays out the end of an element, and writes the number of its link.
    fn leave(&mut self, element: Element<'p>) {
        if element.is_hidden {
            return;
        }
        match &*element.name {
            "ul" | "ol" | "menu" | "blockquote" => self.layout.outdent(),
            // An item without a text leaves no sign.
            "li" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.layout.mark(""),
            _ => {}
        }
        if let Some(link) = element.link
            && self.layout.len() > link.1
        {
            let number = self.number(link.0);
            self.layout.suffix(&number);
        }
        let gap = self.gap(&element.name);
        self.layout.gap(gap);
    }

    fn gap(&self, name: &str) -> Gap {
        let is_list = matches!(name, "ul" | "ol" | "menu");
        if PARAGRAPHS.contains(&name) && !(is_list && self.is_in("li")) {
            Gap::Paragraph
        } else if is_block(name) {
            Gap::Line
        } else {
            Gap::None
        }
    }

    fn void(&mut self, tag: &StartTag<'p>) {
        match &*tag.name {
            "br" => self.layout.line(),
            "hr" => {
                self.layout.gap(Gap::Paragraph);
                self.layout.words("---");
                self.layout.gap(Gap::Paragraph);
            }
            "img" => {
                let text = tag.attribute("alt").unwrap_or_default();
                if !text.trim().is_empty() {
                    self.layout.words(&format!("(image: {})", text.trim()));
                }
            }
            "base" => self.base(tag),
            _ => {}
        }
    }

    /// Takes the first `<base>`, from which references go on.
    fn base(&mut self, tag: &StartTag<'p>) {
        if let Some(base) = tag.attribute("href").filter(|_| !self.has_base) {
            self.has_base = true;
            if let Ok(base) = self.base.join(base.trim()) {
                self.base = base;
            }
        }
    }

    /// Returns the URL that a link leads to; nothing for places in the page and other kinds of links.
    fn target(&self, reference: Option<Cow<'_, str>>) -> Option<String> {
        let reference = reference?;
        let reference = reference.trim();
        let is_elsewhere = !reference.is_empty() && !reference.starts_with('#');
        let url = is_elsewhere.then(|| self.base.join(reference).ok())?;
        url.map(|url| url.to_string())
    }

    /// Returns the number of a link in brackets; the same target has one number. Links beyond the limit have none.
    fn number(&mut self, target: String) -> String {
        let number = match self.numbers.get(&target) {
            Some(number) => *number,
            None if self.links.len() == limits::MAX_PAGE_LINKS => return String::new(),
            None => {
                self.links.push(target.clone());
                self.numbers.insert(target, self.links.len());
                self.links.len()
            }
        };
        format!("[{number}]")
    }
}

fn is_block(name: &str) -> bool {
    LINES.contains(&name) || PARAGRAPHS.contains(&name)
}

fn is_hidden(tag: &StartTag<'_>) -> bool {
    let style = tag.attribute("style").unwrap_or_default();
    let style: String = style.chars().filter(|sign| !sign.is_whitespace()).collect();
    tag.attribute("hidden").is_some()
        || tag
            .attribute("aria-hidden")
            .is_some_and(|value| value == "true")
        || style.to_ascii_lowercase().contains("display:none")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn page(html: &str) -> Page {
        read(html, &WebUrl::parse("https://h/dir/page").unwrap())
    }

    #[track_caller]
    fn check(html: &str, expected: &str) {
        assert_eq!(page(html).text, expected, "{html}");
    }

    #[test]
    fn paragraphs_and_headings() {
        check(
            "<head><title>T</title></head><h1>One</h1><p>a\n  b<br>c<p>d <b>e</b>, f<div>g</div>h",
            "# One\n\na b\nc\n\nd e, f\n\ng\nh",
        );
        check("<h3>x<h6>y", "### x\n\n###### y");
        check("a<hr>b", "a\n\n---\n\nb");
        check("a&nbsp;&lt;b&gt; &amp;amp;", "a <b> &amp;");
        check("  \n ", "");
    }

    #[test]
    fn lists_and_quotes() {
        check(
            "x<ul><li>a<li>b<ol start=3><li>c</li><li>d</li></ol><li>e</ul>y",
            "x\n\n- a\n- b\n  3. c\n  4. d\n- e\n\ny",
        );
        check("<blockquote><p>a<p>b</blockquote>c", "> a\n\n> b\n\nc");
        check("<dl><dt>t<dd>d</dl>", "t\nd");
    }

    #[test]
    fn rows_of_tables() {
        check(
            "<table><tr><th>a<th>b</tr><tr><td>1</td><td></td><td>3</td></table>z",
            "a | b\n1 | | 3\n\nz",
        );
    }

    #[test]
    fn texts_of_programs_keep_their_lines() {
        check(
            "a<pre>\n  b\n\n    c &lt;\n</pre>d",
            "a\n\n  b\n\n    c <\n\nd",
        );
    }

    #[test]
    fn what_readers_do_not_see_is_left_out() {
        check(
            "a<script>b</script><style>c</style><div hidden>d<p>e</div><span aria-hidden=true>f</span>\
             <p style='color: red; Display : none'>g</p><svg><path d=x /><text>h</text></svg><template>i</template>j",
            "aj",
        );
        check(
            "<ul><li hidden>a<li>b</ul><ul><li hidden>c</ul>d",
            "- b\n\nd",
        );
        check("<input hidden>a<img hidden alt=b>", "a");
        check("<noscript>a</noscript><textarea>b</textarea>", "b");
    }

    #[test]
    fn links_have_numbers() {
        let found = page(
            "<a href=a>A</a> and <a href='/b?x=1&amp;y=2'><b>B</b></a>, <a href=a>again</a> <a href='#x'>top</a> \
             <a href='javascript:x()'>js</a> <a href=mailto:a@b>mail</a> <a href=empty></a> \
             <a href=c><img alt=C></a><iframe src=//f/x>no</iframe>",
        );
        assert_eq!(
            found.text,
            "A[1] and B[2], again[1] top js mail (image: C)[3][4]"
        );
        assert_eq!(
            found.links,
            [
                "https://h/dir/a",
                "https://h/b?x=1&y=2",
                "https://h/dir/c",
                "https://f/x"
            ]
        );
    }

    #[test]
    fn links_are_absolute_by_the_base_and_at_most_fifty() {
        let found = page("<base href=/other/><base href=/no/><a href=x>x</a>");
        assert_eq!(found.links, ["https://h/other/x"]);
        let many: String = (0..60)
            .map(|number| format!("<a href={number}>n</a> "))
            .collect();
        let found = page(&many);
        assert_eq!(found.links.len(), 50);
        assert!(
            found.text.ends_with("n[50] n n n n n n n n n n"),
            "{}",
            found.text
        );
    }

    #[test]
    fn the_title_is_one_line() {
        assert_eq!(
            page("<title> A &amp;\n B </title>").title.as_deref(),
            Some("A & B")
        );
        assert_eq!(
            page("<svg><title>no</title></svg><title>yes</title>")
                .title
                .as_deref(),
            Some("yes")
        );
        assert_eq!(page("<title></title>").title, None);
    }

    #[test]
    fn broken_markup_is_read_all_the_same() {
        check("<p>a</div></p></p>b</span>", "a\n\nb");
        check("<b><p>a</b>b", "a\n\nb");
        check("a <b class=\"c", "a");
        check("<div><p>a", "a");
    }

    proptest! {
        /// Markup of any kind is read, and the text stays in proportion to it.
        #[test]
        fn any_markup_is_read(pieces in vec(select(PIECES), 0..200)) {
            let html = pieces.concat();
            let found = page(&html);
            prop_assert!(found.links.len() <= limits::MAX_PAGE_LINKS);
            prop_assert!(found.text.len() <= 100 + 20 * html.len(), "{html}: {}", found.text);
            prop_assert!(!found.text.contains("hidden"), "{html}: {}", found.text);
        }
    }

    const PIECES: &[&str] = &[
        "<p>",
        "</p>",
        "<ul>",
        "<li>",
        "</ul>",
        "<ol start=7>",
        "</ol>",
        "<a href=x>",
        "<a href=#y>",
        "</a>",
        "<pre>",
        "</pre>",
        "<table>",
        "<tr>",
        "<td>",
        "</table>",
        "<b>",
        "</b>",
        "<div>",
        "</div>",
        "<h2>",
        "</h2>",
        "<br>",
        "<blockquote>",
        "</blockquote>",
        "text",
        " ",
        "\n",
        "&amp;",
        "&",
        "< ",
        ">",
        "\"",
        "é",
        "<!-- hidden -->",
        "<script>hidden</script>",
        "<p hidden>hidden</p>",
        "<img alt=i>",
        "<base href=/z/>",
        "<title>t</title>",
        "<hr>",
    ];

    /// Each takes minutes where something is done for every open element or attribute.
    #[test]
    fn deep_pages_and_long_tags_are_read() {
        let deep = 100_000;
        for name in [
            "div",
            "b",
            "ul",
            "blockquote",
            "span hidden",
            "a href=x",
            "table",
            "li",
        ] {
            let start = format!("<{name}>").repeat(deep);
            let found = page(&format!("{start}text"));
            assert!(found.text.len() < 100, "{name}");
        }
        let attributes = page(&format!("<p {}>x", "a=1 ".repeat(300_000)));
        assert_eq!(attributes.text, "x");
        assert_eq!(page(&format!("<p {}", "x".repeat(10 << 20))).text, "");
        assert_eq!(page(&"</div>".repeat(deep)).text, "");
        assert_eq!(page(&"<!--".repeat(deep)).text, "");
        assert_eq!(page(&"<script>".repeat(deep)).text, "");
        assert_eq!(page(&"<".repeat(deep)).text.len(), deep);
        assert_eq!(page(&"&".repeat(deep)).text.len(), deep);
    }
}
