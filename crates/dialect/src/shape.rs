//! Field tables: one definition of each foreign type.
//!
//! The same table checks a file, suggests the nearest key, and is printed as JSON Schema and as field reference.

/// An object with named fields.
#[derive(Debug)]
pub struct Shape {
    /// The object's name in documentation, such as `MPIJobSpec`.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// What to do with other keys.
    pub others: Others,
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether the object needs it.
    pub presence: Presence,
    /// What its absence means; empty when nothing.
    pub default: &'static str,
    /// What it is for, one sentence.
    pub doc: &'static str,
}

/// Whether an object needs a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It may be left out.
    Optional,
    /// Without it the object is refused.
    Required,
}

/// What to do with keys that a shape does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Warn, and name the nearest key.
    Warn,
    /// Take them silently: the object is open by design.
    Keep,
}

/// What a field takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// Text that is not empty.
    FilledText,
    /// Text of a certain form.
    Form(&'static Form),
    /// A whole number within bounds.
    Integer {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// True or false.
    Boolean,
    /// A Kubernetes quantity: a number, or text with a suffix.
    Quantity,
    /// Any single value, taken as text.
    Scalar,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, in any letter case.
    OneOfAnyCase(&'static [&'static str]),
    /// An object.
    Object(&'static Shape),
    /// A list of these.
    List(&'static Self),
    /// A list of these, at least one.
    FilledList(&'static Self),
    /// Keys of the user's choice with such values.
    Map(&'static Self),
    /// A null, or this.
    Nullable(&'static Self),
    /// The first of these that fits by type; for fields that are written in more than one way.
    Either(&'static [Self]),
    /// Anything; kept as it is.
    Any,
}

/// A form that text can have.
#[derive(Debug)]
pub struct Form {
    /// How a message names it: "a DNS label (…)".
    pub name: &'static str,
    /// Whether a text has it.
    pub fits: fn(&str) -> bool,
    /// A regular expression for schemas; empty when there is none.
    pub pattern: &'static str,
}

impl Kind {
    /// A 32-bit count.
    pub const COUNT: Self = Self::Integer { min: 0, max: i32::MAX as i64 };
    /// A 32-bit count of at least one.
    pub const POSITIVE: Self = Self::Integer { min: 1, max: i32::MAX as i64 };
    /// A duration in seconds, or another 64-bit amount.
    pub const SECONDS: Self = Self::Integer { min: 0, max: i64::MAX };
}

impl Field {
    /// An optional field without default.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, presence: Presence::Optional, default: "", doc }
    }

    /// The field, needed.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.presence = Presence::Required;
        self
    }

    /// The field with a default.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }
}

impl Shape {
    /// A shape that warns about other keys.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, others: Others::Warn }
    }

    /// A shape that takes any other key.
    pub const fn open(name: &'static str, fields: &'static [Field]) -> Self {
        Self { name, fields, others: Others::Keep }
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}
