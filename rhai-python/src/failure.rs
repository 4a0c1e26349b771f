//! What went wrong in a script: message, line and column apart, and the module it was in.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use rhai::{Dynamic, EvalAltResult, ParseError, Position};

use crate::limits::{Ending, Limits, too_large};
use crate::natives::text;

/// No message is longer: a script may throw a megabyte.
const MOST_CHARACTERS: usize = 300;

/// Marks the text of an error of ours, which is told as it is; host errors carry their number.
pub const OURS: i32 = -1;

#[derive(Clone, Copy)]
pub enum Kind {
    Compile,
    Run,
    Budget,
}

pub struct Failure {
    pub kind: Kind,
    pub message: String,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub module: Option<String>,
    /// Of a budget error: the keyword of the limit.
    pub limit: Option<&'static str>,
    /// The number of the host function's error that this is, from 1.
    pub host: Option<usize>,
}

/// An error that a native function of ours returns; the engine adds the position.
pub fn failed(message: impl Into<String>) -> Box<EvalAltResult> {
    let mut text: Dynamic = message.into().into();
    text.set_tag(OURS);
    marked(text)
}

/// What a host function raised, as the script sees it: a text, with the number of the exception.
pub fn raised(message: &str, number: usize) -> Dynamic {
    let mut text: Dynamic = shortened(message).into();
    text.set_tag(i32::try_from(number).unwrap_or(OURS));
    text
}

/// An error whose text carries a mark.
pub fn marked(text: Dynamic) -> Box<EvalAltResult> {
    EvalAltResult::ErrorRuntime(text, Position::NONE).into()
}

impl Failure {
    pub fn new(kind: Kind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            message: shortened(message.as_ref()),
            line: None,
            column: None,
            module: None,
            limit: None,
            host: None,
        }
    }

    pub fn at(mut self, position: Position) -> Self {
        (self.line, self.column) = (position.line(), position.position());
        self
    }

    pub fn within(mut self, module: Option<&str>) -> Self {
        self.module = module
            .filter(|module| !module.is_empty())
            .map(str::to_owned);
        self
    }

    pub fn of_parse(error: &ParseError) -> Self {
        Self::new(Kind::Compile, error.err_type().to_string()).at(error.position())
    }

    /// Compiling was given up.
    pub fn of_slow_parse(error: &ParseError, limits: &Limits) -> Self {
        let seconds = limits.compiling().as_secs_f64();
        let message = format!("compiling takes longer than {seconds} s");
        Self {
            limit: Some("time_limit"),
            ..Self::new(Kind::Budget, message).at(error.position())
        }
    }

    pub fn of_ending(ending: Ending, limits: &Limits) -> Self {
        let (limit, message) = ending.tell(limits);
        let kind = match limit {
            Some(_) => Kind::Budget,
            None => Kind::Run,
        };
        Self {
            limit,
            ..Self::new(kind, message)
        }
    }

    pub fn of_panic(text: &str) -> Self {
        Self::new(Kind::Run, format!("the script engine broke down: {text}"))
    }

    /// The error at the end of the chain of calls, with the last position and module on the way.
    pub fn of_run(error: &EvalAltResult, limits: &Limits) -> Self {
        let mut module = None;
        let mut position = Position::NONE;
        let mut leaf = error;
        while let EvalAltResult::ErrorInFunctionCall(_, source, inner, _)
        | EvalAltResult::ErrorInModule(source, inner, _) = leaf
        {
            if !source.is_empty() {
                module = Some(source.as_str());
            }
            position = leaf.position();
            leaf = inner;
        }
        if !leaf.position().is_none() {
            position = leaf.position();
        }
        Self::of_leaf(leaf, limits).at(position).within(module)
    }

    fn of_leaf(leaf: &EvalAltResult, limits: &Limits) -> Self {
        let budget = |limit, message| Self {
            limit: Some(limit),
            ..Self::new(Kind::Budget, message)
        };
        match leaf {
            EvalAltResult::ErrorTerminated(token, _) => {
                Self::of_ending(Ending::of(token).unwrap_or(Ending::Closed), limits)
            }
            EvalAltResult::ErrorDataTooLarge(what, _) => {
                let (limit, message) = too_large(what, limits);
                budget(limit, message)
            }
            EvalAltResult::ErrorStackOverflow(_) => budget(
                "max_calls",
                format!("calls nested deeper than {}", limits.calls),
            ),
            EvalAltResult::ErrorTooManyModules(_) => budget(
                "max_modules",
                format!("more than {} imports", limits.modules),
            ),
            EvalAltResult::ErrorDataRace(what, _) => Self::new(
                Kind::Run,
                format!("{what} is in use by the call that this is a part of"),
            ),
            EvalAltResult::ErrorParsing(what, _) => Self::new(Kind::Compile, what.to_string()),
            EvalAltResult::ErrorRuntime(thrown, _) => Self::of_thrown(thrown),
            other => Self::new(Kind::Run, without_position(other)),
        }
    }

    fn of_thrown(thrown: &Dynamic) -> Self {
        let text = text::brief(thrown, MOST_CHARACTERS);
        match thrown.tag() {
            _ if !thrown.is_string() => Self::new(Kind::Run, format!("Runtime error: {text}")),
            OURS => Self::new(Kind::Run, text),
            number if number > 0 => Self {
                host: Some(number as usize),
                ..Self::new(Kind::Run, text)
            },
            _ => Self::new(Kind::Run, format!("Runtime error: {text}")),
        }
    }

    pub fn raise(self, py: Python<'_>) -> PyErr {
        match self.exception(py) {
            Ok(exception) => PyErr::from_value(exception),
            Err(error) => error,
        }
    }

    fn exception(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static CLASSES: PyOnceLock<[Py<PyType>; 3]> = PyOnceLock::new();
        let classes = CLASSES.get_or_try_init(py, || {
            let module = py.import("rhai._errors")?;
            let class = |name| PyResult::Ok(module.getattr(name)?.cast_into::<PyType>()?.unbind());
            PyResult::Ok([
                class("CompileError")?,
                class("RunError")?,
                class("BudgetError")?,
            ])
        })?;
        let class = classes[self.kind as usize].bind(py);
        let message = match &self.module {
            Some(module) => format!("{} (in module '{module}')", self.message),
            None => self.message,
        };
        match self.kind {
            Kind::Budget => class.call1((message, self.line, self.column, self.module, self.limit)),
            _ => class.call1((message, self.line, self.column, self.module)),
        }
    }
}

/// The engine's text, whose end may be " (line 1, position 2)": the position travels apart.
fn without_position(error: &EvalAltResult) -> String {
    let shown = error.to_string();
    match error.position().is_none() {
        true => shown,
        false => {
            let tail = format!(" ({})", error.position());
            shown.strip_suffix(&tail).unwrap_or(&shown).to_owned()
        }
    }
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
