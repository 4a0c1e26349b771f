//! The limits of a script, and what counts against them.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a script may use, per run where nothing else is said. The names are those of the keywords.
#[derive(Clone)]
pub struct Limits {
    pub operations: u64,
    pub string: usize,
    pub array: usize,
    pub map: usize,
    pub expression_depth: usize,
    pub calls: usize,
    pub modules: usize,
    pub source: usize,
    pub nesting: usize,
    pub emitted: usize,
    pub emitted_bytes: usize,
    pub memory: usize,
    pub time: Option<Duration>,
}

/// Beyond these the stack that a run needs could not be had.
const MOST_MEMORY: usize = 1 << 32;
const MOST_CALLS: usize = 4_096;
const MOST_DEPTH: usize = 1_024;

/// Values are converted on the caller's stack, which takes this depth with ease.
const MOST_NESTING: usize = 512;

/// Compiling may always take so long, however short the runs have to be.
const LEAST_COMPILING: Duration = Duration::from_secs(1);

impl Limits {
    /// The time in which a script and its modules have to compile.
    pub fn compiling(&self) -> Duration {
        self.time.unwrap_or_default().max(LEAST_COMPILING)
    }

    /// Refuse what would mean "unlimited" to the engine, and what no stack could carry.
    pub fn check(&self, seconds: Option<f64>) -> PyResult<()> {
        let least = |name: &str, value: usize| match value {
            0 => Err(PyValueError::new_err(format!(
                "'{name}' must be at least 1"
            ))),
            _ => Ok(()),
        };
        let most = |name: &str, value: usize, most: usize| match value > most {
            true => Err(PyValueError::new_err(format!(
                "'{name}' must be at most {most}, not {value}"
            ))),
            false => Ok(()),
        };
        least("max_operations", self.operations as usize)?;
        least("max_string", self.string)?;
        least("max_array", self.array)?;
        least("max_map", self.map)?;
        least("max_expression_depth", self.expression_depth)?;
        least("max_nesting", self.nesting)?;
        least("max_memory", self.memory)?;
        most("max_memory", self.memory, MOST_MEMORY)?;
        most("max_calls", self.calls, MOST_CALLS)?;
        most("max_expression_depth", self.expression_depth, MOST_DEPTH)?;
        most("max_nesting", self.nesting, MOST_NESTING)?;
        match seconds {
            Some(seconds) if !(seconds > 0.0 && seconds <= 1e9) => Err(PyValueError::new_err(
                format!("'time_limit' must be a positive number of seconds or None, not {seconds}"),
            )),
            _ => Ok(()),
        }
    }
}

/// The size of a value, in the measures that are limited.
#[derive(Clone, Copy, Default)]
pub struct Sizes {
    /// Elements of arrays.
    pub elements: usize,
    /// Entries of objects.
    pub entries: usize,
    /// Bytes of strings, and of keys.
    pub text: usize,
    /// Bytes of everything, roughly as JSON would have them.
    pub bytes: usize,
}

impl Sizes {
    pub fn number(&mut self) {
        self.bytes += 8;
    }

    pub fn text(&mut self, length: usize) {
        self.text += length;
        self.bytes += length + 2;
    }

    pub fn element(&mut self) {
        self.elements += 1;
        self.bytes += 1;
    }

    pub fn entry(&mut self, key: &str) {
        self.entries += 1;
        self.text += key.len();
        self.bytes += key.len() + 4;
    }
}

/// Why a run ended before its end. Travels through the engine as the token of its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Operations,
    Time,
    Memory,
    /// Text that natives were about to make would be too long.
    Text,
    /// A value nests too deep to be looked at.
    Nesting,
    Emitted,
    EmittedBytes,
    /// `Paused.close()`, or nobody wants the result any more.
    Closed,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::Operations,
        Self::Time,
        Self::Memory,
        Self::Text,
        Self::Nesting,
        Self::Emitted,
        Self::EmittedBytes,
        Self::Closed,
    ];

    pub fn token(self) -> rhai::Dynamic {
        (self as i64).into()
    }

    pub fn of(token: &rhai::Dynamic) -> Option<Self> {
        Self::ALL.get(token.as_int().ok()? as usize).copied()
    }

    /// The keyword of the limit, and what to tell.
    pub fn tell(self, limits: &Limits) -> (Option<&'static str>, String) {
        match self {
            Self::Operations => (
                Some("max_operations"),
                format!("more than {} operations", limits.operations),
            ),
            Self::Time => (
                Some("time_limit"),
                format!(
                    "ran longer than {} s",
                    limits.time.unwrap_or_default().as_secs_f64()
                ),
            ),
            Self::Memory => (
                Some("max_memory"),
                format!("held more than {} bytes of memory", limits.memory),
            ),
            Self::Text => (Some("max_string"), too_long(limits)),
            Self::Nesting => (
                Some("max_nesting"),
                format!("a value nested deeper than {} levels", limits.nesting),
            ),
            Self::Emitted => (
                Some("max_emitted"),
                format!("emitted more than {} values", limits.emitted),
            ),
            Self::EmittedBytes => (
                Some("max_emitted_bytes"),
                format!("emitted more than {} bytes", limits.emitted_bytes),
            ),
            Self::Closed => (None, "closed before its end".to_owned()),
        }
    }
}

/// What the engine says of a value that is too large, in our words.
pub fn too_large(what: &str, limits: &Limits) -> (&'static str, String) {
    match what {
        "Length of string" => ("max_string", too_long(limits)),
        "Size of object map" => (
            "max_map",
            format!("a value of more than {} object entries", limits.map),
        ),
        _ => (
            "max_array",
            format!("a value of more than {} array elements", limits.array),
        ),
    }
}

fn too_long(limits: &Limits) -> String {
    format!("a value of more than {} bytes of text", limits.string)
}
