//! The text of values, of bounded length and depth.
//!
//! The engine's own formatting makes the whole text first and asks later whether it is too long; a long string in
//! thousands of entries makes gigabytes.

use std::fmt::{self, Write as _};

use rhai::{Array, Dynamic, Engine, FnPtr, ImmutableString, Map, Module, NativeCallContext};

use super::{changer, reader};
use crate::limits::Ending;
use crate::run::{self, Outcome, over, spend};

/// Values nested deeper have no text. Nothing deeper than `max_nesting` can leave a script anyway.
const MOST_LEVELS: usize = 256;

/// A text that takes so many bytes and no more.
struct Bounded {
    text: String,
    most: usize,
    /// Why it is not the whole text.
    stopped: Option<Ending>,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > self.most {
            let mut end = self.most - self.text.len();
            while !part.is_char_boundary(end) {
                end -= 1;
            }
            self.text.push_str(&part[..end]);
            return self.stop(Ending::Text);
        }
        self.text.push_str(part);
        Ok(())
    }
}

impl Bounded {
    fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            most,
            stopped: None,
        }
    }

    fn stop(&mut self, why: Ending) -> fmt::Result {
        self.stopped = self.stopped.or(Some(why));
        Err(fmt::Error)
    }

    /// As `to_string` has it.
    fn plain(&mut self, value: &Dynamic) -> fmt::Result {
        match is_collection(value) {
            true => self.quoted(value, MOST_LEVELS),
            false => write!(self, "{value}"),
        }
    }

    /// As it is shown inside of arrays and objects.
    fn quoted(&mut self, value: &Dynamic, levels: usize) -> fmt::Result {
        if let Some(array) = value.read_lock::<Array>() {
            self.array(&array, levels)
        } else if let Some(map) = value.read_lock::<Map>() {
            self.map(&map, levels)
        } else if value.is_unit() {
            self.write_str("()")
        } else if value.is_char() || value.is_fnptr() {
            write!(self, "{value}")
        } else {
            write!(self, "{value:?}")
        }
    }

    fn array(&mut self, array: &Array, levels: usize) -> fmt::Result {
        let Some(levels) = levels.checked_sub(1) else {
            return self.stop(Ending::Nesting);
        };
        self.write_str("[")?;
        for (index, item) in array.iter().enumerate() {
            if index > 0 {
                self.write_str(", ")?;
            }
            self.quoted(item, levels)?;
        }
        self.write_str("]")
    }

    fn map(&mut self, map: &Map, levels: usize) -> fmt::Result {
        let Some(levels) = levels.checked_sub(1) else {
            return self.stop(Ending::Nesting);
        };
        self.write_str("#{")?;
        for (index, (key, item)) in map.iter().enumerate() {
            if index > 0 {
                self.write_str(", ")?;
            }
            write!(self, "{key:?}: ")?;
            self.quoted(item, levels)?;
        }
        self.write_str("}")
    }
}

fn is_collection(value: &Dynamic) -> bool {
    value.is_array() || value.is_map()
}

/// The beginning of the text of a value, for messages: so many characters and a sign that there is more.
pub fn brief(value: &Dynamic, characters: usize) -> String {
    beginning(characters, |bounded| bounded.plain(value))
}

/// The same, with strings in quotes.
pub fn brief_debug(value: &Dynamic, characters: usize) -> String {
    beginning(characters, |bounded| bounded.quoted(value, MOST_LEVELS))
}

fn beginning(characters: usize, write: impl FnOnce(&mut Bounded) -> fmt::Result) -> String {
    let mut bounded = Bounded::new(characters * 4);
    let whole = write(&mut bounded).is_ok();
    match (whole, bounded.text.char_indices().nth(characters)) {
        (true, None) => bounded.text,
        (false, None) => bounded.text + "…",
        (_, Some((end, _))) => format!("{}…", &bounded.text[..end]),
    }
}

/// The text of a value, unless it is longer than a string may be.
fn full(value: &Dynamic, engine: &Engine) -> Outcome<String> {
    text_of(value, engine, Bounded::plain).map_err(over)
}

fn text_of(
    value: &Dynamic,
    engine: &Engine,
    write: impl FnOnce(&mut Bounded, &Dynamic) -> fmt::Result,
) -> Result<String, Ending> {
    let mut bounded = Bounded::new(engine.max_string_size());
    match write(&mut bounded, value) {
        Ok(()) => Ok(bounded.text),
        Err(_) => Err(bounded.stopped.unwrap_or(Ending::Text)),
    }
}

/// The engine answers an error of these functions, and a value over its limits, with formatting of its own, without
/// bound. So they give no error: they take the value away and see to it that the run ends at once.
fn collection(engine: &Engine, value: &mut Dynamic) -> ImmutableString {
    match text_of(value, engine, |bounded, value| {
        bounded.quoted(value, MOST_LEVELS)
    }) {
        Ok(text) => {
            let _ = spend(text.len());
            text.into()
        }
        Err(ending) => {
            run::doom(ending);
            *value = Dynamic::UNIT;
            ImmutableString::new()
        }
    }
}

pub fn register(module: &mut Module) {
    for name in ["to_string", "to_debug"] {
        for kind in [
            std::any::TypeId::of::<Array>(),
            std::any::TypeId::of::<Map>(),
        ] {
            reader(name).set_into_module_raw(module, [kind], raw(collection));
        }
    }
    reader("to_debug").set_into_module(module, |function: &mut FnPtr| -> ImmutableString {
        function.to_string().into()
    });
    reader("+").set_into_module(
        module,
        |context: NativeCallContext, text: &mut ImmutableString, value: Dynamic| {
            joined(&context, text, &full(&value, context.engine())?)
        },
    );
    reader("+").set_into_module(
        module,
        |context: NativeCallContext, value: &mut Dynamic, text: ImmutableString| {
            joined(&context, &full(value, context.engine())?, &text)
        },
    );
    for name in ["+=", "append"] {
        changer(name).set_into_module(
            module,
            |context: NativeCallContext,
             text: &mut ImmutableString,
             value: Dynamic|
             -> Outcome<()> {
                *text = joined(&context, text, &full(&value, context.engine())?)?;
                Ok(())
            },
        );
    }
}

fn joined(context: &NativeCallContext, left: &str, right: &str) -> Outcome<ImmutableString> {
    if left.len() + right.len() > context.engine().max_string_size() {
        return Err(over(Ending::Text));
    }
    let mut text = String::with_capacity(left.len() + right.len());
    text.push_str(left);
    text.push_str(right);
    Ok(text.into())
}

/// A function of one argument, in the engine's lowest form: the value itself, to be taken away if need be.
fn raw(function: fn(&Engine, &mut Dynamic) -> ImmutableString) -> rhai::plugin::RhaiFunc {
    rhai::plugin::RhaiFunc::Method {
        func: rhai::Shared::new(
            move |context: Option<NativeCallContext>, arguments: &mut [&mut Dynamic]| {
                let context = context.expect("asked for below");
                Ok(function(context.engine(), arguments[0]).into())
            },
        ),
        has_context: true,
        is_pure: true,
        is_volatile: false,
    }
}
