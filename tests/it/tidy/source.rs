//! A Rust source as the tidy rules see it: its code without comments and strings, the paths that it names, and which of
//! its lines are tests.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A source file.
pub(super) struct Source {
    /// Path from the repository's root, with `/`.
    pub(super) path: String,
    /// The text as it stands.
    pub(super) text: String,
    tokens: Vec<Token>,
    test_lines: Vec<Range<usize>>,
}

/// A path such as `crate::store::Store`, with the line (from 1) that it starts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedPath {
    pub(super) line: usize,
    pub(super) segments: Vec<String>,
    /// How many inline modules it stands in: `super` climbs out of these first.
    pub(super) inline_depth: usize,
    /// Whether its module hands on what it names (`pub use`).
    pub(super) is_handed_on: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
}

impl Token {
    fn new(line: usize, text: &str) -> Self {
        Self {
            line,
            text: text.to_owned(),
        }
    }
}

impl Source {
    /// Reads `text`, the content of the file at `path`.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code: TokenStream = text.parse().expect("a source is made of tokens");
        let mut tokens = Vec::new();
        add_tokens(code, &mut tokens);
        let test_lines = test_modules(&tokens);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens,
            test_lines,
        }
    }

    /// Whether the whole file is a test's.
    pub(super) fn is_test_file(&self) -> bool {
        ["tests/", "benches/", "fuzz/"]
            .iter()
            .any(|folder| self.path.starts_with(folder))
            || ["/tests/", "/tests.rs", "/benches/"]
                .iter()
                .any(|part| self.path.contains(part))
    }

    /// Whether the line (from 1) is a test's.
    pub(super) fn is_test(&self, line: usize) -> bool {
        self.is_test_file() || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Whether the file lies in `folder`, or is the module file of that name beside it.
    pub(super) fn lies_in(&self, folder: &str) -> bool {
        self.path == folder
            || self.path == format!("{folder}.rs")
            || self
                .path
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
    }

    /// The lines where these tokens follow one another.
    pub(super) fn lines_with(&self, sequence: &[&str]) -> Vec<usize> {
        self.tokens
            .windows(sequence.len())
            .filter(|window| {
                window
                    .iter()
                    .zip(sequence)
                    .all(|(token, text)| token.text == *text)
            })
            .map(|window| window[0].line)
            .collect()
    }

    /// Every path of at least two segments, and every name that a `use` brings in, with `{…}` written out.
    pub(super) fn paths(&self) -> Vec<NamedPath> {
        let mut found = Vec::new();
        let mut blocks: Vec<bool> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let token = &self.tokens[at];
            match token.text.as_str() {
                "{" => blocks.push(at >= 2 && self.tokens[at - 2].text == "mod"),
                "}" => {
                    blocks.pop();
                }
                _ => {}
            }
            let used = at > 0 && self.tokens[at - 1].text == "use";
            let starts = is_name(&token.text)
                && (at == 0 || !matches!(self.tokens[at - 1].text.as_str(), "::" | "." | "mod" | "fn"));
            if starts || (used && token.text == "::") {
                let inline_depth = blocks.iter().filter(|is_module| **is_module).count();
                let is_handed_on = used && at > 1 && matches!(self.tokens[at - 2].text.as_str(), "pub" | ")");
                let mut named = Vec::new();
                at = self.path_at(at, &[], &mut named);
                found.extend(
                    named
                        .into_iter()
                        .filter(|path| used || path.segments.len() > 1)
                        .map(|path| NamedPath {
                            inline_depth,
                            is_handed_on,
                            ..path
                        }),
                );
            } else {
                at += 1;
            }
        }
        found
    }

    /// Reads the path, or the group of paths, that starts at a token; the token after it.
    fn path_at(&self, mut at: usize, before: &[String], found: &mut Vec<NamedPath>) -> usize {
        let mut segments = before.to_vec();
        let line = self.tokens[at].line;
        loop {
            let text = self.tokens.get(at).map_or("", |token| token.text.as_str());
            if text == "{" && !segments.is_empty() {
                at += 1;
                while self.tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = match self.tokens[at].text.as_str() {
                        "{" | "::" => self.path_at(at, &segments, found),
                        name if is_name(name) && name != "as" => self.path_at(at, &segments, found),
                        "as" => at + 2,
                        _ => at + 1,
                    };
                }
                return at + 1;
            }
            if is_name(text) {
                segments.push(text.to_owned());
                at += 1;
            }
            if self.tokens.get(at).is_some_and(|token| token.text == "::") {
                at += 1;
                let next = self.tokens.get(at).map_or("", |token| token.text.as_str());
                if next == "{" || is_name(next) {
                    continue;
                }
            }
            found.push(NamedPath {
                line,
                segments,
                inline_depth: 0,
                is_handed_on: false,
            });
            return at;
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Adds the tokens of some code. Comments are none, and the content of strings does not count.
fn add_tokens(code: TokenStream, tokens: &mut Vec<Token>) {
    let mut follows_colon = false;
    for tree in code {
        let line = tree.span().start().line;
        let is_colon = matches!(&tree, TokenTree::Punct(sign) if sign.as_char() == ':');
        let text = match &tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
                };
                tokens.push(Token::new(line, open));
                add_tokens(group.stream(), tokens);
                tokens.push(Token::new(group.span_close().start().line, close));
                follows_colon = false;
                continue;
            }
            TokenTree::Literal(_) => "\"".to_owned(),
            other => other.to_string(),
        };
        if is_colon && follows_colon {
            tokens.pop();
            tokens.push(Token::new(line, "::"));
            follows_colon = false;
        } else {
            tokens.push(Token::new(line, &text));
            follows_colon = is_colon;
        }
    }
}

