//! What a pattern says: parsed, with the classes made ASCII, and the part that is large.
//!
//! `\d`, `\w`, `\s` and `\b` mean ASCII: what `\d+` matches is a number everywhere, and the automata are smaller. They
//! are rewritten in the syntax tree, since the crate knows ASCII only for a whole pattern, where `.` is a byte.

use regex_syntax::ast::{
    self, AssertionKind, Ast, ClassAsciiKind, ClassBracketed, ClassPerlKind, ClassSet,
    ClassSetItem, Flag, Flags, FlagsItem, FlagsItemKind, Group, GroupKind, Span, parse,
};
use regex_syntax::hir::{Hir, translate};

/// Characters of a pattern; what takes more is put together by a program.
pub const MOST_CHARACTERS: usize = 4_096;
/// Groups, repetitions and classes inside each other.
const MOST_LEVELS: u32 = 50;
/// Characters of a part that is told.
const MOST_TOLD: usize = 60;
/// How much of a program one of the classes of Unicode makes, roughly.
const LARGE_CLASS: u64 = 200;

/// Why there is no such pattern, and how many characters are before the place.
#[derive(Debug)]
pub struct Refused {
    pub message: String,
    pub at: Option<usize>,
}

impl Refused {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: None,
        }
    }

    fn of(text: &str, kind: String, span: &Span) -> Self {
        Self {
            message: kind,
            at: Some(text[..span.start.offset].chars().count()),
        }
    }
}

/// A pattern that is well formed. Its groups are those with names, numbered in their order from 1.
#[derive(Debug)]
pub struct Syntax {
    pub hir: Hir,
    pub names: Vec<String>,
    ast: Ast,
}

impl Syntax {
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let characters = text.chars().count();
        if characters > MOST_CHARACTERS {
            return Err(Refused::new(format!(
                "this pattern has {characters} characters, at most {MOST_CHARACTERS} are accepted"
            )));
        }
        let mut parser = parse::ParserBuilder::new().nest_limit(MOST_LEVELS).build();
        let mut ast = parser
            .parse(text)
            .map_err(|error| Refused::of(text, told(error.kind()), error.span()))?;
        let mut names = Vec::new();
        plain(&mut ast, &mut names);
        let hir = translate::Translator::new()
            .translate(text, &ast)
            .map_err(|error| Refused::of(text, error.kind().to_string(), error.span()))?;
        Ok(Self { hir, names, ast })
    }

    /// The part that makes it large, as the end of a sentence: `\w{50} stands for 50 times \w`.
    pub fn largest(&self, text: &str) -> String {
        let part = largest(&self.ast);
        let shown = brief(&text[part.span().start.offset..part.span().end.offset]);
        match part {
            Ast::Repetition(repetition) => {
                let inner = repetition.ast.span();
                let inner = brief(&text[inner.start.offset..inner.end.offset]);
                format!("{shown} stands for {} times {inner}", copies(part))
            }
            Ast::Alternation(alternation) => {
                format!("{shown} stands for {} alternatives", alternation.asts.len())
            }
            Ast::Concat(concat) => {
                format!("{shown} stands for {} parts in a row", concat.asts.len())
            }
            _ => format!("{shown} stands for all that it matches, written out"),
        }
    }
}

