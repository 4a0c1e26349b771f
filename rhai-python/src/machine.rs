//! A script on a stack of its own: told to run a value, it runs until it is over or has a reason to pause.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use corosensei::{Coroutine, CoroutineResult};
use rhai::{AST, Caches, Dynamic, Engine, ImmutableString, Module, Scope, Shared};

use crate::failure::Failure;
use crate::gauge::Meter;
use crate::limits::{Limits, Sizes};
use crate::run::{Input, Outcome, Run, Thrown};
use crate::stack::Stack;

/// A script that remembers more function look-ups than this has been made to (`is_def_fn` with
/// made-up names); forgetting them all costs little.
const MOST_LOOKUPS: usize = 4_096;

/// Every level of nesting, of values or of calls, costs an operation: with fewer the stack stays clean.
const SHALLOW: u64 = 2_000;

/// What the ordinary stack says. Small, as it is said for every few values.
pub enum Command {
    /// Run the values in `Run::inputs`, one after the other.
    Run,
    /// Compile a source; a script knows the variable, a module does not.
    Parse { source: Box<str>, script: bool },
    /// Evaluate a module's body.
    Load(Box<AST>),
    /// Drop values, of which there may be many.
    Drop(Box<[Dynamic]>),
    /// After a pause.
    Go,
    /// After a host function call: the call, with its answer.
    Answer(Box<Call>),
    /// After a question for the size of the whole value.
    Size(usize),
    /// End what is going on; where nothing is, finish.
    Close,
}

/// What comes out of the other stack.
pub enum Event {
    /// The runs are over, or one failed; what they emitted is in `Run::emitted`, what did not run in `Run::inputs`.
    Done(Result<(), Box<Failure>>),
    Parsed(Result<Box<AST>, Box<Failure>>),
    Loaded(Result<Box<Module>, Box<Failure>>),
    Dropped,
    /// The slice is over.
    Paused,
    /// The script calls a host function.
    Call(Box<Call>),
    /// How large is the value that came in, with what was not converted?
    Measure,
}

/// A host function, by its number, what it is called with, and what it answered: its result, or the error's text
/// with its number. It goes out and comes back, so that what the run took for it is given back by the run.
pub struct Call {
    pub function: usize,
    pub arguments: Vec<Dynamic>,
    pub answer: Result<Dynamic, Dynamic>,
}

/// What a script needs to run, and keeps between runs.
pub struct Program {
    pub engine: Engine,
    pub ast: Arc<AST>,
    pub variable: ImmutableString,
    pub limits: Limits,
    /// It reads constants as `global::NAME`.
    pub globals: bool,
    /// What the engine counts on.
    pub meter: Arc<Meter>,
    /// Resolved function calls, which each run would otherwise search again.
    pub caches: Caches,
    /// Holds the variable, and between runs nothing else and no value.
    pub scope: Scope<'static>,
}

pub struct Machine {
    coroutine: Option<Coroutine<Command, Event, Box<Program>, Stack>>,
    pub run: Rc<Run>,
    /// It did enough to have gone deep into its stack.
    deep: bool,
}

impl Machine {
    pub fn new(program: Box<Program>, run: Run) -> io::Result<Self> {
        keeping_constants(); // made here: nothing may pause while it is
        let stack = Stack::take(&program.limits)?;
        let run = Rc::new(run);
        let inside = Rc::clone(&run);
        let coroutine = Coroutine::with_stack(stack, move |yielder, first| {
            inside.lives_on(yielder);
            let mut program = program;
            let mut command = first;
            loop {
                let event = match command {
                    Command::Run => Event::Done(program.run_all(&inside)),
                    Command::Parse { source, script } => {
                        Event::Parsed(program.parse(&inside, &source, script))
                    }
                    Command::Load(ast) => Event::Loaded(program.load(&inside, &ast)),
                    Command::Drop(values) => {
                        drop(values);
                        Event::Dropped
                    }
                    _ => return program,
                };
                command = yielder.suspend(event);
            }
        });
        Ok(Self {
            coroutine: Some(coroutine),
            run,
            deep: false,
        })
    }

    /// Onto the other stack, until there is something to tell.
    pub fn resume(&mut self, command: Command, slice_end: Option<Instant>) -> Event {
        match self.switch(command, slice_end) {
            CoroutineResult::Yield(event) => event,
            CoroutineResult::Return(_) => {
                unreachable!("it returns when told to finish, by finish()")
            }
        }
    }

    fn switch(
        &mut self,
        command: Command,
        slice_end: Option<Instant>,
    ) -> CoroutineResult<Event, Box<Program>> {
        let coroutine = self.coroutine.as_mut().expect("not finished");
        self.run.until(slice_end);
        self.run.mount();
        let result = coroutine.resume(command);
        self.run.unmount();
        self.deep |= self.run.operations_used() > SHALLOW;
        result
    }

