//! An engine with nothing in it that could reach, stop or flood what is around it.

use std::any::TypeId;
use std::sync::Arc;

use rhai::plugin::RhaiFunc;
use rhai::{
    Dynamic, Engine, FuncRegistration, LexError, Module, NativeCallContext, OptimizationLevel,
    Shared, Token,
};

use crate::failure::{failed, marked};
use crate::gauge::Meter;
use crate::leaving;
use crate::limits::Limits;
use crate::machine::{Call, Command, Event};
use crate::modules::Shelf;
use crate::natives;
use crate::run::{Outcome, ask, current};

/// The clock is read once in so many tokens.
const TOKENS_PER_LOOK: u32 = 64;

/// An engine for one script; `functions` are the names and arities of its host functions.
pub fn build(
    limits: &Limits,
    meter: Arc<Meter>,
    shelf: Shelf,
    functions: &[(String, usize)],
) -> Engine {
    // Not Engine::new: that one imports any file of the machine, and prints.
    let mut engine = Engine::new_raw();
    natives::furnish(&mut engine);
    if !functions.is_empty() {
        engine.register_global_module(hosts(functions));
    }
    engine
        .set_module_resolver(shelf)
        .disable_symbol("eval")
        .on_progress(move |_| meter.tick())
        .set_strict_variables(true)
        // The others fold constants: forty lines of `const B = [A, A]` would take all memory there is, and object
        // literals would lose their order. What they gain is not measurable.
        .set_optimization_level(OptimizationLevel::None)
        .set_max_string_size(limits.string)
        .set_max_array_size(limits.array)
        .set_max_map_size(limits.map)
        // Both, and all that follows: the defaults differ between debug and release builds.
        .set_max_expr_depths(limits.expression_depth, limits.expression_depth)
        .set_max_call_levels(limits.calls)
        .set_max_modules(limits.modules);
    #[allow(deprecated)] // not deprecated but volatile, as rhai says; the version is pinned
    engine.on_parse_token(|token, _, _| {
        let late = current(|run| run.parsed_token(TOKENS_PER_LOOK)).unwrap_or(false);
        match token {
            // The parser panics when an interpolated string goes on with anything else.
            Token::StringConstant(_) | Token::InterpolatedString(_) => token,
            _ if late => {
                Token::LexError(LexError::Runtime("it takes too long to compile".to_owned()).into())
            }
            _ => token,
        }
    });
    engine
}

fn hosts(functions: &[(String, usize)]) -> Shared<Module> {
    let mut module = Module::new();
    for (number, (name, arity)) in functions.iter().enumerate() {
        let kinds = vec![TypeId::of::<Dynamic>(); *arity];
        FuncRegistration::new(name)
            .in_global_namespace()
            .set_into_module_raw(&mut module, kinds, host(number));
    }
    module.build_index();
    module.into()
}

/// A host function, from inside: its arguments go out, its answer comes in.
fn host(function: usize) -> RhaiFunc {
    RhaiFunc::Method {
        func: Shared::new(
            move |_: Option<NativeCallContext>, arguments: &mut [&mut Dynamic]| {
                call(function, arguments)
            },
        ),
        has_context: false,
        is_pure: true,
        is_volatile: true,
    }
}

fn call(function: usize, arguments: &mut [&mut Dynamic]) -> Outcome<Dynamic> {
    let checked = current(|run| {
        let arguments = arguments.iter().map(|argument| {
            let argument = argument.flatten_clone();
            leaving::check(&argument, run).map(|_| argument)
        });
        arguments.collect::<Outcome<Vec<_>>>()
    });
    let arguments = checked.unwrap_or_else(|| Err(failed("host functions are for runs")))?;
    let call = Call {
        function,
        arguments,
        answer: Ok(Dynamic::UNIT),
    };
    match ask(Event::Call(call.into()))? {
        Command::Answer(call) => call.answer.map_err(marked),
        _ => Err(failed("no answer")),
    }
}
