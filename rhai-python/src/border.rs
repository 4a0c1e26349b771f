//! Values across the border, remembering where each came from.
//!
//! Every list and object handed in is tagged with its place in `origins`. Tags survive cloning, so
//! on the way out a value still knows its original: unchanged, the very same Python object leaves;
//! changed, the original gives the key order. A tag is a hint and no more: what leaves is compared
//! with what came in, item by item.

use std::time::Instant;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use pyo3::{PyTraverseError, PyVisit};
use rhai::{Array, Dynamic, ImmutableString, Map};

use crate::limits::Sizes;
use crate::refusal::Refusal;
use crate::view::{Field, View};

pub mod departing;
pub mod entering;

/// Values that cross together. A change of stacks for each would cost some 40 ns.
pub const MOST_TOGETHER: usize = 32;

/// Items of one value that are converted in one go; one that has more is `Entering`.
const MOST_AT_ONCE: usize = 4_096;

/// Originals that are let go of between two looks at the clock.
const FORGOTTEN_AT_ONCE: usize = 1_024;

/// A Python object takes some times what it says.
const KEPT_PER_BYTE: usize = 4;

/// Tags from here on mark values of which only the fields that the script names were converted.
const FIRST_PARTIAL: i32 = i32::MIN;

/// Which of the values that came in together this is, when it is one that was converted in part.
pub fn partial(value: &Dynamic) -> Option<usize> {
    let index = value.tag().wrapping_sub(FIRST_PARTIAL);
    usize::try_from(index)
        .ok()
        .filter(|index| *index < MOST_TOGETHER)
}

type Entered<T> = Result<T, Box<Refusal>>;

#[derive(Default)]
pub struct Border {
    origins: Vec<Py<PyAny>>,
    /// Places in `origins` of the values that were converted in part.
    partials: Vec<usize>,
    sizes: Sizes,
    /// Items that may still be converted in this go.
    room: usize,
}

