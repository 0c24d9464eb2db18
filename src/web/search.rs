//! Reads the results of search engines: DuckDuckGo's page without scripts, and SearXNG's JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::references;
use super::tokens::{StartTag, Token, Tokens};
use karyi_net::WebUrl;

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchHit {
    /// Title, on one line.
    pub title: String,
    /// URL of the page.
    pub url: String,
    /// Excerpt, on one line; may be empty.
    pub snippet: String,
}

/// Answer that is no list of results: a question whether the reader is a program, or another page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoResultList {
    /// Engines that a server of SearXNG asked in vain.
    pub unresponsive: Vec<String>,
}

/// Reads DuckDuckGo's page. Advertisements are left out.
///
/// # Errors
/// The page is no list of results.
pub fn read_duckduckgo(html: &str, url: &WebUrl) -> Result<Vec<SearchHit>, NoResultList> {
    let mut reader = PageReader::default();
    for token in Tokens::of(html) {
        match token {
            Token::Start(tag) => reader.start(&tag, url),
            Token::Text(text) => reader.text(text),
            Token::End(name) => reader.end(&name),
        }
    }
    match reader.is_list {
        true => Ok(reader.hits),
        false => Err(NoResultList::default()),
    }
}

/// Reader of DuckDuckGo's page.
#[derive(Default)]
struct PageReader<'p> {
    hits: Vec<SearchHit>,
    /// True once something was read that only lists of results have.
    is_list: bool,
    /// True inside an advertisement: its title and its excerpt are dropped.
    is_advertisement: bool,
    /// Element whose text is read, and the number of open elements of its name.
    open: Option<(Cow<'p, str>, usize)>,
    is_title: bool,
    text: String,
}

impl<'p> PageReader<'p> {
    fn start(&mut self, tag: &StartTag<'p>, page: &WebUrl) {
        if let Some((name, depth)) = &mut self.open {
            if *name == tag.name {
                *depth += 1;
            }
            return;
        }
        self.is_list |= tag.has_class("no-results");
        if tag.has_class("result") {
            self.is_advertisement = tag.has_class("result--ad");
        }
        let is_title = tag.name == "a" && tag.has_class("result__a");
        if is_title {
            self.is_list = true;
            let target = tag.attribute("href").and_then(|href| target(&href, page));
            // Links of advertisements lead through this page.
            let target =
                target.filter(|url| !self.is_advertisement && !url.path().ends_with("/y.js"));
            self.is_advertisement = target.is_none();
            let url = target.map(|url| url.to_string()).unwrap_or_default();
            self.hits.push(SearchHit {
                url,
                ..SearchHit::default()
            });
        } else if !tag.has_class("result__snippet") {
            return;
        }
        self.is_title = is_title;
        self.text.clear();
        self.open = Some((tag.name.clone(), 1));
    }

    fn text(&mut self, text: &str) {
        if self.open.is_some() {
            self.text.push_str(&references::decode(text));
        }
    }

    fn end(&mut self, name: &str) {
        let Some((_, depth)) = self.open.as_mut().filter(|(open, _)| open == name) else {
            return;
        };
        *depth -= 1;
        if *depth > 0 {
            return;
        }
        self.open = None;
        let text = one_line(&self.text);
        if self.is_title && (self.is_advertisement || text.is_empty()) {
            self.hits.pop();
        } else if let Some(hit) = self.hits.last_mut().filter(|_| !self.is_advertisement) {
            match self.is_title {
                true => hit.title = text,
                false => hit.snippet = text,
            }
        }
    }
}

/// Returns the page that a result leads to; the engine's own link to it is decoded once.
fn target(reference: &str, page: &WebUrl) -> Option<WebUrl> {
    let url = page.join(reference).ok()?;
    match url.query_value("uddg").filter(|_| url.path() == "/l/") {
        Some(target) => WebUrl::parse(&target).ok(),
        None => Some(url),
    }
}

/// Answer of SearXNG.
#[derive(Deserialize)]
struct SearxngAnswer {
    results: Vec<SearxngResult>,
    /// Engines without an answer, each a list of its name and a reason.
    #[serde(default)]
    unresponsive_engines: Vec<Value>,
}

