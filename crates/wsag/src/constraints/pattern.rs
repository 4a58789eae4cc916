//! Patterns of XML Schema (XML Schema 1.0, part 2, appendix F), matched by walking all ways at once.
//!
//! A pattern is compiled to states, and a value goes through them character by character with the set of the states that can be
//! reached. So a match never goes back, and each step of it is counted. Blocks of Unicode (`\p{IsGreek}`) are not known.

use std::sync::OnceLock;

use regex_syntax::hir::{Class as UnicodeClass, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use crate::constraints::steps::View;
use crate::guard::{is_name_char, is_name_start};

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
    states: Vec<State>,
    classes: Vec<Class>,
}

#[derive(Clone, Copy)]
enum State {
    /// Takes a character of this class, and goes to the next state.
    Take(usize),
    /// Goes to the next state and to this one.
    Split(usize),
    Jump(usize),
    Accept,
}

/// A set of characters.
struct Class {
    negated: bool,
    members: Vec<Member>,
    without: Option<Box<Class>>,
}

enum Member {
    Range(char, char),
    Set(Set),
    Outside(Set),
}

/// The meaning of a letter after a backslash; its capital stands for all other characters.
#[derive(Clone, Copy)]
enum Set {
    Space,
    NameStart,
    Name,
    Word,
    Category(&'static ClassUnicode),
}

/// A part of a pattern.
enum Part {
    Class(usize),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Repeat(Box<Part>, usize, Option<usize>),
}

impl Part {
    /// Whether it has no states: it takes nothing, however often it comes.
    fn is_nothing(&self) -> bool {
        match self {
            Part::Class(_) | Part::Choice(_) => false,
            Part::Sequence(parts) => parts.is_empty(),
            Part::Repeat(part, _, most) => *most == Some(0) || part.is_nothing(),
        }
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Why it cannot be evaluated.
    pub(super) fn compile(text: &str) -> Result<Pattern, String> {
        let failed = |reason: String| format!("the pattern {text:?} cannot be evaluated: {reason}");
        let mut parser = Parser {
            rest: text,
            classes: Vec::new(),
        };
        let part = parser.choice(0).map_err(failed)?;
        if !parser.rest.is_empty() {
            return Err(failed(parser.unexpected("the end")));
        }
        let mut pattern = Pattern {
            text: text.to_owned(),
            states: Vec::new(),
            classes: parser.classes,
        };
        pattern.emit(&part).map_err(failed)?;
        pattern.push(State::Accept).map_err(failed)?;
        Ok(pattern)
    }

    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn push(&mut self, state: State) -> Result<usize, String> {
        if self.states.len() > STATES_MAX {
            return Err(format!(
                "it has more than {STATES_MAX} states when its repetitions are written out"
            ));
        }
        self.states.push(state);
        Ok(self.states.len() - 1)
    }

    fn emit(&mut self, part: &Part) -> Result<(), String> {
        match part {
            Part::Class(class) => drop(self.push(State::Take(*class))?),
            Part::Sequence(parts) => {
                for part in parts {
                    self.emit(part)?;
                }
            }
            Part::Choice(parts) => {
                let mut ends = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    if index + 1 == parts.len() {
                        self.emit(part)?;
                        break;
                    }
                    let split = self.push(State::Split(0))?;
                    self.emit(part)?;
                    ends.push(self.push(State::Jump(0))?);
                    self.states[split] = State::Split(self.states.len());
                }
                for end in ends {
                    self.states[end] = State::Jump(self.states.len());
                }
            }
            Part::Repeat(part, least, most) => self.emit_repeat(part, *least, *most)?,
        }
        Ok(())
    }

    fn emit_repeat(&mut self, part: &Part, least: usize, most: Option<usize>) -> Result<(), String> {
        for _ in 0..least {
            self.emit(part)?;
        }
        let Some(most) = most else {
            let split = self.push(State::Split(0))?;
            self.emit(part)?;
            self.push(State::Jump(split))?;
            self.states[split] = State::Split(self.states.len());
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(State::Split(0))?);
            self.emit(part)?;
        }
        for split in splits {
            self.states[split] = State::Split(self.states.len());
        }
        Ok(())
    }

    /// Whether all of a value matches.
    ///
    /// # Errors
    /// Once it takes too long.
    pub(super) fn matches(&self, value: &str, view: &View<'_>) -> Result<bool, String> {
        // All states may be reached before the first character.
        view.charge(1 + self.states.len())?;
        let mut reached = Reached {
            states: Vec::new(),
            // Zero is before the first round.
            last_seen: vec![0; self.states.len()],
            round: 1,
        };
        reached.add(0, &self.states);
        for c in value.chars() {
            view.charge(1 + reached.states.len())?;
            let before = std::mem::take(&mut reached.states);
            reached.round += 1;
            for state in before {
                if let State::Take(class) = self.states[state]
                    && self.classes[class].has(c)
                {
                    reached.add(state + 1, &self.states);
                }
            }
            if reached.states.is_empty() {
                return Ok(false);
            }
        }
        let accepts = |state: &usize| matches!(self.states[*state], State::Accept);
        Ok(reached.states.iter().any(accepts))
    }
}

/// The states that can be reached so far.
struct Reached {
    states: Vec<usize>,
    last_seen: Vec<usize>,
    round: usize,
}

impl Reached {
    /// Adds a state, and the states that it goes to without a character.
    fn add(&mut self, state: usize, states: &[State]) {
        let mut todo = vec![state];
        while let Some(state) = todo.pop() {
            if self.last_seen[state] == self.round {
                continue;
            }
            self.last_seen[state] = self.round;
            self.states.push(state);
            match states[state] {
                State::Split(other) => todo.extend([other, state + 1]),
                State::Jump(other) => todo.push(other),
                State::Take(_) | State::Accept => {}
            }
        }
    }
}

