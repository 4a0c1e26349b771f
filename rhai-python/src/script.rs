//! The class `Script`: compiled once, run for each value.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::PyTraverseError;
use pyo3::PyVisit;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList, PyMapping};
use rhai::AST;

use crate::driver::{Callables, Driver};
use crate::failure::{Failure, Kind};
use crate::home::Home;
use crate::limits::Limits;
use crate::mentions::Mentions;
use crate::modules::Loader;
use crate::paused::{Batch, Paused};
use crate::pinned::bury;
use crate::run::Run;
use crate::view::View;

#[cfg(feature = "measure")]
pub mod measure;

/// A blocking run looks up this often: at signals, and at other threads.
const BREATH: Duration = Duration::from_millis(50);

/// The engine looks functions up by the kinds of so many arguments.
const MOST_ARGUMENTS: usize = 16;

#[pyclass(frozen, module = "rhai")]
pub struct Script {
    /// What runs, while nothing does.
    home: Arc<Home>,
    /// None once the garbage collector broke a circle that it was part of.
    callables: Mutex<Option<Arc<Callables>>>,
    view: Arc<View>,
    calls: BTreeSet<String>,
}

#[pymethods]
impl Script {
    #[new]
    #[pyo3(signature = (source, *, variable="msg", emits_lists=false, functions=None, load=None, note=None,
        max_operations=100_000, max_string=262_144, max_array=100_000, max_map=10_000, max_expression_depth=64,
        max_calls=64, max_modules=32, max_source=1_048_576, max_nesting=128, max_emitted=10_000,
        max_emitted_bytes=16_777_216, max_memory=67_108_864, time_limit=Some(1.0)),
        text_signature = "(source, *, variable='msg', emits_lists=False, functions=None, load=None, note=None, \
        max_operations=100000, max_string=262144, max_array=100000, max_map=10000, max_expression_depth=64, \
        max_calls=64, max_modules=32, max_source=1048576, max_nesting=128, max_emitted=10000, \
        max_emitted_bytes=16777216, max_memory=67108864, time_limit=1.0)")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        source: String,
        variable: &str,
        emits_lists: bool,
        functions: Option<&Bound<'_, PyMapping>>,
        load: Option<&Bound<'_, PyAny>>,
        note: Option<Py<PyAny>>,
        max_operations: u64,
        max_string: usize,
        max_array: usize,
        max_map: usize,
        max_expression_depth: usize,
        max_calls: usize,
        max_modules: usize,
        max_source: usize,
        max_nesting: usize,
        max_emitted: usize,
        max_emitted_bytes: usize,
        max_memory: usize,
        time_limit: Option<f64>,
    ) -> PyResult<Self> {
        let mut limits = Limits {
            operations: max_operations,
            string: max_string,
            array: max_array,
            map: max_map,
            expression_depth: max_expression_depth,
            calls: max_calls,
            modules: max_modules,
            source: max_source,
            nesting: max_nesting,
            emitted: max_emitted,
            emitted_bytes: max_emitted_bytes,
            memory: max_memory,
            time: None,
        };
        limits.check(time_limit)?;
        check_variable(variable)?;
        limits.time = time_limit.map(Duration::from_secs_f64);
        let (names, functions) = hosts(functions)?;
        let callables = Arc::new(Callables { functions, note });
        let mut home = Home::new(limits, variable, names, emits_lists);
        let (ast, mentions) = compile(py, source, &home, load, &callables)?;
        let view = View::of(py, &ast, variable, &mentions);
        home.ast = Arc::from(ast);
        home.captured = mentions.captured.into_iter().collect();
        home.interpolates = mentions.interpolates;
        home.globals = mentions.globals;
        home.source_bytes = mentions.source_bytes;
        Ok(Self {
            view: view.into(),
            home: home.into(),
            callables: Mutex::new(Some(callables)),
            calls: mentions.calls,
        })
    }

    /// Whether a call of `emit` is written in it, or in a module it imports.
    #[getter]
    fn emits(&self) -> bool {
        self.calls.contains("emit")
    }

    /// The names of all functions that are called in it and in its modules.
    #[getter]
    fn calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, &self.calls)
    }

    /// The top-level fields of the value that it can reach; None: all of them.
    #[getter]
    fn reaches(&self) -> Option<Vec<&str>> {
        let fields = self.view.fields()?.iter();
        Some(fields.map(|field| field.name.as_str()).collect())
    }

    /// What one run with this value emitted.
    fn run<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = value.py();
        self.run_each(&PyList::new(py, [value])?, None)
    }

    /// What a run for each of the values emitted, in one list. With ``failed`` the others go on where one fails: it is
    /// called with the error, and what it raises fails all.
    #[pyo3(signature = (values, *, failed=None))]
    fn run_each<'py>(
        &self,
        values: &Bound<'py, PyList>,
        failed: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let py = values.py();
        let mut batch = self.batch(values, failed)?;
        while !batch.advance(py, Some(Instant::now() + BREATH))? {
            py.check_signals()?;
            py.detach(std::thread::yield_now);
        }
        Ok(batch.into_emitted(py))
    }

    /// The same, but for so many seconds at most: then the rest is handed back, to be resumed.
    #[pyo3(signature = (values, seconds, *, failed=None))]
    fn start<'py>(
        slf: &Bound<'py, Self>,
        values: &Bound<'py, PyList>,
        seconds: f64,
        failed: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = values.py();
        let mut batch = slf.get().batch(values, failed)?;
        match batch.advance(py, slice_end(seconds)?)? {
            true => Ok(batch.into_emitted(py).into_any()),
            false => Ok(Bound::new(py, Paused::new(slf.clone().unbind(), batch))?.into_any()),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Locked while somebody takes a reference: then it is in use, and no garbage.
        let Ok(callables) = self.callables.try_lock() else {
            return Ok(());
        };
        if let Some(callables) = callables.as_ref() {
            for function in &callables.functions {
                visit.call(function)?;
            }
            visit.call(&callables.note)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        let callables = self
            .callables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(callables);
    }
}

