//! A long list on its way out, item by item; so are the lists that are items of it.

use std::vec::IntoIter;

use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{PyTraverseError, PyVisit};
use rhai::{Array, Dynamic};

use super::Border;
use crate::view::View;

/// A list of no more items is converted in one go.
const FEW: usize = 256;

/// A list whose first items are converted. As long as they are those of the original, nothing is made: it leaves
/// itself if all are.
struct Level {
    items: IntoIter<Dynamic>,
    /// Its place in `Border::origins`, if that is a list as long as this one.
    origin: Option<usize>,
    /// Items that are those of the original.
    same: usize,
    changed: Option<Changed>,
}

/// The list that leaves in place of the original: first it is given the items that are the same.
struct Changed {
    list: Py<PyList>,
    /// What comes after them.
    next: Option<Py<PyAny>>,
}

pub struct Departing {
    /// The outermost first.
    levels: Vec<Level>,
}

impl Departing {
    /// Begin with a value that may leave (`leaving`), if it is a long list; it comes back if it is not.
    pub fn new(border: &Border, py: Python<'_>, value: Dynamic) -> Result<Self, Dynamic> {
        Ok(Self {
            levels: vec![Level::open(border, py, value)?],
        })
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut changed = self
            .levels
            .iter()
            .filter_map(|level| level.changed.as_ref());
        changed.try_for_each(|changed| {
            visit.call(&changed.list)?;
            visit.call(&changed.next)
        })
    }

    /// Convert so many items: the list, once that was all of them.
    pub fn go_on<'py>(
        &mut self,
        py: Python<'py>,
        border: &Border,
        view: &View,
        items: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        for _ in 0..items {
            let level = self.levels.last_mut().expect("it is not whole");
            if level.copy_same(py, border)? {
                continue;
            }
            let whole = match level.items.next() {
                Some(item) => match Level::open(border, py, item) {
                    Ok(inner) => {
                        self.levels.push(inner);
                        continue;
                    }
                    Err(item) => {
                        let before = level.before(py, border);
                        let after = border.take(py, &item, before.as_ref(), view)?;
                        level.add(after, before)?;
                        continue;
                    }
                },
                None => level.leave(py, border)?,
            };
            self.levels.pop();
            match self.levels.last_mut() {
                Some(outer) => {
                    let before = outer.before(py, border);
                    outer.add(whole, before)?;
                }
                None => return Ok(Some(whole)),
            }
        }
        Ok(None)
    }
}

impl Level {
    fn open(border: &Border, py: Python<'_>, value: Dynamic) -> Result<Self, Dynamic> {
        // What a closure shares is no list of its own.
        if value.is_shared()
            || !value
                .read_lock::<Array>()
                .is_some_and(|list| is_long(&list))
        {
            return Err(value);
        }
        let origin = usize::try_from(value.tag())
            .ok()
            .and_then(|tag| tag.checked_sub(1));
        let items = value.try_cast_result::<Array>()?;
        let origin = origin.filter(|origin| {
            let origin = border
                .origins
                .get(*origin)
                .map(|origin| origin.bind(py).cast::<PyList>());
            matches!(origin, Some(Ok(list)) if list.len() == items.len())
        });
        Ok(Self {
            items: items.into_iter(),
            origin,
            same: 0,
            changed: None,
        })
    }

    fn origin<'py>(&self, py: Python<'py>, border: &Border) -> Option<Bound<'py, PyList>> {
        let origin = border.origins.get(self.origin?)?.bind(py);
        origin.cast::<PyList>().ok().cloned()
    }

    /// What was in the place of the next item.
    fn before<'py>(&self, py: Python<'py>, border: &Border) -> Option<Bound<'py, PyAny>> {
        let origin = self.origin(py, border)?;
        let next = match &self.changed {
            Some(changed) => changed.list.bind(py).len(),
            None => self.same,
        };
        origin.get_item(next).ok()
    }

    /// Whether there was one more unchanged item to be brought to the list that leaves, or what comes after them.
    fn copy_same(&mut self, py: Python<'_>, border: &Border) -> PyResult<bool> {
        let origin = self.origin(py, border);
        let Some(changed) = self.changed.as_mut() else {
            return Ok(false);
        };
        if changed.next.is_none() {
            return Ok(false);
        }
        let list = changed.list.bind(py);
        match origin.filter(|_| list.len() < self.same) {
            Some(origin) => list.append(origin.get_item(list.len())?)?,
            None => list.append(changed.next.take())?,
        }
        Ok(true)
    }

    fn add<'py>(
        &mut self,
        after: Bound<'py, PyAny>,
        before: Option<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        if let Some(changed) = &self.changed {
            return changed.list.bind(after.py()).append(after);
        }
        match before.is_some_and(|before| before.is(&after)) {
            true => self.same += 1,
            false => {
                self.changed = Some(Changed {
                    list: PyList::empty(after.py()).unbind(),
                    next: Some(after.unbind()),
                });
            }
        }
        Ok(())
    }

    /// All items are converted.
    fn leave<'py>(&mut self, py: Python<'py>, border: &Border) -> PyResult<Bound<'py, PyAny>> {
        match (self.changed.take(), self.origin(py, border)) {
            (Some(changed), _) => Ok(changed.list.into_bound(py).into_any()),
            (None, Some(origin)) => Ok(origin.into_any()),
            (None, None) => Ok(PyList::empty(py).into_any()),
        }
    }
}

/// Whether it has many items, or lists among them, which may be long themselves.
fn is_long(array: &Array) -> bool {
    array.len() > FEW || array.iter().any(has_items)
}

fn has_items(value: &Dynamic) -> bool {
    !value.is_shared()
        && value
            .read_lock::<Array>()
            .is_some_and(|array| !array.is_empty())
}
