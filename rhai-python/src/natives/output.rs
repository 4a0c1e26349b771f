//! `emit`, `print` and `debug`: what a script gives away.

use std::any::TypeId;

use rhai::plugin::RhaiFunc;
use rhai::{Array, Dynamic, FnPtr, ImmutableString, Map, Module, NativeCallContext, Shared};

use super::{reader, text};
use crate::border::partial;
use crate::failure::failed;
use crate::leaving;
use crate::machine::{Command, Event};
use crate::run::{Outcome, Run, ask, current};

/// So many characters of what is printed are kept.
const MOST_CHARACTERS: usize = 4_096;

pub fn register(module: &mut Module) {
    reader("emit").set_into_module_raw(module, [TypeId::of::<Dynamic>()], emit());
    for kind in ["print", "debug"] {
        for argument in printable() {
            reader(kind).set_into_module_raw(module, [argument], note(kind));
        }
        reader(kind).set_into_module(module, move |context: NativeCallContext| {
            keep(kind, &context, String::new())
        });
    }
}

/// Every type for which the engine has a function of that name, and the rest.
fn printable() -> [TypeId; 10] {
    [
        TypeId::of::<Dynamic>(),
        TypeId::of::<ImmutableString>(),
        TypeId::of::<char>(),
        TypeId::of::<bool>(),
        TypeId::of::<()>(),
        TypeId::of::<f64>(),
        TypeId::of::<f32>(),
        TypeId::of::<FnPtr>(),
        TypeId::of::<Array>(),
        TypeId::of::<Map>(),
    ]
}

/// With its argument by value, so that the engine does not measure it as if the script had built it.
fn emit() -> RhaiFunc {
    RhaiFunc::Pure {
        func: Shared::new(
            |_: Option<NativeCallContext>, arguments: &mut [&mut Dynamic]| {
                // Flat, so that a closure that shares the value cannot change it any more.
                let value = std::mem::take(arguments[0]).flatten();
                let emitted = current(|run| emit_from(run, value));
                emitted.unwrap_or_else(|| Err(failed("emit is for runs")))?;
                Ok(Dynamic::UNIT)
            },
        ),
        has_context: false,
        is_pure: true,
        is_volatile: true,
    }
}

fn emit_from(run: &Run, value: Dynamic) -> Outcome<()> {
    let values = match run.emits_lists {
        true => list_length(&value)?,
        false => 1,
    };
    let mut sizes = leaving::check(&value, run)?;
    if partial(&value).is_some() {
        sizes.bytes = whole(run, sizes.bytes)?;
    }
    run.emit(value, values, sizes.bytes)
}

fn list_length(value: &Dynamic) -> Outcome<usize> {
    match value.read_lock::<Array>() {
        Some(list) => Ok(list.len()),
        None => Err(failed(format!(
            "emit takes a list here, not {}",
            form(value)
        ))),
    }
}

/// The size of the value that came in, of which the engine has a part. The first one is free: it
/// came in, so it may leave, and most runs emit no second.
fn whole(run: &Run, part: usize) -> Outcome<usize> {
    match (run.is_first_partial(), run.whole.get()) {
        (true, _) => Ok(part),
        (_, Some(size)) => Ok(size),
        _ => match ask(Event::Measure)? {
            Command::Size(size) => {
                run.whole.set(Some(size));
                Ok(size)
            }
            _ => Ok(part),
        },
    }
}

fn form(value: &Dynamic) -> &'static str {
    match value.type_name() {
        "map" => "an object",
        "()" => "()",
        "Fn" => "a function",
        "bool" => "a bool",
        "char" | "string" => "a string",
        "i64" => "an integer",
        "f64" => "a float",
        _ => "another value",
    }
}

fn note(kind: &'static str) -> RhaiFunc {
    RhaiFunc::Method {
        func: Shared::new(
            move |context: Option<NativeCallContext>, arguments: &mut [&mut Dynamic]| {
                if current(|run| run.notes_wanted).unwrap_or(false) {
                    let text = match kind {
                        "debug" => text::brief_debug(arguments[0], MOST_CHARACTERS),
                        _ => text::brief(arguments[0], MOST_CHARACTERS),
                    };
                    keep(kind, &context.expect("asked for below"), text);
                }
                Ok(Dynamic::UNIT)
            },
        ),
        has_context: true,
        is_pure: true,
        is_volatile: true,
    }
}

fn keep(kind: &'static str, context: &NativeCallContext, text: String) {
    current(|run| run.note(kind, text, context.call_position(), context.call_source()));
}
