//! The functions a script finds: the engine's own packages without what stops a thread or has no bound,
//! and ours over those whose cost or result is not bounded by the size of their arguments.
//!
//! Left out: `sleep`, `timestamp` and its kin (they stop or leak time), `eval`, `tag` and `set_tag` (we keep
//! provenance in tags), the reflection functions (they list the host's functions), the blob package.

use std::sync::OnceLock;

use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicFnPackage, BasicIteratorPackage, BasicMapPackage,
    BasicMathPackage, BasicStringPackage, BitFieldPackage, LogicPackage, MoreStringPackage,
    Package,
};
use rhai::{Engine, FuncRegistration, Module, Shared, def_package};

mod arrays;
mod control;
mod equality;
mod json;
mod output;
mod patterns;
mod sorting;
mod strings;
pub mod text;

def_package! {
    /// What the engine offers and we let through, as one module: a look-up searches module by module.
    pub Language(module):
        ArithmeticPackage,
        LogicPackage,
        BitFieldPackage,
        BasicMathPackage,
        BasicFnPackage,
        BasicIteratorPackage,
        BasicStringPackage,
        MoreStringPackage,
        BasicArrayPackage,
        BasicMapPackage
    {
        let _ = module;
    }
}

/// Give `engine` the language. The modules are made once per process.
pub fn furnish(engine: &mut Engine) {
    static MODULES: OnceLock<[Shared<Module>; 2]> = OnceLock::new();
    let modules = MODULES.get_or_init(|| [Language::new().as_shared_module(), ours()]);
    for module in modules {
        // The last one is searched first.
        engine.register_global_module(module.clone());
    }
}

fn ours() -> Shared<Module> {
    let mut module = Module::new();
    arrays::register(&mut module);
    control::register(&mut module);
    equality::register(&mut module);
    json::register(&mut module);
    output::register(&mut module);
    patterns::register(&mut module);
    sorting::register(&mut module);
    strings::register(&mut module);
    text::register(&mut module);
    module.build_index();
    module.into()
}

/// A function that only looks at its first argument.
fn reader(name: &str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

/// A function that changes its first argument, so no constant will do.
fn changer(name: &str) -> FuncRegistration {
    reader(name).with_purity(false)
}