impl Border {
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.origins
            .iter()
            .try_for_each(|origin| visit.call(origin))
    }

    /// Forget the values of runs that are over (true), or as many of them as the slice has time for (false).
    pub fn forget(&mut self, slice_end: Option<Instant>) -> bool {
        self.partials.clear();
        while self.origins.len() > FORGOTTEN_AT_ONCE {
            self.origins
                .truncate(self.origins.len() - FORGOTTEN_AT_ONCE);
            if is_over(slice_end) {
                return false;
            }
        }
        self.origins.clear();
        true
    }

    /// Forget what was converted of a value that turned out to be too large for one go.
    fn begin_again(&mut self, origins: usize, partials: usize) {
        self.origins.truncate(origins);
        self.partials.truncate(partials);
        self.sizes = Sizes::default();
        self.room = usize::MAX;
    }

    /// The size of the value that came in last.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The value of a run, of the size that is in `sizes` then; None if it is too large to be converted in one go.
    /// `view` names the fields the script can reach, when that is known.
    pub fn enter(
        &mut self,
        value: &Bound<'_, PyAny>,
        view: &View,
        levels: usize,
    ) -> Entered<Option<Dynamic>> {
        let (origins, partials) = (self.origins.len(), self.partials.len());
        self.sizes = Sizes::default();
        self.room = MOST_AT_ONCE;
        let entered = match (view.fields(), value.cast_exact::<PyDict>()) {
            (Some(fields), Ok(dict)) => self.enter_fields(dict, fields, levels),
            _ => self.put(value, levels),
        };
        match entered {
            Err(refusal) if refusal.large => {
                self.begin_again(origins, partials);
                Ok(None)
            }
            entered => entered.map(Some),
        }
    }

    fn enter_fields(
        &mut self,
        dict: &Bound<'_, PyDict>,
        fields: &[Field],
        levels: usize,
    ) -> Entered<Dynamic> {
        let tag = FIRST_PARTIAL + self.partials.len() as i32;
        self.partials.push(self.origins.len());
        self.origins.push(dict.clone().into_any().unbind());
        let mut map = Map::new();
        for field in fields {
            if let Some(item) = get(dict, field.key.bind(dict.py())) {
                self.sizes.entry(&field.name);
                let item = self
                    .put(&item, levels - 1)
                    .map_err(|refusal| refusal.under_key(&field.name))?;
                map.insert(field.name.clone(), item);
            }
        }
        let mut map = Dynamic::from_map(map);
        map.set_tag(tag);
        Ok(map)
    }

    /// A value that nests at most so many levels.
    pub fn put(&mut self, value: &Bound<'_, PyAny>, levels: usize) -> Entered<Dynamic> {
        if let Ok(text) = value.cast_exact::<PyString>() {
            return self.put_text(text);
        }
        if let Ok(number) = value.cast_exact::<PyFloat>() {
            self.sizes.number();
            return Ok(Dynamic::from_float(number.value()));
        }
        if value.is_exact_instance_of::<PyInt>() {
            return self.put_integer(value);
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return self.put_dict(dict, levels);
        }
        if value.is_none() {
            self.sizes.number();
            return Ok(Dynamic::UNIT);
        }
        if let Ok(truth) = value.cast_exact::<PyBool>() {
            self.sizes.number();
            return Ok(truth.is_true().into());
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return self.put_list(list, levels);
        }
        self.put_other(value, levels)
    }

    fn put_text(&mut self, text: &Bound<'_, PyString>) -> Entered<Dynamic> {
        let text = text
            .to_str()
            .map_err(|_| Refusal::new("a string with a lone surrogate"))?;
        self.sizes.text(text.len());
        Ok(text.into())
    }

    fn put_integer(&mut self, value: &Bound<'_, PyAny>) -> Entered<Dynamic> {
        match narrow(value) {
            Some(number) => {
                self.sizes.number();
                Ok(Dynamic::from_int(number))
            }
            None => self.put_number(value),
        }
    }

    /// Whatever knows its float: a decimal, an integer of more than 64 bits. Unchanged, it comes back as it was.
    fn put_number(&mut self, value: &Bound<'_, PyAny>) -> Entered<Dynamic> {
        let number = value.extract::<f64>().map_err(|error| {
            Refusal::new(match error.is_instance_of::<PyOverflowError>(value.py()) {
                true => "a number beyond the range of a double".to_owned(),
                false => format!("a value of type {}", type_name(value)),
            })
        })?;
        self.sizes.number();
        let mut number = Dynamic::from_float(number);
        number.set_tag(self.tag(value));
        Ok(number)
    }

    fn put_dict(&mut self, dict: &Bound<'_, PyDict>, levels: usize) -> Entered<Dynamic> {
        let levels = deeper(levels)?;
        self.make_room(dict.len())?;
        let tag = self.tag(dict);
        let mut map = Map::new();
        for (key, item) in dict.iter() {
            let key = name(&key)?;
            self.sizes.entry(key);
            let item = self
                .put(&item, levels)
                .map_err(|refusal| refusal.under_key(key))?;
            map.insert(key.into(), item);
        }
        let mut map = Dynamic::from_map(map);
        map.set_tag(tag);
        Ok(map)
    }

    fn put_list(&mut self, list: &Bound<'_, PyList>, levels: usize) -> Entered<Dynamic> {
        let levels = deeper(levels)?;
        self.make_room(list.len())?;
        let tag = self.tag(list);
        let mut array = Array::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            self.sizes.element();
            array.push(
                self.put(&item, levels)
                    .map_err(|refusal| refusal.under_index(index))?,
            );
        }
        let mut array = Dynamic::from_array(array);
        array.set_tag(tag);
        Ok(array)
    }

    fn make_room(&mut self, items: usize) -> Entered<()> {
        let room = self.room.checked_sub(items);
        self.room = room.ok_or_else(Refusal::large)?;
        Ok(())
    }

    /// Subclasses, and numbers of other kinds.
    fn put_other(&mut self, value: &Bound<'_, PyAny>, levels: usize) -> Entered<Dynamic> {
        if let Ok(text) = value.cast::<PyString>() {
            self.put_text(text)
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.put_dict(dict, levels)
        } else if let Ok(list) = value.cast::<PyList>() {
            self.put_list(list, levels)
        } else if value.cast::<PyInt>().is_ok() {
            self.put_integer(value)
        } else {
            self.put_number(value)
        }
    }

    /// What a host function answered, and the bytes that are kept for it here until the runs are over: lists and
    /// objects are the originals of what may leave again.
    pub fn put_answer(
        &mut self,
        value: &Bound<'_, PyAny>,
        levels: usize,
    ) -> Entered<(Dynamic, usize)> {
        let origins = self.origins.len();
        self.sizes = Sizes::default();
        self.room = usize::MAX;
        let answer = self.put(value, levels)?;
        let kept = match self.origins.len() > origins {
            true => self.sizes.bytes * KEPT_PER_BYTE,
            false => 0,
        };
        Ok((answer, kept))
    }

    fn tag(&mut self, value: &Bound<'_, PyAny>) -> i32 {
        self.origins.push(value.clone().unbind());
        i32::try_from(self.origins.len()).unwrap_or(0)
    }

    fn origin<'a, 'py>(
        &'a self,
        py: Python<'py>,
        value: &Dynamic,
    ) -> Option<&'a Bound<'py, PyAny>> {
        let index = usize::try_from(value.tag()).ok()?.checked_sub(1)?;
        self.origins.get(index).map(|origin| origin.bind(py))
    }

    /// A value that may leave (`leaving`).
    pub fn leave<'py>(
        &self,
        py: Python<'py>,
        value: &Dynamic,
        view: &View,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(partial) = partial(value).and_then(|index| self.partials.get(index)) {
            if let (Some(fields), Some(map)) = (view.fields(), value.read_lock::<Map>()) {
                return self.merge(py, &map, *partial, fields, view);
            }
        }
        self.take(py, value, None, view)
    }

    /// The size of the whole value, of which the engine saw a part.
    pub fn whole_size(&self, py: Python<'_>, index: usize, levels: usize) -> usize {
        let mut apart = Self {
            room: usize::MAX,
            ..Self::default()
        };
        if let Some(origin) = self.partials.get(index) {
            // What cannot enter leaves as it came; its size counts up to there.
            let _ = apart.put(self.origins[*origin].bind(py), levels);
        }
        apart.sizes.bytes
    }

    /// The value that came in, with the fields that the script changed.
    fn merge<'py>(
        &self,
        py: Python<'py>,
        map: &Map,
        origin: usize,
        fields: &[Field],
        view: &View,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dict = self.origins[origin].bind(py).cast::<PyDict>()?;
        let mut copy: Option<Bound<'py, PyDict>> = None;
        for field in fields {
            let Some(item) = map.get(field.name.as_str()) else {
                continue;
            };
            let key = field.key.bind(py);
            let before = get(dict, key);
            let after = self.take(py, item, before.as_ref(), view)?;
            if before.is_some_and(|before| before.is(&after)) {
                continue;
            }
            let target = match &copy {
                Some(copy) => copy,
                None => copy.insert(dict.copy()?),
            };
            target.set_item(key, after)?;
        }
        Ok(copy.map_or_else(|| dict.clone().into_any(), Bound::into_any))
    }

    /// `hint` is what was in this place before: where nothing changed, it is what leaves.
    fn take<'py>(
        &self,
        py: Python<'py>,
        value: &Dynamic,
        hint: Option<&Bound<'py, PyAny>>,
        view: &View,
    ) -> PyResult<Bound<'py, PyAny>> {
        // Asked by read_lock, because as_int and the like look up the name of the type they found instead.
        if let Some(text) = value.read_lock::<ImmutableString>() {
            return Ok(take_text(py, &text, hint));
        }
        if let Some(number) = value.read_lock::<f64>() {
            return Ok(self.take_float(py, value, *number, hint));
        }
        if let Some(number) = value.read_lock::<i64>() {
            let number = *number;
            let before = hint.filter(|hint| hint.is_exact_instance_of::<PyInt>());
            return Ok(
                match before.filter(|before| narrow(before) == Some(number)) {
                    Some(before) => before.clone(),
                    None => PyInt::new(py, number).into_any(),
                },
            );
        }
        if let Some(map) = value.read_lock::<Map>() {
            let origin = self
                .origin(py, value)
                .and_then(|origin| origin.cast::<PyDict>().ok());
            return match origin {
                Some(origin) => self.take_changed(py, &map, origin, view),
                None => self.take_new(py, &map, view),
            };
        }
        if let Some(array) = value.read_lock::<Array>() {
            let origin = self
                .origin(py, value)
                .and_then(|origin| origin.cast::<PyList>().ok());
            return self.take_array(py, &array, origin, view);
        }
        if let Ok(truth) = value.as_bool() {
            return Ok(PyBool::new(py, truth).to_owned().into_any());
        }
        if let Ok(letter) = value.as_char() {
            return Ok(PyString::new(py, letter.encode_utf8(&mut [0; 4])).into_any());
        }
        match value.is_unit() {
            true => Ok(py.None().into_bound(py)),
            false => Err(PyTypeError::new_err(format!(
                "a {} cannot leave a script",
                value.type_name()
            ))),
        }
    }

    fn take_float<'py>(
        &self,
        py: Python<'py>,
        value: &Dynamic,
        number: f64,
        hint: Option<&Bound<'py, PyAny>>,
    ) -> Bound<'py, PyAny> {
        let same = |before: &f64| before.to_bits() == number.to_bits();
        if let Some(before) = hint.and_then(|hint| hint.cast_exact::<PyFloat>().ok()) {
            if same(&before.value()) {
                return before.clone().into_any();
            }
        }
        match self.origin(py, value) {
            Some(before) if before.extract::<f64>().as_ref().is_ok_and(same) => before.clone(),
            _ => PyFloat::new(py, number).into_any(),
        }
    }

    fn take_array<'py>(
        &self,
        py: Python<'py>,
        array: &Array,
        origin: Option<&Bound<'py, PyList>>,
        view: &View,
    ) -> PyResult<Bound<'py, PyAny>> {
        let origin = origin.filter(|origin| origin.len() == array.len());
        let mut same = origin.is_some();
        let mut items = Vec::with_capacity(array.len());
        for (index, item) in array.iter().enumerate() {
            let before = origin.and_then(|origin| origin.get_item(index).ok());
            let after = self.take(py, item, before.as_ref(), view)?;
            same = same && before.is_some_and(|before| before.is(&after));
            items.push(after);
        }
        match origin {
            Some(origin) if same => Ok(origin.clone().into_any()),
            _ => Ok(PyList::new(py, items)?.into_any()),
        }
    }

    /// A copy of the original in its order, or the original itself.
    fn take_changed<'py>(
        &self,
        py: Python<'py>,
        map: &Map,
        origin: &Bound<'py, PyDict>,
        view: &View,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut found = 0;
        let mut changed: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> = Vec::new();
        let mut removed: Vec<Bound<'py, PyAny>> = Vec::new();
        for (key, before) in origin.iter() {
            let name = key.cast::<PyString>()?;
            match map.get(name.to_str()?) {
                None => removed.push(key),
                Some(item) => {
                    found += 1;
                    let after = self.take(py, item, Some(&before), view)?;
                    if !after.is(&before) {
                        changed.push((key, after));
                    }
                }
            }
        }
        if removed.is_empty() && changed.is_empty() && found == map.len() {
            return Ok(origin.clone().into_any());
        }
        let copy = origin.copy()?;
        for key in removed {
            copy.del_item(key)?;
        }
        for (key, after) in changed {
            copy.set_item(key, after)?;
        }
        if found < map.len() {
            self.add_new(py, map, &copy, view)?;
        }
        Ok(copy.into_any())
    }

    fn take_new<'py>(
        &self,
        py: Python<'py>,
        map: &Map,
        view: &View,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dict = PyDict::new(py);
        self.add_new(py, map, &dict, view)?;
        Ok(dict.into_any())
    }

    /// Add the entries that `dict` does not have, in the order in which the script first names them.
    fn add_new<'py>(
        &self,
        py: Python<'py>,
        map: &Map,
        dict: &Bound<'py, PyDict>,
        view: &View,
    ) -> PyResult<()> {
        let mut fresh: Vec<(u32, Bound<'py, PyString>, &Dynamic)> = Vec::with_capacity(map.len());
        for (name, item) in map {
            let (rank, key) = view.key(py, name);
            if dict.is_empty() || !dict.contains(&key)? {
                fresh.push((rank, key, item));
            }
        }
        fresh.sort_by_key(|(rank, ..)| *rank);
        for (_, key, item) in fresh {
            dict.set_item(key, self.take(py, item, None, view)?)?;
        }
        Ok(())
    }
}

