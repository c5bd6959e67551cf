//! One setting: its value, and where it came from.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;

use crate::settings::SettingsError;

/// A value with its origin.
#[derive(Clone, Debug)]
pub(crate) struct Sourced<T> {
    /// The value.
    pub(crate) value: T,
    /// Where it came from.
    pub(crate) from: Origin,
}

/// Where a setting's value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    BuiltIn,
    /// A settings file.
    File {
        /// The file.
        path: PathBuf,
        /// The line in it.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(String),
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR or CLICOLOR=0 is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How many ranks run on this machine side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MachineSlots {
    /// By its processors.
    #[default]
    Auto,
    /// So many.
    Stated(NonZeroU32),
}

/// Which GPUs of this machine jobs may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum GpuChoice {
    /// Those that have a device.
    #[default]
    Auto,
    /// These.
    These(Vec<u32>),
}

impl GpuChoice {
    /// The numbers that are stated.
    pub(crate) fn numbers(&self) -> &[u32] {
        match self {
            Self::Auto => &[],
            Self::These(numbers) => numbers,
        }
    }
}

/// A setting of any type, taken from and shown as text.
pub(crate) trait Field {
    /// Takes the value of the setting of that name from its text.
    fn take(&mut self, name: &'static str, text: &str, from: Origin) -> Result<(), SettingsError>;
    /// The value as text.
    fn text(&self) -> String;
    /// Where it came from.
    fn origin(&self) -> &Origin;
    /// What it takes, in a user's words.
    fn wanted(&self) -> &'static str;
}

/// What a type of setting takes, in a user's words.
pub(crate) trait Wanted {
    /// The words.
    const WANTED: &'static str;
}

impl Wanted for bool {
    const WANTED: &'static str = "true or false";
}

impl Wanted for NonZeroU32 {
    const WANTED: &'static str = "a whole number of at least 1";
}

impl Wanted for String {
    const WANTED: &'static str = "text";
}

impl Wanted for MachineSlots {
    const WANTED: &'static str = "auto, or a whole number of at least 1";
}

impl Wanted for GpuChoice {
    const WANTED: &'static str = "auto, none, or numbers such as 0,1";
}

impl Wanted for ColorWhen {
    const WANTED: &'static str = "auto, always or never";
}

impl<T> Sourced<T> {
    /// A value that nobody set.
    pub(crate) const fn built_in(value: T) -> Self {
        Self { value, from: Origin::BuiltIn }
    }
}

impl<T: FromStr + fmt::Display + Wanted> Field for Sourced<T> {
    fn take(&mut self, name: &'static str, text: &str, from: Origin) -> Result<(), SettingsError> {
        match text.parse() {
            Ok(value) => {
                *self = Self { value, from };
                Ok(())
            }
            Err(_) => Err(SettingsError::Value {
                wanted: T::WANTED,
                given: format!("`{text}`"),
                name,
                from,
            }),
        }
    }

    fn text(&self) -> String {
        self.value.to_string()
    }

    fn origin(&self) -> &Origin {
        &self.from
    }

    fn wanted(&self) -> &'static str {
        T::WANTED
    }
}

impl FromStr for MachineSlots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Stated).map_err(|_| format!("this takes {}", Self::WANTED))
    }
}

impl fmt::Display for MachineSlots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Stated(slots) => slots.fmt(formatter),
        }
    }
}

impl FromStr for ColorWhen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        <Self as ValueEnum>::from_str(text, false)
    }
}

impl FromStr for GpuChoice {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::These(Vec::new())),
            list => {
                let numbers = list.split(',').map(|number| number.trim().parse());
                numbers.collect::<Result<_, _>>().map(Self::These)
            }
        }
    }
}

impl fmt::Display for GpuChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::These(numbers) if numbers.is_empty() => formatter.write_str("none"),
            Self::These(numbers) => {
                let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                formatter.write_str(&words.join(","))
            }
        }
    }
}

impl fmt::Display for ColorWhen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => formatter.write_str("built in"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => formatter.write_str(name),
        }
    }
}
