//! String functions that the engine bounds too late, or not at all.
//!
//! `replace` may multiply two lengths, `split` makes a string per character, `pad` with an empty filler never ends.

use rhai::{Array, Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext, Position};

use super::arrays::too_large;
use super::{changer, reader};
use crate::run::{Outcome, spend};

pub fn register(module: &mut Module) {
    changer("replace").set_into_module(module, replace::<ImmutableString, ImmutableString>);
    changer("replace").set_into_module(module, replace::<ImmutableString, char>);
    changer("replace").set_into_module(module, replace::<char, ImmutableString>);
    changer("replace").set_into_module(module, replace::<char, char>);
    changer("pad").set_into_module(module, pad::<ImmutableString>);
    changer("pad").set_into_module(module, pad::<char>);
    reader("split").set_into_module(module, split::<ImmutableString>);
    reader("split").set_into_module(module, split::<char>);
    reader("split").set_into_module(module, split_some::<ImmutableString>);
    reader("split").set_into_module(module, split_some::<char>);
    reader("split_rev").set_into_module(module, split_back::<ImmutableString>);
    reader("split_rev").set_into_module(module, split_back::<char>);
    reader("split_rev").set_into_module(module, split_some_back::<ImmutableString>);
    reader("split_rev").set_into_module(module, split_some_back::<char>);
    reader("split").set_into_module(
        module,
        |context: NativeCallContext, text: &mut ImmutableString| match text.is_empty() {
            true => Ok(vec![text.clone().into()]),
            false => gather(&context, text.split_whitespace()),
        },
    );
    reader("to_chars").set_into_module(
        module,
        |context: NativeCallContext, text: ImmutableString| gather(&context, text.chars()),
    );
}

fn too_long() -> Box<EvalAltResult> {
    EvalAltResult::ErrorDataTooLarge("Length of string".to_owned(), Position::NONE).into()
}

fn replace<F: ToString, W: ToString>(
    context: NativeCallContext,
    text: &mut ImmutableString,
    find: F,
    with: W,
) -> Outcome<()> {
    let (find, with) = (find.to_string(), with.to_string());
    if text.is_empty() {
        return Ok(());
    }
    let most = context.engine().max_string_size();
    let mut replaced = String::new();
    let mut end = 0;
    for (start, found) in text.match_indices(find.as_str()) {
        replaced.push_str(&text[end..start]);
        replaced.push_str(&with);
        end = start + found.len();
        if replaced.len() > most {
            return Err(too_long());
        }
    }
    replaced.push_str(&text[end..]);
    spend(text.len() / 16)?;
    *text = replaced.into();
    Ok(())
}

fn pad<F: ToString>(
    context: NativeCallContext,
    text: &mut ImmutableString,
    length: i64,
    filler: F,
) -> Outcome<()> {
    let filler = filler.to_string();
    let most = context.engine().max_string_size();
    let characters = text.chars().count();
    let length = usize::try_from(length).unwrap_or(0);
    if filler.is_empty() || length <= characters {
        return Ok(());
    }
    if length > most {
        return Err(too_long());
    }
    let mut padded = text.to_string();
    for letter in filler.chars().cycle().take(length - characters) {
        padded.push(letter);
        if padded.len() > most {
            return Err(too_long());
        }
    }
    *text = padded.into();
    Ok(())
}

fn split<D: ToString>(
    context: NativeCallContext,
    text: &mut ImmutableString,
    delimiter: D,
) -> Outcome<Array> {
    gather(&context, text.split(delimiter.to_string().as_str()))
}

fn split_some<D: ToString>(
    context: NativeCallContext,
    text: &mut ImmutableString,
    delimiter: D,
    segments: i64,
) -> Outcome<Array> {
    let delimiter = delimiter.to_string();
    gather(
        &context,
        text.splitn(at_least_one(segments), delimiter.as_str()),
    )
}

fn split_back<D: ToString>(
    context: NativeCallContext,
    text: &mut ImmutableString,
    delimiter: D,
) -> Outcome<Array> {
    gather(&context, text.rsplit(delimiter.to_string().as_str()))
}

fn split_some_back<D: ToString>(
    context: NativeCallContext,
    text: &mut ImmutableString,
    delimiter: D,
    segments: i64,
) -> Outcome<Array> {
    let delimiter = delimiter.to_string();
    gather(
        &context,
        text.rsplitn(at_least_one(segments), delimiter.as_str()),
    )
}

fn at_least_one(segments: i64) -> usize {
    usize::try_from(segments).unwrap_or(1).max(1)
}

/// The parts as an array, as long as an array may be.
fn gather<T: Into<Dynamic>>(
    context: &NativeCallContext,
    parts: impl Iterator<Item = T>,
) -> Outcome<Array> {
    let most = context.engine().max_array_size();
    let mut array = Array::new();
    for part in parts {
        if array.len() >= most {
            return Err(too_large());
        }
        spend(1)?;
        array.push(part.into());
    }
    Ok(array)
}