impl Script {
    fn batch(&self, values: &Bound<'_, PyList>, failed: Option<Py<PyAny>>) -> PyResult<Batch> {
        bury();
        let callables = self
            .callables
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .unwrap_or_default();
        let home = &self.home;
        let program = home.take();
        let notes = callables.note.is_some();
        let run = Run::new(
            home.limits.clone(),
            program.meter.clone(),
            home.emits_lists,
            notes,
        );
        run.interpolates.set(home.interpolates);
        run.source_bytes.set(home.source_bytes);
        let driver = Driver::new(program, run, callables)?;
        let view = self.view.clone();
        Ok(Batch::new(driver, home.clone(), view, values, failed))
    }
}

/// The moment at which a slice of so many seconds ends.
pub fn slice_end(seconds: f64) -> PyResult<Option<Instant>> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(slice) => Ok(Instant::now().checked_add(slice)),
        Err(_) if seconds == f64::INFINITY => Ok(None),
        Err(_) => Err(PyValueError::new_err(format!(
            "'seconds' must be a positive number, not {seconds}"
        ))),
    }
}

fn check_variable(name: &str) -> PyResult<()> {
    match rhai::is_valid_function_name(name) {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "'{name}' cannot be the name of a variable"
        ))),
    }
}

type Hosts = (Vec<(String, usize)>, Vec<Py<PyAny>>);

fn hosts(functions: Option<&Bound<'_, PyMapping>>) -> PyResult<Hosts> {
    let mut hosts = Hosts::default();
    let Some(functions) = functions else {
        return Ok(hosts);
    };
    for entry in functions.items()?.iter() {
        let (name, (arity, function)): (String, (usize, Py<PyAny>)) = entry.extract()?;
        if name == "emit" || !rhai::is_valid_function_name(&name) {
            return Err(PyValueError::new_err(format!(
                "'{name}' cannot be the name of a host function"
            )));
        }
        if arity > MOST_ARGUMENTS {
            return Err(PyValueError::new_err(format!(
                "a host function takes at most {MOST_ARGUMENTS} arguments, '{name}' has {arity}"
            )));
        }
        if !function.bind(functions.py()).is_callable() {
            return Err(PyTypeError::new_err(format!(
                "host function '{name}' cannot be called"
            )));
        }
        hosts.0.push((name, arity));
        hosts.1.push(function);
    }
    Ok(hosts)
}

/// The script, with its modules loaded, and what it mentions.
fn compile(
    py: Python<'_>,
    source: String,
    home: &Home,
    load: Option<&Bound<'_, PyAny>>,
    callables: &Arc<Callables>,
) -> PyResult<(Box<AST>, Mentions)> {
    let limits = &home.limits;
    if source.len() > limits.source {
        let text = format!(
            "the source has {} bytes, at most {} are accepted",
            source.len(),
            limits.source
        );
        return Err(Failure::new(Kind::Compile, text).raise(py));
    }
    let program = home.take();
    let notes = callables.note.is_some();
    let run = Run::new(
        limits.clone(),
        program.meter.clone(),
        home.emits_lists,
        notes,
    );
    let mut driver = Driver::new(program, run, callables.clone())?;
    let ast = driver
        .parse(py, source.clone(), true)
        .map_err(|failure| failure.raise(py))?;
    let mut mentions = Mentions::default();
    mentions
        .read(&ast, &source)
        .map_err(|failure| failure.raise(py))?;
    let mut loader = Loader {
        py,
        limits,
        shelf: &home.shelf,
        load,
        mentions: &mut mentions,
        driver: &mut driver,
        opening: Vec::new(),
        names: HashMap::new(),
    };
    loader.load_imports(&ast)?;
    Ok((ast, mentions))
}
