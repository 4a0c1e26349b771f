//! The classes `Pattern` and `Matcher`: regular expressions whose cost is bounded whatever the text.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;

pub mod program;
pub mod replacing;
pub mod syntax;
mod whole;

use program::{LONGEST, Program};
use replacing::Template;
use syntax::Refused;
use whole::{ROOM, Whole};

impl Refused {
    fn raise(self, py: Python<'_>) -> PyErr {
        let exception = py
            .import("rhai._errors")
            .and_then(|module| module.getattr("PatternError"))
            .and_then(|class| class.call1((self.message, self.at)));
        exception.map_or_else(|error| error, PyErr::from_value)
    }
}

/// A pattern that finds its named groups.
#[pyclass(frozen, module = "rhai")]
pub struct Pattern {
    program: Arc<Program>,
}

#[pymethods]
impl Pattern {
    #[new]
    fn new(py: Python<'_>, regex: &str) -> PyResult<Self> {
        let program = Program::new(regex).map_err(|refused| refused.raise(py))?;
        Ok(Self {
            program: program.into(),
        })
    }

    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.program.names)
    }

    #[getter]
    fn longest(&self) -> usize {
        self.program.longest
    }

    #[getter]
    fn is_one_pass(&self) -> bool {
        self.program.is_one_pass()
    }

    fn groups<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(text) = utf8(text, self.program.longest) else {
            return Ok(None);
        };
        let count = self.program.names.len();
        let found = self.program.find(text, |slots| {
            let groups = (1..=count).map(|group| program::part(text, slots, group));
            PyTuple::new(py, groups.collect::<Vec<_>>())
        });
        found.transpose()
    }

    #[pyo3(signature = (with_, *, first=false))]
    fn replacement(&self, py: Python<'_>, with_: &str, first: bool) -> PyResult<Replacement> {
        let template = Template::parse(with_, &self.program.names);
        Ok(Replacement {
            program: self.program.clone(),
            template: template.map_err(|refused| refused.raise(py))?,
            first,
        })
    }
}

/// A pattern, and what takes the place of its matches.
#[pyclass(frozen, module = "rhai")]
pub struct Replacement {
    program: Arc<Program>,
    template: Template,
    first: bool,
}

#[pymethods]
impl Replacement {
    #[getter]
    fn longest(&self) -> usize {
        self.program.longest_replaced(self.first)
    }

    fn replaced<'py>(&self, text: &Bound<'py, PyString>) -> Option<Bound<'py, PyString>> {
        let py = text.py();
        let given = utf8(text, self.longest())?;
        let made = self.program.replaced(given, &self.template, self.first);
        made.ok().map(|made| PyString::new(py, &made))
    }
}

/// A pattern that a text matches somewhere, or nowhere.
#[pyclass(frozen, module = "rhai")]
pub struct Matcher {
    whole: Whole,
}

#[pymethods]
impl Matcher {
    #[new]
    fn new(py: Python<'_>, regex: &str) -> PyResult<Self> {
        let whole = Whole::new(regex, &ROOM).map_err(|refused| refused.raise(py))?;
        Ok(Self { whole })
    }

    fn is_match(&self, text: &Bound<'_, PyString>) -> bool {
        utf8(text, LONGEST).is_some_and(|text| self.whole.is_match(text))
    }
}

/// The text; None with a lone surrogate in it, which no pattern matches, and where it has more characters than bytes
/// are searched: UTF-8 is made of it, and kept, when it is first asked for.
fn utf8<'t>(text: &'t Bound<'_, PyString>, longest: usize) -> Option<&'t str> {
    match text.len() {
        Ok(characters) if characters <= longest => text.to_str().ok(),
        _ => None,
    }
}
