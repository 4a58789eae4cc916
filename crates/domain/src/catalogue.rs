//! The provider's applications, which an offer may ask to run, with their typed, bounded arguments. Pure values. A requester
//! never supplies a command line. Each argument is checked here and handed on as one element of an argument vector. It cannot
//! begin with `-` unless it is a number that the provider allows to be negative.

mod character_set;
mod checkpoint;
mod isolation;
mod limits;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::Deserialize;

pub use character_set::CharacterSet;

pub use checkpoint::{Checkpoint, CheckpointSignal};
pub use isolation::Isolation;
pub use limits::{JobLimits, LimitKeys};

/// Applications in a catalogue: enough for any provider, and small enough to be searched and shown whole.
const APPLICATIONS_MAX: usize = 1_000;
/// Arguments of an application, so that an argument vector stays far below every system's limit.
const ARGUMENTS_MAX: usize = 64;
/// Characters in a text argument or a choice; 64 of them stay far below every system's limit.
const TEXT_LENGTH_MAX: usize = 1_024;
/// The most bytes in the name of a file on Unix file systems.
const FILE_NAME_LENGTH_MAX: usize = 255;
/// The longest sleep of the built-in application, in seconds: a week.
const SLEEP_SECONDS_MAX: i64 = 86_400 * 7;

/// A program that a provider offers to run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    applications: Vec<Application>,
}

/// An application of the provider. Made from `[[application]]` of the configuration, and checked as it is read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "ApplicationKeys")]
pub struct Application {
    /// The name that an offer gives.
    pub name: String,
    /// The version that an offer may give; `None` where the provider has only one.
    pub version: Option<String>,
    /// Its purpose, for people choosing one.
    pub description: String,
    /// The program, by its absolute path.
    pub program: PathBuf,
    /// Its arguments, in their order; all are required.
    pub arguments: Vec<ArgumentSpec>,
    /// The limits of each of its jobs, where they differ from those of the resource.
    pub limits: JobLimits,
    /// How it saves its work and goes on with it, where it can: its work may be done in pieces then.
    pub checkpoint: Option<Checkpoint>,
    /// What its jobs on this machine see besides their own files; none where the provider trusts it, so that they run as the service
    /// does.
    pub isolation: Option<Isolation>,
}

/// An argument of an application.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "ArgumentKeys")]
pub struct ArgumentSpec {
    /// Its name in forms and messages.
    pub name: String,
    /// The values that it may have.
    pub kind: ArgumentKind,
}

/// The type of an argument with its bounds.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentKind {
    /// A whole number, both bounds included, in decimal and without leading zeros.
    Integer(RangeInclusive<i64>),
    /// A decimal number, both bounds included.
    Number(RangeInclusive<f64>),
    /// A text of at least one character.
    Text {
        /// Characters at most.
        max_length: usize,
        /// The characters that it may hold; `None` allows every one that is not a control character.
        characters: Option<CharacterSet>,
    },
    /// One of these.
    Choice(Vec<String>),
    /// The name of a file in the provider's data folder, without a path.
    File,
}

/// An argument that its application does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("argument {} of {application}: expected {expected}", index + 1)]
pub struct ArgumentError {
    /// The application.
    pub application: String,
    /// Its place, from 0; the number of arguments given where one is missing.
    pub index: usize,
    /// The value that was expected there.
    pub expected: String,
}

/// An invalid catalogue, application or argument: the key of the configuration and the value that it should hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CatalogueError(String);

impl Catalogue {
    /// A catalogue of these applications.
    ///
    /// # Errors
    /// Two applications with the same name and version, or too many.
    pub fn new(applications: Vec<Application>) -> Result<Self, CatalogueError> {
        if applications.len() > APPLICATIONS_MAX {
            return Err(CatalogueError(format!(
                "application: expected at most {APPLICATIONS_MAX} of them"
            )));
        }
        let mut seen = BTreeSet::new();
        for application in &applications {
            if !seen.insert((&application.name, &application.version)) {
                return Err(CatalogueError(format!(
                    "application `{}`: name: expected each name and version once",
                    application.name
                )));
            }
        }
        Ok(Self { applications })
    }