    /// End what is going on and take the program out.
    pub fn finish(&mut self) -> Option<Box<Program>> {
        self.coroutine.as_ref()?;
        let program = loop {
            if let CoroutineResult::Return(program) = self.switch(Command::Close, None) {
                break program;
            }
        };
        self.run.clear();
        if let Some(coroutine) = self.coroutine.take() {
            coroutine.into_stack().put_back(self.deep);
        }
        Some(program)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Program {
    fn run_all(&mut self, run: &Run) -> Result<(), Box<Failure>> {
        while let Some(input) = run.next_input() {
            let emitted = run.emitted.borrow().len();
            let done = self.run(run, input);
            if done.is_err() {
                run.failed(emitted);
                self.caches = Caches::new();
                return done;
            }
        }
        Ok(())
    }

    fn run(&mut self, run: &Run, input: Input) -> Result<(), Box<Failure>> {
        let (limits, sizes) = (&run.limits, input.sizes);
        self.engine
            .set_max_string_size(limits.string.saturating_add(sizes.text))
            .set_max_array_size(limits.array.saturating_add(sizes.elements))
            .set_max_map_size(limits.map.saturating_add(sizes.entries));
        run.begin(sizes, input.values, false);
        let done = caught(run, || self.evaluate(input.value));
        // Here, also after what was thrown through `evaluate`: on this stack a value may nest as deep as it does.
        self.put_input(Dynamic::UNIT);
        run.cells.empty();
        done
    }

    /// Engine::run_ast_with_scope, but with the function look-ups of earlier runs.
    #[allow(deprecated)] // rhai marks its low-level entry points so; they are not going away in 1.x
    pub fn evaluate(&mut self, input: Dynamic) -> Outcome<()> {
        self.put_input(input);
        let mut global = self.engine.new_global_runtime_state();
        if self.globals {
            global.lib.push(keeping_constants());
        }
        global.lib.push(self.ast.shared_lib().clone());
        let statements = self.ast.statements();
        let done = self
            .engine
            .eval_statements_raw(&mut global, &mut self.caches, &mut self.scope, statements)
            .map(drop);
        if self.caches.fn_resolution_caches_len() > 0
            && self.caches.fn_resolution_cache_mut().dict.len() > MOST_LOOKUPS
        {
            self.caches = Caches::new();
        }
        done
    }

    /// The variable and nothing else in the scope; its name stays there, as pushing one allocates.
    fn put_input(&mut self, input: Dynamic) {
        self.scope.rewind(1);
        match self.scope.get_mut(&self.variable) {
            Some(variable) => *variable = input,
            // None, or a constant of that name, in the first run or after a script that made one.
            None => {
                self.scope.rewind(0);
                self.scope
                    .push_dynamic(self.variable.clone(), Dynamic::UNIT);
                // Not pushed itself: the engine would look through all of it.
                if let Some(variable) = self.scope.get_mut(&self.variable) {
                    *variable = input;
                }
            }
        }
    }

    fn parse(&self, run: &Run, source: &str, script: bool) -> Result<Box<AST>, Box<Failure>> {
        let mut scope = Scope::new();
        if script {
            scope.push_dynamic(self.variable.clone(), Dynamic::UNIT);
        }
        let work = || run.compiling(|| self.engine.compile_with_scope(&scope, source));
        match panic::catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(ast)) => Ok(ast.into()),
            Ok(Err(error)) if run.is_late() => {
                Err(Failure::of_slow_parse(&error, &run.limits).into())
            }
            Ok(Err(error)) => Err(Failure::of_parse(&error).into()),
            Err(panic) => Err(Failure::of_panic(text(&*panic)).into()),
        }
    }

    fn load(&mut self, run: &Run, ast: &AST) -> Result<Box<Module>, Box<Failure>> {
        run.begin(Sizes::default(), 0, true);
        let work = || {
            let mut global = self.engine.new_global_runtime_state();
            global.lib.push(keeping_constants());
            Module::eval_ast_as_new_raw(&self.engine, &mut Scope::new(), &mut global, ast)
                .map(Box::new)
        };
        caught(run, || run.compiling(work))
    }
}

/// The engine keeps constants for `global::NAME` only where some library of functions is not empty: this one has
/// no function, and is not empty.
fn keeping_constants() -> Shared<Module> {
    static LIBRARY: OnceLock<Shared<Module>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let mut module = Module::new();
        module.set_var("", Dynamic::UNIT);
        module.into()
    });
    library.clone()
}

/// Evaluate, with everything that can go wrong told: errors, what was thrown through, panics.
fn caught<T>(run: &Run, work: impl FnOnce() -> Outcome<T>) -> Result<T, Box<Failure>> {
    let limits = &run.limits;
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        // A native may have forgotten why the run had to end, and it was the last thing the script did.
        Ok(Ok(value)) => match run.ended() {
            Some(ending) => Err(Failure::of_ending(ending, limits).into()),
            None => Ok(value),
        },
        Ok(Err(error)) => Err(Failure::of_run(&error, limits).into()),
        Err(thrown) => Err(match thrown.downcast::<Thrown>() {
            Ok(thrown) => Failure::of_ending(thrown.0, limits).into(),
            Err(panic) => Failure::of_panic(text(&*panic)).into(),
        }),
    }
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}
