//! What a script can reach of the value of a run, and in which order it names things.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyString;
use rhai::{AST, ASTFlags, ASTNode, Expr, FnCallExpr, Identifier, Stmt};

use crate::mentions::Mentions;

/// A field that is converted; the others do not cross the border at all.
pub struct Field {
    pub name: Identifier,
    pub key: Py<PyString>,
}

#[derive(Default)]
pub struct View {
    /// The top-level fields the script can reach; None when it may look at all of them.
    fields: Option<Vec<Field>>,
    names: HashMap<String, (u32, Py<PyString>)>,
}

impl View {
    /// `ast` is as the script is written (see `Mentions::read`).
    pub fn of(py: Python<'_>, ast: &AST, variable: &str, mentions: &Mentions) -> Self {
        let key = |name: &str| PyString::intern(py, name).unbind();
        let names: HashMap<_, _> = (0..)
            .zip(mentions.order())
            .map(|(rank, name)| (name.clone(), (rank, key(name))))
            .collect();
        let fields = reached(ast, variable).map(|mut found| {
            // As new fields are ordered in a value that was converted whole.
            found.sort_by_key(|name| names.get(name).map(|(rank, _)| *rank));
            found.dedup();
            let fields = found.into_iter();
            fields
                .map(|name| Field {
                    key: key(&name),
                    name: name.into(),
                })
                .collect()
        });
        Self { fields, names }
    }

    pub fn fields(&self) -> Option<&[Field]> {
        self.fields.as_deref()
    }

    /// Where a name stands in the order of the source, and the name for Python.
    pub fn key<'py>(&self, py: Python<'py>, name: &str) -> (u32, Bound<'py, PyString>) {
        match self.names.get(name) {
            Some((rank, key)) => (*rank, key.bind(py).clone()),
            None => (u32::MAX, PyString::new(py, name)),
        }
    }
}

/// The fields the variable is asked for, when nothing is done with it but ask for fields and emit it.
fn reached(ast: &AST, variable: &str) -> Option<Vec<String>> {
    // A function of that name may do anything with the value.
    if ast.iter_functions().any(|function| function.name == "emit") {
        return None;
    }
    let mut fields = Some(Vec::new());
    ast.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Expr(expression @ Expr::Variable(name, ..))) if name.1 == variable => {
                let parent = path.len().checked_sub(2).map(|index| &path[index]);
                match reach(parent, expression) {
                    Reach::Field(name) => fields
                        .iter_mut()
                        .for_each(|fields| fields.push(name.clone())),
                    Reach::Emit => {}
                    Reach::All => fields = None,
                }
            }
            // Captured by a closure, where it may have another name.
            Some(ASTNode::Stmt(Stmt::Share(_))) => fields = None,
            _ => {}
        }
        fields.is_some()
    });
    fields
}

enum Reach {
    Field(String),
    Emit,
    All,
}

fn reach(parent: Option<&ASTNode>, variable: &Expr) -> Reach {
    match parent {
        Some(ASTNode::Expr(Expr::Dot(pair, flags, _) | Expr::Index(pair, flags, _)))
            if std::ptr::eq(&pair.lhs, variable) =>
        {
            field(&pair.rhs, *flags).map_or(Reach::All, Reach::Field)
        }
        Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _)))
            if is_emit(call, variable) =>
        {
            Reach::Emit
        }
        _ => Reach::All,
    }
}

/// The literal name that the variable is asked for first, if it is one.
fn field(rhs: &Expr, flags: ASTFlags) -> Option<String> {
    let first = match rhs {
        // The rest of a chain; without it, the whole of an index that happens to be a chain itself.
        Expr::Dot(rest, ..) | Expr::Index(rest, ..) if !flags.intersects(ASTFlags::BREAK) => {
            &rest.lhs
        }
        alone => alone,
    };
    match first {
        Expr::Property(property, _) => Some(property.2.to_string()),
        Expr::StringConstant(text, _) => Some(text.to_string()),
        _ => None,
    }
}

fn is_emit(call: &FnCallExpr, variable: &Expr) -> bool {
    call.name == "emit"
        && call.args.len() == 1
        && !call.is_qualified()
        && std::ptr::eq(&call.args[0], variable)
}