    /// The applications that every provider can offer, `sleep` and `sha256sum`, where `find_program` finds their
    /// programs.
    pub fn built_in(find_program: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let seconds = ArgumentKind::Integer(0..=SLEEP_SECONDS_MAX);
        let applications = [
            ("sleep", "Waits for a number of seconds.", "seconds", seconds),
            (
                "sha256sum",
                "Prints the SHA-256 checksum of a file.",
                "file",
                ArgumentKind::File,
            ),
        ];
        let applications = applications
            .into_iter()
            .filter_map(|(name, description, argument, kind)| {
                Some(Application {
                    name: name.into(),
                    version: None,
                    description: description.into(),
                    program: find_program(name)?,
                    arguments: vec![ArgumentSpec {
                        name: argument.into(),
                        kind,
                    }],
                    limits: JobLimits::default(),
                    checkpoint: None,
                    // Programs of the system that read their argument and nothing else.
                    isolation: None,
                })
            });
        Self {
            applications: applications.collect(),
        }
    }

    /// The applications, in the provider's order.
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// The application of that name and version; without a version, the first of that name.
    pub fn find(&self, name: &str, version: Option<&str>) -> Option<&Application> {
        self.applications.iter().find(|application| {
            application.name == name && (version.is_none() || application.version.as_deref() == version)
        })
    }
}

impl Application {
    /// Checks the arguments of an offer; `has_file` says whether the provider's data folder has a file of that name.
    ///
    /// # Errors
    /// The first argument that is missing, too many, of the wrong type, out of bounds, or names no file.
    pub fn check(&self, arguments: &[String], has_file: impl Fn(&str) -> bool) -> Result<(), ArgumentError> {
        for (index, spec) in self.arguments.iter().enumerate() {
            let wrong = |expected| self.wrong_argument(index, expected);
            let argument = arguments.get(index).ok_or_else(|| wrong(spec.to_string()))?;
            if !spec.kind.admits(argument) {
                return Err(wrong(spec.to_string()));
            }
            if spec.kind == ArgumentKind::File && !has_file(argument) {
                return Err(wrong(format!("{spec}; it has no file of this name")));
            }
        }
        if arguments.len() > self.arguments.len() {
            let index = self.arguments.len();
            let expected = match index {
                1 => "no more than 1 argument".to_owned(),
                _ => format!("no more than {index} arguments"),
            };
            return Err(self.wrong_argument(index, expected));
        }
        Ok(())
    }

    fn wrong_argument(&self, index: usize, expected: String) -> ArgumentError {
        ArgumentError {
            application: self.name.clone(),
            index,
            expected,
        }
    }

    /// Those of its checked arguments that name files of the provider's data folder.
    pub fn files<'a>(&self, arguments: &'a [String]) -> Vec<&'a str> {
        let files = self
            .arguments
            .iter()
            .zip(arguments)
            .filter(|(spec, _)| spec.kind == ArgumentKind::File);
        files.map(|(_, argument)| argument.as_str()).collect()
    }
}

impl ArgumentKind {
    /// Whether an argument is of this type and within its bounds.
    fn admits(&self, argument: &str) -> bool {
        match self {
            Self::Integer(bounds) => argument
                .parse::<i64>()
                .is_ok_and(|number| bounds.contains(&number) && number.to_string() == argument),
            Self::Number(bounds) => {
                parse_decimal_argument(argument).is_some_and(|number| bounds.contains(&number))
            }
            Self::Text {
                max_length,
                characters,
            } => {
                is_plain_text(argument)
                    && argument.chars().count() <= *max_length
                    && match characters {
                        Some(set) => argument.chars().all(|one| set.contains(one)),
                        // Nor can it be a path, which would lead out of the job's folder.
                        None => argument != ".." && !argument.contains('/'),
                    }
            }
            Self::Choice(values) => values.iter().any(|value| value == argument),
            Self::File => is_file_name(argument),
        }
    }
}

/// Reads `-?digits[.digits]`: no sign but `-`, no exponent, no infinity and nothing that a program might take for an
/// option. `-0` in all its forms is refused, because its bounds do not say that a `-` is to be expected.
fn parse_decimal_argument(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > TEXT_LENGTH_MAX || !digits(whole) || !digits(fraction) {
        return None;
    }
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && (*number < 0.0 || !text.starts_with('-')))
}

/// Whether a text can be an argument that no program reads as an option and no terminal obeys.
fn is_plain_text(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.chars().any(char::is_control)
}