/// Whether a slice that ends then is over.
pub fn is_over(slice_end: Option<Instant>) -> bool {
    slice_end.is_some_and(|end| Instant::now() >= end)
}

fn take_text<'py>(
    py: Python<'py>,
    text: &str,
    hint: Option<&Bound<'py, PyAny>>,
) -> Bound<'py, PyAny> {
    if let Some(before) = hint.and_then(|hint| hint.cast_exact::<PyString>().ok()) {
        if before.to_str().is_ok_and(|before| before == text) {
            return before.clone().into_any();
        }
    }
    PyString::new(py, text).into_any()
}

/// An int of 64 bits; None when it is wider.
fn narrow(value: &Bound<'_, PyAny>) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: callers pass ints, for which this cannot fail; the interpreter is attached.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    (overflow == 0).then_some(number)
}

/// None also when the look-up fails, which it cannot for a string.
fn get<'py>(dict: &Bound<'py, PyDict>, key: &Bound<'py, PyString>) -> Option<Bound<'py, PyAny>> {
    dict.get_item(key).ok().flatten()
}

fn name<'a>(key: &'a Bound<'_, PyAny>) -> Entered<&'a str> {
    let key = key
        .cast::<PyString>()
        .map_err(|_| Refusal::new(format!("a key of type {}", type_name(key))))?;
    key.to_str()
        .map_err(|_| Refusal::new("a key with a lone surrogate"))
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    let name = value.get_type().name();
    name.map_or_else(|_| "unknown".to_owned(), |name| name.to_string())
}

fn deeper(levels: usize) -> Entered<usize> {
    levels.checked_sub(1).ok_or_else(Refusal::deep)
}