/// The lines of modules under `#[cfg(test)]`.
fn test_modules(tokens: &[Token]) -> Vec<Range<usize>> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut found = Vec::new();
    for at in 0..tokens.len().saturating_sub(mark.len()) {
        if !mark
            .iter()
            .zip(&tokens[at..])
            .all(|(text, token)| token.text == *text)
        {
            continue;
        }
        let Some(open) = (at..tokens.len()).find(|at| matches!(tokens[*at].text.as_str(), "{" | ";")) else {
            continue;
        };
        let mut depth = 0;
        for token in &tokens[open..] {
            match token.text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                found.push(tokens[at].line..token.line + 1);
                break;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_of(text: &str) -> Vec<String> {
        Source::new("src/x.rs", text)
            .paths()
            .into_iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    #[test]
    fn groups_are_written_out_and_single_names_are_none() {
        assert_eq!(
            paths_of(
                "use crate::{store::{Store, Error as E}, clock};\nfn f(a: u32) { crate::access::key(a) }"
            ),
            [
                "crate::store::Store",
                "crate::store::Error",
                "crate::clock",
                "crate::access::key"
            ]
        );
        assert_eq!(
            paths_of("use scheduler as s;\nlet x: Vec::<u32> = a.b();"),
            ["scheduler", "Vec"][..1]
        );
    }

    #[test]
    fn what_stands_in_comments_and_strings_is_no_code() {
        let text = "// crate::a::b\n/* crate::c::d /* nested */ crate::e::f */\nlet s = \"crate::g::h \\\" \";\n\
                    let r = r#\"crate::i::j \" \"#; let c = '\"'; fn f<'a>(x: &'a str) { crate::k::l }";
        assert_eq!(paths_of(text), ["crate::k::l"]);
    }

    #[test]
    fn test_modules_are_told_from_the_rest() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("src/x.rs", text);
        let tests: Vec<bool> = (1..=6).map(|line| source.is_test(line)).collect();
        assert_eq!(tests, [false, true, true, true, true, false]);
    }
}