/// What the parser says, and of what is not there in any linear engine, what would do.
fn told(kind: &ast::ErrorKind) -> String {
    match kind {
        ast::ErrorKind::NestLimitExceeded(most) => {
            format!("more than {most} groups, repetitions and classes inside each other")
        }
        ast::ErrorKind::UnsupportedBackreference => {
            "back references are not supported: no pattern looks for what a group matched"
                .to_owned()
        }
        ast::ErrorKind::UnsupportedLookAround => {
            "look-around ((?=, (?!, (?<=, (?<!) is not supported".to_owned()
        }
        kind => kind.to_string(),
    }
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(MOST_TOLD) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Have classes and boundaries mean ASCII, and capture what has a name alone.
fn plain(ast: &mut Ast, names: &mut Vec<String>) {
    match ast {
        Ast::ClassPerl(class) => {
            let item = ascii(class);
            *ast = Ast::class_bracketed(ClassBracketed {
                span: class.span,
                negated: false,
                kind: ClassSet::Item(item),
            });
        }
        Ast::ClassBracketed(class) => plain_set(&mut class.kind),
        Ast::Assertion(assertion) if is_boundary(&assertion.kind) => {
            let span = assertion.span;
            let item = |kind| FlagsItem { span, kind };
            let items = vec![
                item(FlagsItemKind::Negation),
                item(FlagsItemKind::Flag(Flag::Unicode)),
            ];
            *ast = Ast::group(Group {
                span,
                kind: GroupKind::NonCapturing(Flags { span, items }),
                ast: Box::new(ast.clone()),
            });
        }
        Ast::Repetition(repetition) => plain(&mut repetition.ast, names),
        Ast::Group(group) => {
            match &mut group.kind {
                GroupKind::CaptureIndex(_) => {
                    let items = Vec::new();
                    let span = group.span;
                    group.kind = GroupKind::NonCapturing(Flags { span, items });
                }
                GroupKind::CaptureName { name, .. } => {
                    names.push(name.name.clone());
                    name.index = names.len() as u32;
                }
                GroupKind::NonCapturing(_) => {}
            }
            plain(&mut group.ast, names);
        }
        Ast::Alternation(alternation) => {
            alternation
                .asts
                .iter_mut()
                .for_each(|each| plain(each, names));
        }
        Ast::Concat(concat) => concat.asts.iter_mut().for_each(|each| plain(each, names)),
        _ => {}
    }
}

fn is_boundary(kind: &AssertionKind) -> bool {
    !matches!(
        kind,
        AssertionKind::StartLine
            | AssertionKind::EndLine
            | AssertionKind::StartText
            | AssertionKind::EndText
    )
}

fn plain_set(set: &mut ClassSet) {
    match set {
        ClassSet::Item(item) => plain_item(item),
        ClassSet::BinaryOp(operation) => {
            plain_set(&mut operation.lhs);
            plain_set(&mut operation.rhs);
        }
    }
}

fn plain_item(item: &mut ClassSetItem) {
    match item {
        ClassSetItem::Perl(class) => *item = ascii(class),
        ClassSetItem::Bracketed(class) => plain_set(&mut class.kind),
        ClassSetItem::Union(union) => union.items.iter_mut().for_each(plain_item),
        _ => {}
    }
}

fn ascii(class: &ast::ClassPerl) -> ClassSetItem {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    ClassSetItem::Ascii(ast::ClassAscii {
        span: class.span,
        kind,
        negated: class.negated,
    })
}

/// The part that most of the program is made of: a repetition, or a class where nothing is repeated; all the
/// alternatives or parts in a row, where each of them is little.
fn largest(ast: &Ast) -> &Ast {
    let mut part = ast;
    loop {
        let inside: Vec<&Ast> = match part {
            Ast::Repetition(_) if copies(part) > 1 => return part,
            Ast::Repetition(repetition) => vec![&repetition.ast],
            Ast::Group(group) => vec![&group.ast],
            Ast::Alternation(alternation) => alternation.asts.iter().collect(),
            Ast::Concat(concat) => concat.asts.iter().collect(),
            _ => return part,
        };
        match inside.into_iter().max_by_key(|each| weight(each)) {
            Some(heaviest) if weight(heaviest) < LARGE_CLASS.min(weight(part) / 2) => return part,
            Some(heaviest) => part = heaviest,
            None => return part,
        }
    }
}

/// How much of a program something makes, roughly: one for a character.
fn weight(ast: &Ast) -> u64 {
    let all = |asts: &[Ast]| {
        asts.iter()
            .fold(1u64, |sum, each| sum.saturating_add(weight(each)))
    };
    match ast {
        Ast::Repetition(repetition) => copies(ast).saturating_mul(weight(&repetition.ast)),
        Ast::Group(group) => weight(&group.ast),
        Ast::Alternation(alternation) => all(&alternation.asts),
        Ast::Concat(concat) => all(&concat.asts),
        Ast::ClassUnicode(_) => LARGE_CLASS,
        Ast::Dot(_) | Ast::ClassBracketed(_) => 5,
        _ => 1,
    }
}

/// How often what is repeated stands in the program.
fn copies(ast: &Ast) -> u64 {
    use ast::{RepetitionKind, RepetitionRange};
    let Ast::Repetition(repetition) = ast else {
        return 1;
    };
    match &repetition.op.kind {
        RepetitionKind::Range(
            RepetitionRange::Exactly(most)
            | RepetitionRange::AtLeast(most)
            | RepetitionRange::Bounded(_, most),
        ) => u64::from(*most),
        _ => 1,
    }
}