/// Result of SearXNG.
#[derive(Deserialize)]
struct SearxngResult {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

/// Reads SearXNG's JSON.
///
/// # Errors
/// It is no list of results: many servers permit their pages only. Or it is empty because engines did not answer.
pub fn read_searxng(json: &str) -> Result<Vec<SearchHit>, NoResultList> {
    let answer: SearxngAnswer = serde_json::from_str(json).map_err(|_| NoResultList::default())?;
    if answer.results.is_empty() && !answer.unresponsive_engines.is_empty() {
        let name = |engine: &Value| {
            let name = engine.get(0).unwrap_or(engine).as_str()?;
            Some(one_line(name).chars().take(40).collect())
        };
        let unresponsive = answer.unresponsive_engines.iter().filter_map(name).take(10);
        let unresponsive = unresponsive.collect();
        return Err(NoResultList { unresponsive });
    }
    let hit = |found: SearxngResult| {
        // A result of another kind, such as a magnet link, is none.
        let url = WebUrl::parse(&found.url?).ok()?.to_string();
        let title = one_line(&found.title.unwrap_or_default());
        let snippet = one_line(&found.content.unwrap_or_default());
        Some(SearchHit {
            title,
            url,
            snippet,
        })
    };
    Ok(answer.results.into_iter().filter_map(hit).collect())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shape of the page as of 2026: three results, of which one is an advertisement.
    const PAGE: &str = include_str!("search/duckduckgo.html");

    fn page(html: &str) -> Result<Vec<SearchHit>, NoResultList> {
        read_duckduckgo(
            html,
            &WebUrl::parse("https://html.duckduckgo.com/html/?q=x").unwrap(),
        )
    }

    fn hit(title: &str, url: &str, snippet: &str) -> SearchHit {
        SearchHit {
            title: title.into(),
            url: url.into(),
            snippet: snippet.into(),
        }
    }

    #[test]
    fn results_of_duckduckgo() {
        let expected = [
            hit(
                "Rust Programming Language",
                "https://www.rust-lang.org/",
                "A language empowering everyone to build reliable & efficient software.",
            ),
            hit(
                "Search for a+b",
                "https://example.com/?q=a%2Bb&x=%25",
                "The plus sign.",
            ),
        ];
        assert_eq!(page(PAGE), Ok(expected.to_vec()));
    }

    #[test]
    fn an_empty_list_is_a_list() {
        assert_eq!(
            page("<div class='no-results'>No results.</div>"),
            Ok(vec![])
        );
    }

    #[test]
    fn walls_and_other_pages_are_no_list() {
        let wall = "<form id=challenge-form action=//duckduckgo.com/anomaly.js><div class=anomaly-modal__title>\
                    Unfortunately, bots use DuckDuckGo too.</div></form>";
        for html in [
            wall,
            "",
            "<html><body><a href=/x>changed</a></body></html>",
            "{}",
        ] {
            assert_eq!(page(html), Err(NoResultList::default()), "{html}");
        }
    }

    #[test]
    fn a_broken_page_gives_what_can_be_read() {
        let found = page(
            "<div class=result><a class=result__a href=/x>T</a><a class=result__snippet>never ends",
        );
        assert_eq!(
            found,
            Ok(vec![hit("T", "https://html.duckduckgo.com/x", "")])
        );
        assert_eq!(
            page("<a class=result__a href='javascript:x'>T</a><a class=result__a href=/y> </a>"),
            Ok(vec![])
        );
    }

    #[test]
    fn results_of_searxng() {
        let json = r#"{"query": "x", "number_of_results": 0, "results": [
            {"url": "https://a.example/?q=1%2B1", "title": "A\n b", "content": "c  d", "engine": "e", "score": 1.0},
            {"url": "magnet:?x", "title": "M"}, {"url": "https://b.example/", "title": null}], "answers": []}"#;
        let expected = [
            hit("A b", "https://a.example/?q=1%2B1", "c d"),
            hit("", "https://b.example/", ""),
        ];
        assert_eq!(read_searxng(json), Ok(expected.to_vec()));
        assert_eq!(read_searxng(r#"{"results": []}"#), Ok(vec![]));
        for json in ["", "{}", "[]", "<html>"] {
            assert_eq!(read_searxng(json), Err(NoResultList::default()), "{json}");
        }
        // An instant answer has no URL.
        let json = r#"{"results": [{"title": "no url"}, {"url": "https://a/", "title": "A"}]}"#;
        assert_eq!(read_searxng(json), Ok(vec![hit("A", "https://a/", "")]));
        let json = r#"{"results": [], "unresponsive_engines": [["google", "CAPTCHA"], "bing"]}"#;
        let unresponsive = vec!["google".to_owned(), "bing".to_owned()];
        assert_eq!(read_searxng(json), Err(NoResultList { unresponsive }));
    }
}