/// Whether a text is `[A-Za-z0-9_][A-Za-z0-9._-]*` of at most 255 characters: the name of a file and never a path.
pub fn is_file_name(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= FILE_NAME_LENGTH_MAX
        && text.bytes().next().is_some_and(word)
        && text
            .bytes()
            .all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

impl fmt::Display for ArgumentSpec {
    /// The expected value, in the words of messages and forms.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.name)?;
        match &self.kind {
            ArgumentKind::Integer(bounds) => {
                write!(f, "a whole number from {} to {}", bounds.start(), bounds.end())
            }
            ArgumentKind::Number(bounds) => {
                write!(f, "a decimal number from {} to {}", bounds.start(), bounds.end())
            }
            ArgumentKind::Text {
                max_length,
                characters,
            } => {
                write!(
                    f,
                    "a text of 1 to {max_length} characters that does not begin with `-`"
                )?;
                match characters {
                    Some(set) => write!(f, ", of the characters {set}"),
                    None => write!(f, " and is no path"),
                }
            }
            ArgumentKind::Choice(values) => write!(f, "one of {}", values.join(", ")),
            ArgumentKind::File => {
                write!(
                    f,
                    "the name of a file in the provider's data folder, without a path"
                )
            }
        }
    }
}

/// `[[application]]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplicationKeys {
    name: String,
    version: Option<String>,
    #[serde(default)]
    description: String,
    program: PathBuf,
    #[serde(default, rename = "argument")]
    arguments: Vec<ArgumentSpec>,
    #[serde(default)]
    limits: LimitKeys,
    checkpoint: Option<Checkpoint>,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    visible: Vec<PathBuf>,
    #[serde(default)]
    network: bool,
}

impl TryFrom<ApplicationKeys> for Application {
    type Error = CatalogueError;

    fn try_from(keys: ApplicationKeys) -> Result<Self, CatalogueError> {
        let ApplicationKeys {
            name,
            version,
            description,
            program,
            arguments,
            limits,
            checkpoint,
            trusted,
            visible,
            network,
        } = keys;
        let isolation = Isolation { visible, network };
        let wrong = |key: &str, expected: &str| {
            Err(CatalogueError(format!(
                "application `{name}`: {key}: expected {expected}"
            )))
        };
        for (key, text) in [("name", Some(&name)), ("version", version.as_ref())] {
            if text.is_some_and(|text| !is_short_text(text)) {
                return wrong(key, SHORT_TEXT);
            }
        }
        if !program.is_absolute() {
            return wrong("program", "an absolute path");
        }
        if trusted && isolation != Isolation::default() {
            return wrong(
                "trusted",
                "false beside `visible` and `network`, since a trusted application is not isolated",
            );
        }
        if !trusted && isolation::OWN.iter().any(|own| program.starts_with(own)) {
            return wrong(
                "program",
                "a path that is not below /proc or /work, which isolated jobs have of their own",
            );
        }
        if let Some(key) = isolation.wrong_key() {
            return wrong(key, isolation::EXPECTED_PATHS);
        }
        if arguments.len() > ARGUMENTS_MAX {
            return wrong("argument", &format!("at most {ARGUMENTS_MAX} of them"));
        }
        let names: BTreeSet<_> = arguments.iter().map(|argument| &argument.name).collect();
        if names.len() < arguments.len() {
            return wrong("argument", "each name once");
        }
        let limits = limits
            .try_into()
            .map_err(|why| CatalogueError(format!("application `{name}`: {why}")))?;
        Ok(Self {
            name,
            version,
            description,
            program,
            arguments,
            limits,
            checkpoint,
            isolation: (!trusted).then_some(isolation),
        })
    }
}

/// In words, a text that [`is_short_text`].
const SHORT_TEXT: &str = "1 to 100 printable characters that do not begin with `-`";

fn is_short_text(text: &str) -> bool {
    is_plain_text(text) && text.chars().count() <= 100
}

/// `[[application.argument]]` as it is written: every key of every type. `type` says which type it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgumentKeys {
    name: String,
    r#type: ArgumentType,
    min: Option<ArgumentBound>,
    max: Option<ArgumentBound>,
    max_length: Option<usize>,
    characters: Option<String>,
    values: Option<Vec<String>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum ArgumentType {
    Integer,
    Number,
    Text,
    Choice,
    File,
}

