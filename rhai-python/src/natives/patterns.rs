//! `matches`, `parse_regex` and `replace_regex`: regular expressions, with the bounds that they have everywhere.
//!
//! A pattern is a text here, so it is compiled where it is met, and kept: what scripts ask for is nearly always the same.

use std::sync::{Arc, Mutex, PoisonError};

use rhai::{Dynamic, ImmutableString, Map, Module, NativeCallContext};

use super::reader;
use crate::failure::failed;
use crate::gauge::apart;
use crate::limits::Ending;
use crate::pattern::program::{Program, part};
use crate::pattern::replacing::{Failed, Template};
use crate::run::{Outcome, over, spend};

/// Patterns that are kept compiled, those asked for last, in all scripts together.
const KEPT: usize = 32;
/// What compiling one costs in work: up to two milliseconds.
const COMPILING: usize = 64 * 1_000;

static PATTERNS: Mutex<Vec<(String, Arc<Program>)>> = Mutex::new(Vec::new());

pub fn register(module: &mut Module) {
    reader("matches").set_into_module(module, matches);
    reader("parse_regex").set_into_module(module, parse);
    reader("replace_regex").set_into_module(module, replace);
}

/// Whether a text matches somewhere.
fn matches(text: ImmutableString, regex: ImmutableString) -> Outcome<bool> {
    let program = program(&regex)?;
    check(&text, program.longest)?;
    Ok(apart(|| program.find(&text, |_| ()).is_some()))
}

/// The named groups of the first match; one that took no part is `()`, and so is all where nothing matches.
fn parse(text: ImmutableString, regex: ImmutableString) -> Outcome<Dynamic> {
    let program = program(&regex)?;
    check(&text, program.longest)?;
    let found = apart(|| {
        program.find(&text, |slots| {
            let groups = 1..=program.names.len();
            let places = groups.map(|group| part(&text, slots, group).map(str::to_owned));
            places.collect::<Vec<_>>()
        })
    });
    let Some(groups) = found else {
        return Ok(Dynamic::UNIT);
    };
    let mut map = Map::new();
    for (name, group) in program.names.iter().zip(groups) {
        map.insert(name.into(), group.map_or(Dynamic::UNIT, Dynamic::from));
    }
    Ok(map.into())
}

/// The text with all matches replaced.
fn replace(
    context: NativeCallContext,
    text: ImmutableString,
    regex: ImmutableString,
    with: ImmutableString,
) -> Outcome<ImmutableString> {
    let program = program(&regex)?;
    let template = Template::parse(&with, &program.names);
    let template = template.map_err(|refused| failed(refused.message))?;
    let longest = apart(|| program.longest_replaced(false));
    check(&text, longest)?;
    let most = context.engine().max_string_size().max(text.len());
    match program.replaced(&text, &template, false) {
        Ok(made) if made.len() <= most => Ok(made.into()),
        Err(Failed::Long) => Err(failed("the text is too long for this pattern")),
        _ => Err(over(Ending::Text)),
    }
}

fn check(text: &str, most: usize) -> Outcome<()> {
    spend(text.len())?;
    match text.len() > most {
        true => Err(failed(format!(
            "the text is too long for this pattern, which takes {most} bytes"
        ))),
        false => Ok(()),
    }
}

/// The pattern, compiled now or before.
fn program(regex: &str) -> Outcome<Arc<Program>> {
    let kept = |patterns: &mut Vec<(String, Arc<Program>)>| {
        let at = patterns.iter().rposition(|(text, _)| text == regex)?;
        let found = patterns.remove(at);
        let program = found.1.clone();
        patterns.push(found);
        Some(program)
    };
    let found = apart(|| kept(&mut PATTERNS.lock().unwrap_or_else(PoisonError::into_inner)));
    if let Some(program) = found {
        return Ok(program);
    }
    spend(COMPILING)?;
    let made = apart(|| Program::new(regex).map(Arc::new));
    let program = made.map_err(|refused| failed(refused.message))?;
    apart(|| {
        let mut patterns = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
        if patterns.len() >= KEPT {
            patterns.remove(0);
        }
        patterns.push((regex.to_owned(), program.clone()));
    });
    Ok(program)
}
