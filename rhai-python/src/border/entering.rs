//! A value on its way in that is too large to be converted in one go: item by item, as deep as it nests.
//!
//! What it is in the middle of is kept apart from the stack, so that it can be left and come back to at any item.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pyo3::{PyTraverseError, PyVisit};
use rhai::{Array, Dynamic, Identifier, Map};

use super::{Border, Entered, FIRST_PARTIAL, deeper, get, name};
use crate::refusal::Refusal;
use crate::view::View;

/// A list or object with no more items, none of which has items itself, is converted in one go.
const FEW: usize = 32;

/// What is made of a list or an object.
enum Made {
    List(Array),
    /// `key` is that of the item which is converted.
    Object {
        keys: Py<PyList>,
        key: Identifier,
        map: Map,
    },
}

/// A list or object whose first items are converted.
struct Level {
    /// Its place in `Border::origins`.
    origin: usize,
    tag: i32,
    made: Made,
    /// The item that is converted next.
    next: usize,
    /// How deep its items may nest.
    levels: usize,
}

pub struct Entering {
    /// The outermost first.
    levels: Vec<Level>,
}

impl Entering {
    /// Begin with a list or an object.
    pub fn new(
        border: &mut Border,
        value: &Bound<'_, PyAny>,
        view: &View,
        levels: usize,
    ) -> Entered<Self> {
        let outermost = match (view.fields(), value.cast_exact::<PyDict>()) {
            (Some(fields), Ok(dict)) => {
                let keys = fields.iter().map(|field| field.key.bind(dict.py()));
                let there = keys.filter(|key| get(dict, key).is_some());
                let tag = FIRST_PARTIAL + border.partials.len() as i32;
                let keys = listed(dict, there)?;
                border.partials.push(border.origins.len());
                border.origins.push(value.clone().unbind());
                Level::new(border, tag, Made::object(keys), levels)?
            }
            _ => Level::open(border, value, levels)?,
        };
        Ok(Self {
            levels: vec![outermost],
        })
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut levels = self.levels.iter();
        levels.try_for_each(|level| match &level.made {
            Made::List(_) => Ok(()),
            Made::Object { keys, .. } => visit.call(keys),
        })
    }

    /// What was made so far: there may be much of it to drop.
    pub fn into_made(self) -> Box<[Dynamic]> {
        let levels = self.levels.into_iter();
        levels.map(|level| level.into_value()).collect()
    }

    /// Convert so many items: the value, once that was all of them.
    pub fn go_on(
        &mut self,
        py: Python<'_>,
        border: &mut Border,
        items: usize,
    ) -> Entered<Option<Dynamic>> {
        for _ in 0..items {
            match self.step(py, border) {
                Ok(None) => {}
                Ok(whole) => return Ok(whole),
                Err(refusal) => return Err(self.at(refusal)),
            }
        }
        Ok(None)
    }

    fn step(&mut self, py: Python<'_>, border: &mut Border) -> Entered<Option<Dynamic>> {
        let level = self.levels.last_mut().expect("it is not whole");
        let made = match level.take_next(py, border)? {
            Some(item) if is_small(&item) => {
                let item = border.put(&item, level.levels);
                Some(item.map_err(|refusal| level.at(refusal))?)
            }
            Some(item) => {
                let inner = Level::open(border, &item, level.levels);
                let inner = inner.map_err(|refusal| level.at(refusal))?;
                self.levels.push(inner);
                None
            }
            None => self.levels.pop().map(Level::into_value),
        };
        let Some(made) = made else {
            return Ok(None);
        };
        match self.levels.last_mut() {
            Some(outer) => {
                outer.add(made);
                Ok(None)
            }
            None => Ok(Some(made)),
        }
    }

    /// Where what was refused in the innermost level is.
    fn at(&self, refusal: Box<Refusal>) -> Box<Refusal> {
        let outer = self.levels.iter().rev().skip(1);
        outer.fold(refusal, |refusal, level| level.at(refusal))
    }
}