/// A bound of a number; a whole one may be written for a decimal one.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum ArgumentBound {
    Whole(i64),
    Decimal(f64),
}

impl ArgumentBound {
    fn whole(self) -> Option<i64> {
        match self {
            Self::Whole(bound) => Some(bound),
            Self::Decimal(_) => None,
        }
    }

    fn decimal(self) -> Option<f64> {
        match self {
            // Only a bound beyond 2^53 loses digits, at the edge of the values that the argument itself can have.
            #[expect(
                clippy::cast_precision_loss,
                reason = "a decimal argument has no more digits itself"
            )]
            Self::Whole(bound) => Some(bound as f64),
            Self::Decimal(bound) => Some(bound).filter(|bound| bound.is_finite()),
        }
    }
}

impl ArgumentKeys {
    fn wrong(&self, key: &str, expected: &str) -> CatalogueError {
        CatalogueError(format!("argument `{}`: {key}: expected {expected}", self.name))
    }

    /// From `min` to `max`; none where that is the wrong way round.
    fn range<N: PartialOrd>(
        &self,
        read: fn(ArgumentBound) -> Option<N>,
        expected: &str,
    ) -> Result<Option<RangeInclusive<N>>, CatalogueError> {
        let bound =
            |key, bound: Option<ArgumentBound>| bound.and_then(read).ok_or_else(|| self.wrong(key, expected));
        let (min, max) = (bound("min", self.min)?, bound("max", self.max)?);
        Ok((min <= max).then_some(min..=max))
    }
}

impl TryFrom<ArgumentKeys> for ArgumentSpec {
    type Error = CatalogueError;

    fn try_from(keys: ArgumentKeys) -> Result<Self, CatalogueError> {
        let wrong = |key: &str, expected: &str| keys.wrong(key, expected);
        if !is_short_text(&keys.name) {
            return Err(wrong("name", SHORT_TEXT));
        }
        let numbers: &[_] = &[ArgumentType::Integer, ArgumentType::Number];
        let of_no_other_type = [
            ("min", keys.min.is_some(), numbers),
            ("max", keys.max.is_some(), numbers),
            ("max_length", keys.max_length.is_some(), &[ArgumentType::Text]),
            ("characters", keys.characters.is_some(), &[ArgumentType::Text]),
            ("values", keys.values.is_some(), &[ArgumentType::Choice]),
        ];
        for (key, given, types) in of_no_other_type {
            if given && !types.contains(&keys.r#type) {
                return Err(wrong(key, "nothing, for this type"));
            }
        }
        let kind = match keys.r#type {
            ArgumentType::Integer => keys
                .range(ArgumentBound::whole, "a whole number")?
                .map(ArgumentKind::Integer),
            ArgumentType::Number => keys
                .range(ArgumentBound::decimal, "a number")?
                .map(ArgumentKind::Number),
            ArgumentType::Text => {
                let max_length = keys
                    .max_length
                    .filter(|length| (1..=TEXT_LENGTH_MAX).contains(length));
                let max_length = max_length
                    .ok_or_else(|| wrong("max_length", &format!("a number from 1 to {TEXT_LENGTH_MAX}")))?;
                let characters = keys.characters.as_deref().map(|set| {
                    CharacterSet::read(set)
                        .ok_or_else(|| wrong("characters", "characters and ranges, as in `a-zA-Z0-9_`"))
                });
                Some(ArgumentKind::Text {
                    max_length,
                    characters: characters.transpose()?,
                })
            }
            ArgumentType::Choice => {
                let fits = |value: &String| is_plain_text(value) && value.chars().count() <= TEXT_LENGTH_MAX;
                let values = keys
                    .values
                    .clone()
                    .filter(|values| !values.is_empty() && values.iter().all(fits));
                let expected = "one or more printable texts that do not begin with `-`";
                Some(ArgumentKind::Choice(
                    values.ok_or_else(|| wrong("values", expected))?,
                ))
            }
            ArgumentType::File => Some(ArgumentKind::File),
        };
        let kind = kind.ok_or_else(|| wrong("max", "no less than min"))?;
        Ok(Self {
            name: keys.name,
            kind,
        })
    }
}

#[cfg(test)]
mod tests;