impl Class {
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

impl Set {
    fn has(self, c: char) -> bool {
        match self {
            Set::Space => matches!(c, ' ' | '\t' | '\n' | '\r'),
            Set::NameStart => c == ':' || is_name_start(c),
            Set::Name => c == ':' || is_name_char(c),
            Set::Word => !["P", "Z", "C"]
                .iter()
                .filter_map(|name| category(name))
                .any(|set| set.has(c)),
            Set::Category(ranges) => {
                let ranges = ranges.ranges();
                let after = ranges.partition_point(|range| range.end() < c);
                ranges.get(after).is_some_and(|range| range.start() <= c)
            }
        }
    }
}

/// The characters of a general category, by its usual name.
fn category(name: &str) -> Option<Set> {
    static TABLES: [OnceLock<ClassUnicode>; CATEGORIES.len()] = [const { OnceLock::new() }; CATEGORIES.len()];
    let index = CATEGORIES.iter().position(|known| *known == name)?;
    Some(Set::Category(TABLES[index].get_or_init(|| {
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

struct Parser<'t> {
    rest: &'t str,
    classes: Vec<Class>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, literal: &str) -> bool {
        let rest = self.rest.strip_prefix(literal);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn unexpected(&self, expected: &str) -> String {
        match self.peek() {
            Some(c) => format!("{expected} is expected and not {c:?}"),
            None => format!("{expected} is expected at its end"),
        }
    }

    /// Branches with `|` between them.
    fn choice(&mut self, nesting: usize) -> Result<Part, String> {
        if nesting > NESTING_MAX {
            return Err(format!("groups may be nested {NESTING_MAX} deep at most"));
        }
        let mut branches = vec![self.branch(nesting)?];
        while self.take("|") {
            branches.push(self.branch(nesting)?);
        }
        Ok(match branches.pop() {
            Some(only) if branches.is_empty() => only,
            last => {
                branches.extend(last);
                Part::Choice(branches)
            }
        })
    }

    fn branch(&mut self, nesting: usize) -> Result<Part, String> {
        let mut parts = Vec::new();
        while !matches!(self.peek(), None | Some('|' | ')')) {
            let part = self.atom(nesting)?;
            let part = self.quantified(part)?;
            // Every part that is kept has a state, so that the bound of states is one of the work of writing them out too.
            if !part.is_nothing() {
                parts.push(part);
            }
        }
        Ok(Part::Sequence(parts))
    }

    fn atom(&mut self, nesting: usize) -> Result<Part, String> {
        let member = match self.peek() {
            Some('(') => {
                self.next();
                let part = self.choice(nesting + 1)?;
                return if self.take(")") {
                    Ok(part)
                } else {
                    Err(self.unexpected(")"))
                };
            }
            Some('[') => {
                self.next();
                let class = self.class(nesting + 1)?;
                return Ok(self.part(class));
            }
            Some('.') => {
                self.next();
                let negated = Class {
                    negated: true,
                    members: vec![Member::Range('\n', '\n'), Member::Range('\r', '\r')],
                    without: None,
                };
                return Ok(self.part(negated));
            }
            Some('\\') => {
                self.next();
                self.escaped()?
            }
            None | Some('?' | '*' | '+' | ')' | ']' | '{' | '}' | '|') => {
                return Err(self.unexpected("a character, a class or a group"));
            }
            Some(c) => {
                self.next();
                Member::Range(c, c)
            }
        };
        Ok(self.part(Class {
            negated: false,
            members: vec![member],
            without: None,
        }))
    }

    fn part(&mut self, class: Class) -> Part {
        self.classes.push(class);
        Part::Class(self.classes.len() - 1)
    }

    fn quantified(&mut self, part: Part) -> Result<Part, String> {
        let (least, most) = match self.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.next();
                let least = self.number()?;
                let most = if !self.take(",") {
                    Some(least)
                } else if self.peek() == Some('}') {
                    None
                } else {
                    Some(self.number()?)
                };
                if self.peek() != Some('}') {
                    return Err(self.unexpected("}"));
                }
                if most.is_some_and(|most| most < least) {
                    return Err("a repetition ends below its start".to_owned());
                }
                (least, most)
            }
            _ => return Ok(part),
        };
        self.next();
        Ok(Part::Repeat(Box::new(part), least, most))
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
            's' | 'S' => Set::Space,
            'i' | 'I' => Set::NameStart,
            'c' | 'C' => Set::Name,
            'w' | 'W' => Set::Word,
            'd' | 'D' => category("Nd").ok_or("digits are not known")?,
            'p' | 'P' => {
                let closed = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let (name, rest) = closed.ok_or_else(|| self.unexpected("a category in braces"))?;
                let known = category(name);
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
    fn class(&mut self, nesting: usize) -> Result<Class, String> {
        if nesting > NESTING_MAX {
            return Err(format!("classes may be nested {NESTING_MAX} deep at most"));
        }
        let mut class = Class {
            negated: self.take("^"),
            members: Vec::new(),
            without: None,
        };
        loop {
            if !class.members.is_empty() {
                if self.take("-[") {
                    class.without = Some(Box::new(self.class(nesting + 1)?));
                    return if self.take("]") {
                        Ok(class)
                    } else {
                        Err(self.unexpected("]"))
                    };
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
        match self.peek() {
            Some('\\') => {
                self.next();
                self.escaped()
            }
            None | Some('[' | ']') => Err(self.unexpected("a character of a class")),
            Some(c) => {
                self.next();
                Ok(Member::Range(c, c))
            }
        }
    }
}
