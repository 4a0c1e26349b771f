//! What a script names: functions it calls, names in the order of the source, imports.

use std::collections::{BTreeSet, HashMap};

use rhai::{AST, ASTNode, Expr, FnCallExpr, Position, Stmt};

use crate::failure::{Failure, Kind};

/// To look a function up for hundreds of thousands of arguments takes the engine minutes, without an operation.
const MOST_ARGUMENTS: usize = 256;

/// Collected from a script and its modules, one after the other.
#[derive(Default)]
pub struct Mentions {
    /// Functions that are called.
    pub calls: BTreeSet<String>,
    /// Variables that closures capture.
    pub captured: BTreeSet<String>,
    /// Interpolated strings with something in them that is not a literal.
    pub interpolates: bool,
    /// A constant is read as `global::NAME`.
    pub globals: bool,
    /// Bytes of all sources.
    pub source_bytes: usize,
    /// Names of fields, in the order of the source; those of a module after those of the script.
    order: Vec<String>,
    known: HashMap<String, usize>,
}

/// An import that is written with a literal path.
pub struct Import {
    pub path: String,
    pub position: Position,
}

impl Mentions {
    /// `ast` is as the script is written: optimising folds object literals, and loses the order in them.
    pub fn read(&mut self, ast: &AST, source: &str) -> Result<(), Box<Failure>> {
        let mut crowded = None;
        self.source_bytes += source.len();
        let mut named: Vec<(Position, String)> = Vec::new();
        ast.walk(&mut |path: &[ASTNode]| {
            crowded = crowded.or_else(|| path.last().and_then(crowded_call));
            match path.last() {
                Some(ASTNode::Expr(expression)) => self.expression(expression, &mut named),
                Some(ASTNode::Stmt(Stmt::Share(captured))) => {
                    let names = captured
                        .iter()
                        .map(|(variable, _)| variable.name.to_string());
                    self.captured.extend(names);
                }
                Some(ASTNode::Stmt(Stmt::FnCall(call, _))) => self.call(call),
                _ => {}
            }
            true
        });
        // Functions are walked last, wherever they stand.
        named.sort_by_key(|(position, _)| (position.line(), position.position()));
        for (_, name) in named {
            let next = self.order.len();
            self.known.entry(name).or_insert_with_key(|name| {
                self.order.push(name.clone());
                next
            });
        }
        match crowded {
            Some(position) => {
                let text = format!("a call with more than {MOST_ARGUMENTS} arguments");
                Err(Failure::new(Kind::Compile, text).at(position).into())
            }
            None => Ok(()),
        }
    }

    pub fn order(&self) -> &[String] {
        &self.order
    }

    fn expression(&mut self, expression: &Expr, named: &mut Vec<(Position, String)>) {
        match expression {
            Expr::Property(property, position) => named.push((*position, property.2.to_string())),
            Expr::StringConstant(text, position) => named.push((*position, text.to_string())),
            Expr::Map(map, _) => {
                let keys = map.0.iter().map(|(key, _)| (key.pos, key.name.to_string()));
                named.extend(keys);
            }
            Expr::InterpolatedString(parts, _) => {
                self.interpolates |= !parts
                    .iter()
                    .all(|part| matches!(part, Expr::StringConstant(..)));
            }
            Expr::FnCall(call, _) | Expr::MethodCall(call, _) => self.call(call),
            Expr::Variable(variable, ..) if !variable.2.is_empty() => {
                self.globals |= variable.2.root() == "global";
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &FnCallExpr) {
        if !call.is_operator_call() {
            self.calls.insert(call.name.to_string());
        }
    }
}

/// Where a call is that has too many arguments.
fn crowded_call(node: &ASTNode) -> Option<Position> {
    let (call, position) = match node {
        ASTNode::Expr(Expr::FnCall(call, position) | Expr::MethodCall(call, position)) => {
            (call, position)
        }
        ASTNode::Stmt(Stmt::FnCall(call, position)) => (call, position),
        _ => return None,
    };
    (call.args.len() > MOST_ARGUMENTS).then_some(*position)
}

/// The literal imports of a script, in function bodies as well.
pub fn imports(ast: &AST) -> Vec<Import> {
    let mut found = Vec::new();
    ast.walk(&mut |path: &[ASTNode]| {
        if let Some(ASTNode::Stmt(Stmt::Import(import, _))) = path.last() {
            if let Expr::StringConstant(path, position) = &import.0 {
                found.push(Import {
                    path: path.to_string(),
                    position: *position,
                });
            }
        }
        true
    });
    found
}
