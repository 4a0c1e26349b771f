//! Imports: every literal path is loaded while the script is built, none later.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use rhai::{AST, Dynamic, Engine, EvalAltResult, FnPtr, ModuleResolver, Position, Shared};

use crate::driver::Driver;
use crate::failure::{Failure, Kind};
use crate::leaving;
use crate::limits::{Ending, Limits};
use crate::mentions::{Import, Mentions, imports};
use crate::run::{Outcome, Run, over};

/// The engine lists the functions and constants of a module together with those of its imports, once for each way in
/// which these are imported. So many names they may be: the ways multiply from module to module.
const MOST_NAMES: usize = 100_000;

/// The modules of a script, and where its imports stand.
#[derive(Clone, Default)]
pub struct Shelf(Arc<RwLock<Shelved>>);

#[derive(Default)]
struct Shelved {
    modules: HashMap<String, Shared<rhai::Module>>,
    /// Line and column of literal paths.
    literals: HashSet<(Option<usize>, Option<usize>)>,
}

impl Shelf {
    fn has(&self, path: &str) -> bool {
        let shelved = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shelved.modules.contains_key(path)
    }

    fn len(&self) -> usize {
        let shelved = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shelved.modules.len()
    }

    fn put(&self, path: &str, module: rhai::Module) {
        let mut shelved = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shelved.modules.insert(path.to_owned(), module.into());
    }

    fn is_literal_at(&self, position: Position) {
        let mut shelved = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shelved
            .literals
            .insert((position.line(), position.position()));
    }
}

impl ModuleResolver for Shelf {
    fn resolve(
        &self,
        _: &Engine,
        _: Option<&str>,
        path: &str,
        position: Position,
    ) -> Result<Shared<rhai::Module>, Box<EvalAltResult>> {
        let shelved = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_literal = shelved
            .literals
            .contains(&(position.line(), position.position()));
        match shelved.modules.get(path) {
            Some(module) if is_literal => Ok(module.clone()),
            _ => {
                let mut text: Dynamic = "the path of an import must be a literal string".into();
                text.set_tag(crate::failure::OURS);
                Err(EvalAltResult::ErrorRuntime(text, position).into())
            }
        }
    }
}

/// Loads what a script imports, and what that imports.
pub struct Loader<'a, 'py> {
    pub py: Python<'py>,
    pub limits: &'a Limits,
    pub shelf: &'a Shelf,
    pub load: Option<&'a Bound<'py, PyAny>>,
    pub mentions: &'a mut Mentions,
    pub driver: &'a mut Driver,
    /// Paths from the script to the module that is being loaded.
    pub opening: Vec<String>,
    /// How many names a module has, by its path, with those of its imports.
    pub names: HashMap<String, usize>,
}

impl Loader<'_, '_> {
    /// Load what `ast` imports by a literal path, and tell how many names come with it.
    pub fn load_imports(&mut self, ast: &AST) -> PyResult<usize> {
        let mut names = 0;
        for import in imports(ast) {
            self.shelf.is_literal_at(import.position);
            if !self.shelf.has(&import.path) {
                self.check(&import)?;
                let source = self.fetch(&import)?;
                self.opening.push(import.path.clone());
                self.open(&import.path, source)?;
                self.opening.pop();
            }
            names += self.names.get(&import.path).unwrap_or(&0);
            if names > MOST_NAMES {
                let text = format!(
                    "modules are imported in so many ways that they have more than {MOST_NAMES} names"
                );
                return Err(self.refuse(&import, text));
            }
        }
        Ok(names)
    }

    fn refuse(&self, import: &Import, message: impl AsRef<str>) -> PyErr {
        let importer = self.opening.last().map(String::as_str);
        Failure::new(Kind::Compile, message)
            .at(import.position)
            .within(importer)
            .raise(self.py)
    }

    fn check(&self, import: &Import) -> PyResult<()> {
        let Import { path, .. } = import;
        if let Some(first) = self.opening.iter().position(|open| open == path) {
            let circle = self.opening[first..].join("' -> '");
            return Err(self.refuse(
                import,
                format!("modules import each other: '{circle}' -> '{path}'"),
            ));
        }
        let most = self.limits.modules;
        match self.shelf.len() + self.opening.len() >= most {
            true => Err(self.refuse(import, format!("more than {most} modules"))),
            false => Ok(()),
        }
    }

    fn fetch(&self, import: &Import) -> PyResult<String> {
        let Some(load) = self.load else {
            return Err(self.refuse(
                import,
                format!("no module '{}': nothing can be imported here", import.path),
            ));
        };
        let source = load
            .call1((&import.path,))
            .and_then(|source| source.extract::<String>())
            .map_err(|cause| {
                if !cause.is_instance_of::<PyException>(self.py) {
                    return cause;
                }
                let refused = self.refuse(import, cause.value(self.py).to_string());
                refused.set_cause(self.py, Some(cause));
                refused
            })?;
        match source.len() > self.limits.source {
            true => Err(self.refuse(
                import,
                format!(
                    "module '{}' has {} bytes, at most {} are accepted",
                    import.path,
                    source.len(),
                    self.limits.source
                ),
            )),
            false => Ok(source),
        }
    }

    fn open(&mut self, path: &str, source: String) -> PyResult<()> {
        let py = self.py;
        let inside = |failure: Box<Failure>| {
            let known = failure.module.is_some();
            let failure = *failure;
            match known {
                true => failure.raise(py),
                false => failure.within(Some(path)).raise(py),
            }
        };
        let mut ast = self
            .driver
            .parse(py, source.clone(), false)
            .map_err(inside)?;
        self.mentions.read(&ast, &source).map_err(inside)?;
        let imported = self.load_imports(&ast)?;
        ast.set_source(path);
        let module = self.driver.load(py, ast).map_err(|failure| {
            let interrupt = self.driver.interrupt.take();
            interrupt.unwrap_or_else(|| inside(failure))
        })?;
        check_exports(&module, self.driver.run()).map_err(|error| {
            let failure = Failure::of_run(&error, self.limits);
            failure.within(Some(path)).raise(py)
        })?;
        let (variables, functions, _) = module.count();
        self.names
            .insert(path.to_owned(), 1 + variables + functions + imported);
        self.shelf.put(path, *module);
        Ok(())
    }
}

/// What a module exports lives as long as the script and is dropped on any stack, so it may not nest deep.
fn check_exports(module: &rhai::Module, run: &Run) -> Outcome<()> {
    let levels = run.limits.nesting;
    module
        .iter_var()
        .try_for_each(|(_, value)| check_export(value, run, levels))
}

fn check_export(value: &Dynamic, run: &Run, levels: usize) -> Outcome<()> {
    if let Some(function) = value.read_lock::<FnPtr>() {
        let levels = levels.checked_sub(1).ok_or_else(|| over(Ending::Nesting))?;
        let mut captured = function.iter_curry();
        return captured.try_for_each(|value| check_export(value, run, levels));
    }
    match value.is_array() || value.is_map() {
        true => leaving::check(value, run).map(drop),
        false => Ok(()),
    }
}