impl Made {
    fn object(keys: Py<PyList>) -> Self {
        Self::Object {
            keys,
            key: Identifier::new_const(),
            map: Map::new(),
        }
    }
}

impl Level {
    fn open(border: &mut Border, value: &Bound<'_, PyAny>, levels: usize) -> Entered<Self> {
        let tag = border.tag(value);
        let made = match value.cast::<PyDict>() {
            Ok(dict) => Made::object(dict.keys().unbind()),
            Err(_) => Made::List(Array::with_capacity(value.len().unwrap_or(0))),
        };
        Self::new(border, tag, made, levels)
    }

    /// For the value that `border` got to know last.
    fn new(border: &Border, tag: i32, made: Made, levels: usize) -> Entered<Self> {
        Ok(Self {
            origin: border.origins.len() - 1,
            tag,
            made,
            next: 0,
            levels: deeper(levels)?,
        })
    }

    /// The next item, counted. Python code that runs meanwhile may have changed the list or the object: what is not
    /// there any more is left out.
    fn take_next<'py>(
        &mut self,
        py: Python<'py>,
        border: &mut Border,
    ) -> Entered<Option<Bound<'py, PyAny>>> {
        let origin = border.origins[self.origin].bind(py);
        match &mut self.made {
            Made::List(_) => {
                let list = origin.cast::<PyList>().ok();
                let item = list.and_then(|list| list.get_item(self.next).ok());
                if item.is_some() {
                    border.sizes.element();
                    self.next += 1;
                }
                Ok(item)
            }
            Made::Object { keys, key, .. } => {
                while let Ok(next) = keys.bind(py).get_item(self.next) {
                    self.next += 1;
                    *key = name(&next)?.into();
                    let dict = origin.cast::<PyDict>().ok();
                    let item = dict.and_then(|dict| dict.get_item(&next).ok().flatten());
                    if item.is_some() {
                        border.sizes.entry(key);
                        return Ok(item);
                    }
                }
                Ok(None)
            }
        }
    }

    fn add(&mut self, item: Dynamic) {
        match &mut self.made {
            Made::List(array) => array.push(item),
            Made::Object { key, map, .. } => {
                map.insert(std::mem::take(key), item);
            }
        }
    }

    fn into_value(self) -> Dynamic {
        let mut value = match self.made {
            Made::List(array) => Dynamic::from_array(array),
            Made::Object { map, .. } => Dynamic::from_map(map),
        };
        value.set_tag(self.tag);
        value
    }

    fn at(&self, refusal: Box<Refusal>) -> Box<Refusal> {
        match &self.made {
            Made::List(_) => refusal.under_index(self.next - 1),
            Made::Object { key, .. } => refusal.under_key(key),
        }
    }
}

fn listed<'a, 'py: 'a>(
    dict: &Bound<'py, PyDict>,
    keys: impl Iterator<Item = &'a Bound<'py, PyString>>,
) -> Entered<Py<PyList>> {
    let keys = PyList::new(dict.py(), keys.collect::<Vec<_>>());
    match keys {
        Ok(keys) => Ok(keys.unbind()),
        Err(_) => Err(Refusal::new("an object")),
    }
}

/// Whether converting it takes no time to speak of.
fn is_small(value: &Bound<'_, PyAny>) -> bool {
    if let Ok(list) = value.cast::<PyList>() {
        list.len() <= FEW && list.iter().all(|item| has_no_items(&item))
    } else if let Ok(dict) = value.cast::<PyDict>() {
        dict.len() <= FEW && dict.iter().all(|(_, item)| has_no_items(&item))
    } else {
        true
    }
}

fn has_no_items(value: &Bound<'_, PyAny>) -> bool {
    if let Ok(list) = value.cast::<PyList>() {
        list.is_empty()
    } else if let Ok(dict) = value.cast::<PyDict>() {
        dict.is_empty()
    } else {
        true
    }
}
