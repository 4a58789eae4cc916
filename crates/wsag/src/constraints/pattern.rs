//! Patterns of XML Schema (XML Schema 1.0, part 2, appendix F), matched by walking all ways at once.
//!
//! A pattern is compiled to states, and a value goes through them character by character with the set of the states that can be
//! reached. So a match never goes back, and each step of it is counted. Blocks of Unicode (`\p{IsGreek}`) are not known.

use std::sync::OnceLock;

use regex_syntax::hir::{Class as UnicodeClass, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use crate::constraints::path_parser::take_literal;
use crate::constraints::view::View;
use crate::xml::{is_name_char, is_name_start};

/// Most states of a pattern. Repetition multiplies them; a template or an offer may have some thousand patterns.
const STATES_MAX: usize = 1_000;
/// Deepest nesting of groups and of subtractions.
const NESTING_MAX: usize = 16;
/// The general categories of Unicode that characters have; no character is a surrogate (Cs).
const CATEGORIES: [&str; 36] = [
    "C", "Cc", "Cf", "Cn", "Co", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl",
    "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
];

/// A compiled pattern.
pub(super) struct Pattern {
    /// As it was written.
    text: String,
    states: Vec<PatternState>,
    classes: Vec<PatternClass>,
}

/// Other states are counted from the one that names them, so that a part of a pattern can be repeated as it is.
#[derive(Clone, Copy)]
enum PatternState {
    /// Takes a character of this class, and goes to the next state.
    Take(usize),
    /// Goes to the next state and to one further on.
    Split(usize),
    /// Goes to one further on.
    Jump(usize),
    /// Goes back to an earlier one.
    Back(usize),
    Accept,
}

/// A set of characters.
#[derive(Default)]
struct PatternClass {
    negated: bool,
    members: Vec<Member>,
    without: Option<Box<PatternClass>>,
}

enum Member {
    Range(char, char),
    Set(PatternSet),
    Outside(PatternSet),
}

/// The meaning of a letter after a backslash; its capital stands for all other characters.
#[derive(Clone, Copy)]
enum PatternSet {
    Space,
    NameStart,
    Name,
    Word,
    Category(&'static ClassUnicode),
}

/// Appends a part to the states of a pattern. Once there are too many there is no need of more.
fn add_pattern_states(states: &mut Vec<PatternState>, part: &[PatternState]) {
    if states.len() <= STATES_MAX {
        states.extend(part);
    }
}

/// The states of a choice of one of several parts.
fn choice_of_parts(parts: &[Vec<PatternState>]) -> Vec<PatternState> {
    let mut states = Vec::new();
    // The last part has no states around it.
    let mut to_end = parts.iter().map(|part| part.len() + 2).sum::<usize>();
    for part in parts {
        to_end -= part.len() + 2;
        if to_end == 0 {
            add_pattern_states(&mut states, part);
        } else {
            add_pattern_states(&mut states, &[PatternState::Split(part.len() + 2)]);
            add_pattern_states(&mut states, part);
            add_pattern_states(&mut states, &[PatternState::Jump(to_end - 1)]);
        }
    }
    states
}

/// A part from `least` to `most` times; without end where there is no `most`.
fn repeat_pattern_part(part: &[PatternState], least: usize, most: Option<usize>) -> Vec<PatternState> {
    let mut states = Vec::new();
    // A part without states takes nothing, however often it comes.
    if part.is_empty() {
        return states;
    }
    for _ in 0..least.min(STATES_MAX + 1) {
        add_pattern_states(&mut states, part);
    }
    if let Some(most) = most {
        for left in (1..=(most - least).min(STATES_MAX + 1)).rev() {
            add_pattern_states(&mut states, &[PatternState::Split(left * (part.len() + 1))]);
            add_pattern_states(&mut states, part);
        }
    } else {
        add_pattern_states(&mut states, &[PatternState::Split(part.len() + 2)]);
        add_pattern_states(&mut states, part);
        add_pattern_states(&mut states, &[PatternState::Back(part.len() + 1)]);
    }
    states
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(super) fn compile(text: &str) -> Result<Pattern, String> {
        let failed = |reason: String| format!("the pattern {text:?} cannot be evaluated: {reason}");
        let mut parser = PatternParser {
            rest: text,
            classes: Vec::new(),
        };
        let mut states = parser.choice(0).map_err(failed)?;
        if !parser.rest.is_empty() {
            return Err(failed(parser.unexpected("the end")));
        }
        if states.len() > STATES_MAX {
            return Err(failed(format!(
                "it has more than {STATES_MAX} states when its repetitions are written out"
            )));
        }
        states.push(PatternState::Accept);
        Ok(Pattern {
            text: text.to_owned(),
            states,
            classes: parser.classes,
        })
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether all of a value matches.
    ///
    /// # Errors
    /// Once it takes too long.
    pub(super) fn matches(&self, value: &str, view: &View<'_>) -> Result<bool, String> {
        // All states may be reached before the first character.
        view.charge(1 + self.states.len())?;
        // For each state the round in which it was last reached: a look costs the same however many there are.
        let mut last_seen = vec![0; self.states.len()];
        let mut reached = Vec::new();
        self.reach(0, (1, &mut last_seen), &mut reached);
        for (round, c) in (2..).zip(value.chars()) {
            view.charge(1 + reached.len())?;
            for state in std::mem::take(&mut reached) {
                if let PatternState::Take(class) = self.states[state]
                    && self.classes[class].has(c)
                {
                    self.reach(state + 1, (round, &mut last_seen), &mut reached);
                }
            }
            if reached.is_empty() {
                return Ok(false);
            }
        }
        let accepts = |state: &usize| matches!(self.states[*state], PatternState::Accept);
        Ok(reached.iter().any(accepts))
    }

    /// Adds a state in a round, and the states that it goes to without a character.
    fn reach(&self, state: usize, (round, last_seen): (usize, &mut [usize]), reached: &mut Vec<usize>) {
        let mut todo = vec![state];
        while let Some(state) = todo.pop() {
            if std::mem::replace(&mut last_seen[state], round) == round {
                continue;
            }
            reached.push(state);
            match self.states[state] {
                PatternState::Split(further) => todo.extend([state + further, state + 1]),
                PatternState::Jump(further) => todo.push(state + further),
                PatternState::Back(back) => todo.push(state - back),
                PatternState::Take(_) | PatternState::Accept => {}
            }
        }
    }
}

impl PatternClass {
    fn has(&self, c: char) -> bool {
        let has = |member: &Member| match member {
            Member::Range(first, last) => (*first..=*last).contains(&c),
            Member::Set(set) => set.has(c),
            Member::Outside(set) => !set.has(c),
        };
        self.members.iter().any(has) != self.negated
            && self.without.as_ref().is_none_or(|without| !without.has(c))
    }
}

impl PatternSet {
    fn has(self, c: char) -> bool {
        match self {
            PatternSet::Space => matches!(c, ' ' | '\t' | '\n' | '\r'),
            PatternSet::NameStart => c == ':' || is_name_start(c),
            PatternSet::Name => c == ':' || is_name_char(c),
            PatternSet::Word => !["P", "Z", "C"]
                .iter()
                .filter_map(|name| category_of_pattern(name))
                .any(|set| set.has(c)),
            PatternSet::Category(ranges) => {
                let ranges = ranges.ranges();
                let after = ranges.partition_point(|range| range.end() < c);
                ranges.get(after).is_some_and(|range| range.start() <= c)
            }
        }
    }
}

/// The characters of a general category, by its usual name.
fn category_of_pattern(name: &str) -> Option<PatternSet> {
    static TABLES: [OnceLock<ClassUnicode>; CATEGORIES.len()] = [const { OnceLock::new() }; CATEGORIES.len()];
    let index = CATEGORIES.iter().position(|known| *known == name)?;
    Some(PatternSet::Category(TABLES[index].get_or_init(|| {
        let parsed = regex_syntax::parse(&format!(r"\p{{{name}}}")).map(Hir::into_kind);
        match parsed {
            Ok(HirKind::Class(UnicodeClass::Unicode(class))) => class,
            // Of one character.
            Ok(HirKind::Literal(literal)) => {
                let text = std::str::from_utf8(&literal.0).unwrap_or_default();
                ClassUnicode::new(text.chars().map(|c| ClassUnicodeRange::new(c, c)))
            }
            // A test goes through all of them.
            _ => ClassUnicode::empty(),
        }
    })))
}

struct PatternParser<'t> {
    rest: &'t str,
    classes: Vec<PatternClass>,
}

impl PatternParser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, literal: &str) -> bool {
        take_literal(&mut self.rest, literal)
    }

    fn require(&mut self, literal: &str) -> Result<(), String> {
        if self.take(literal) {
            return Ok(());
        }
        Err(self.unexpected(literal))
    }

    fn unexpected(&self, expected: &str) -> String {
        match self.peek() {
            Some(c) => format!("{expected} is expected and not {c:?}"),
            None => format!("{expected} is expected at its end"),
        }
    }

    /// Branches with `|` between them.
    fn choice(&mut self, nesting: usize) -> Result<Vec<PatternState>, String> {
        if nesting > NESTING_MAX {
            return Err(format!("groups may be nested {NESTING_MAX} deep at most"));
        }
        let mut branches = vec![self.branch(nesting)?];
        while self.take("|") {
            branches.push(self.branch(nesting)?);
        }
        Ok(choice_of_parts(&branches))
    }

    fn branch(&mut self, nesting: usize) -> Result<Vec<PatternState>, String> {
        let mut states = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let part = self.atom(nesting)?;
            add_pattern_states(&mut states, &self.quantified(part)?);
        }
        Ok(states)
    }

    fn atom(&mut self, nesting: usize) -> Result<Vec<PatternState>, String> {
        if matches!(
            self.peek(),
            None | Some('?' | '*' | '+' | ')' | ']' | '{' | '}' | '|')
        ) {
            return Err(self.unexpected("a character, a class or a group"));
        }
        let class = if self.take("(") {
            let part = self.choice(nesting + 1)?;
            return self.require(")").map(|()| part);
        } else if self.take("[") {
            self.class(nesting + 1)?
        } else if self.take(".") {
            PatternClass {
                negated: true,
                members: vec![Member::Range('\n', '\n'), Member::Range('\r', '\r')],
                without: None,
            }
        } else {
            PatternClass {
                members: vec![self.character()?],
                ..PatternClass::default()
            }
        };
        self.classes.push(class);
        Ok(vec![PatternState::Take(self.classes.len() - 1)])
    }

    fn quantified(&mut self, part: Vec<PatternState>) -> Result<Vec<PatternState>, String> {
        let (least, most) = if self.take("?") {
            (0, Some(1))
        } else if self.take("*") {
            (0, None)
        } else if self.take("+") {
            (1, None)
        } else if self.take("{") {
            let least = self.number()?;
            let most = match (self.take(","), self.peek()) {
                (false, _) => Some(least),
                (true, Some('}')) => None,
                (true, _) => Some(self.number()?),
            };
            self.require("}")?;
            if most.is_some_and(|most| most < least) {
                return Err("a repetition ends below its start".to_owned());
            }
            (least, most)
        } else {
            return Ok(part);
        };
        Ok(repeat_pattern_part(&part, least, most))
    }

    fn number(&mut self) -> Result<usize, String> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        let number = number
            .parse()
            .map_err(|_| self.unexpected("a number that is not too large"))?;
        self.rest = rest;
        Ok(number)
    }

    /// The part after a backslash.
    fn escaped(&mut self) -> Result<Member, String> {
        let Some(c) = self.next() else {
            return Err("a backslash stands at its end".to_owned());
        };
        let set = match c {
            'n' => return Ok(Member::Range('\n', '\n')),
            'r' => return Ok(Member::Range('\r', '\r')),
            't' => return Ok(Member::Range('\t', '\t')),
            '\\' | '|' | '.' | '-' | '^' | '?' | '*' | '+' | '{' | '}' | '(' | ')' | '[' | ']' => {
                return Ok(Member::Range(c, c));
            }
            's' | 'S' => PatternSet::Space,
            'i' | 'I' => PatternSet::NameStart,
            'c' | 'C' => PatternSet::Name,
            'w' | 'W' => PatternSet::Word,
            'd' | 'D' => category_of_pattern("Nd").ok_or("digits are not known")?,
            'p' | 'P' => {
                let closed = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let (name, rest) = closed.ok_or_else(|| self.unexpected("a category in braces"))?;
                let known = category_of_pattern(name);
                let set = known.ok_or_else(|| {
                    format!("{name:?} is no general category of Unicode; blocks are not known")
                })?;
                self.rest = rest;
                set
            }
            _ => return Err(format!("\\{c} is not known")),
        };
        Ok(if c.is_ascii_uppercase() {
            Member::Outside(set)
        } else {
            Member::Set(set)
        })
    }

    /// A class after its opening bracket.
    fn class(&mut self, nesting: usize) -> Result<PatternClass, String> {
        if nesting > NESTING_MAX {
            return Err(format!("classes may be nested {NESTING_MAX} deep at most"));
        }
        let mut class = PatternClass {
            negated: self.take("^"),
            ..PatternClass::default()
        };
        loop {
            if !class.members.is_empty() {
                if self.take("-[") {
                    class.without = Some(Box::new(self.class(nesting + 1)?));
                    return self.require("]").map(|()| class);
                }
                if self.take("]") {
                    return Ok(class);
                }
            }
            let is_hyphen = self.peek() == Some('-');
            if is_hyphen && !class.members.is_empty() && !self.rest.starts_with("-]") {
                return Err("in a class - stands between two characters, or first, or last".to_owned());
            }
            let first = self.member()?;
            // A hyphen that is followed by the end or by a subtraction is none of a range.
            let ranges =
                self.rest.starts_with('-') && !self.rest.starts_with("-]") && !self.rest.starts_with("-[");
            class.members.push(match first {
                Member::Range(from, _) if ranges && !is_hyphen => {
                    self.next();
                    match self.member()? {
                        Member::Range(to, _) if from <= to => Member::Range(from, to),
                        _ => return Err("a range of characters ends below its start".to_owned()),
                    }
                }
                other => other,
            });
        }
    }

    /// A character or a set in a class.
    fn member(&mut self) -> Result<Member, String> {
        if matches!(self.peek(), None | Some('[' | ']')) {
            return Err(self.unexpected("a character of a class"));
        }
        self.character()
    }

    /// The next character, or the set that it stands for after a backslash.
    fn character(&mut self) -> Result<Member, String> {
        if self.take("\\") {
            return self.escaped();
        }
        let c = self.next().ok_or_else(|| self.unexpected("a character"))?;
        Ok(Member::Range(c, c))
    }
}
