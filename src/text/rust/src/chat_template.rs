//! Chat templates as Hugging Face's `transformers` renders them.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::{self, Write};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{
    escape_formatter, AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior,
    Value,
};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::boundary::Failure;
use crate::python_json::{tojson, BYTES_PER_FUEL};
use crate::strftime::strftime;

const NAME: &str = "chat_template";

/// What one rendering may do: an instruction costs 1, and so do 64 bytes of
/// text. A conversation of a thousand messages needs under a million; a
/// template that never ends is stopped within about a second and 128 MiB.
const FUEL: u64 = 2 << 20;
/// Values can be nested until the fuel is gone, and are printed and freed
/// recursively. A level costs at least 1.5 fuel; printing takes 385 bytes of
/// stack for it, freeing 80: 514 MiB in all, and half as much again to spare.
pub const STACK_BYTES: usize = 768 << 20;
/// Macro calls inside each other. A template needs a handful.
const RECURSION_LIMIT: usize = 100;

thread_local! {
    /// What the rendering on this thread takes for the time. (A variable of
    /// the template would not be seen inside its macros.)
    static NOW: Cell<i64> = const { Cell::new(0) };
}

pub struct ChatTemplate {
    env: Environment<'static>,
}

impl ChatTemplate {
    pub fn compile(source: &str) -> Result<Self, Failure> {
        let mut env = Environment::new();
        env.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .build()
                .map_err(|error| Failure::Failed(error.to_string()))?,
        );
        env.set_auto_escape_callback(|_| AutoEscape::None);
        env.set_undefined_behavior(UndefinedBehavior::Lenient);
        env.set_unknown_method_callback(unknown_method_callback);
        env.set_debug(true);
        env.set_fuel(Some(FUEL));
        env.set_recursion_limit(RECURSION_LIMIT);
        env.remove_global("debug");
        // It lays values out by their depth: nested ones in quadratic space.
        env.remove_filter("pprint");
        env.set_formatter(print_value);
        env.add_filter("tojson", tojson);
        env.add_function("raise_exception", raise_exception);
        env.add_function("strftime_now", strftime_now);
        env.add_template_owned(NAME, without_generation_tags(source).into_owned())
            .map_err(|error| describe(&error))?;
        Ok(ChatTemplate { env })
    }

    pub fn render(&self, context: &str, now: i64) -> Result<String, Failure> {
        let context: Value = serde_json::from_str(context).map_err(|error| {
            Failure::Failed(format!("the template's variables are not JSON: {error}"))
        })?;
        if context.kind() != ValueKind::Map {
            return Err(Failure::Failed(
                "the template's variables are not a JSON object".into(),
            ));
        }
        NOW.set(now);
        let template = self
            .env
            .get_template(NAME)
            .map_err(|error| describe(&error))?;
        template.render(context).map_err(|error| describe(&error))
    }
}

/// What `{{ value }}` does. The engine charges for lists and maps after they
/// were written; one that holds itself many times over has to be stopped on
/// the way.
fn print_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if value.as_object().is_none() {
        return escape_formatter(out, state, value);
    }
    let fuel = state.fuel_levels().map_or(0, |(_, remaining)| remaining);
    let left = fuel as usize * BYTES_PER_FUEL;
    write!(Limited { out, left }, "{value}").map_err(|_| Error::from(ErrorKind::OutOfFuel))
}

struct Limited<'a, 'b> {
    out: &'a mut Output<'b>,
    left: usize, // bytes
}

impl fmt::Write for Limited<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.out.write_str(text)
    }
}

/// The words of `raise_exception`, carried as the source of an error.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: &Value) -> Result<Value, Error> {
    let raised = Raised(message.to_string());
    Err(Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(raised))
}

fn strftime_now(format: &str) -> Result<String, Error> {
    strftime(format, NOW.get()).ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now: bad format {format:?}"),
        )
    })
}

fn describe(error: &Error) -> Failure {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut deepest = error;
    while let Some(current) = next {
        if let Some(Raised(message)) = current.downcast_ref() {
            return Failure::Raised(message.clone());
        }
        if let Some(inner) = current.downcast_ref::<Error>() {
            deepest = inner;
        }
        next = current.source();
    }

    let mut message = String::new();
    if let Some(line) = deepest.line().or(error.line()) {
        message += &format!("line {line}: ");
    }
    if deepest.kind() == ErrorKind::OutOfFuel {
        message += "the template did too much work and was stopped";
        return Failure::Failed(message);
    }
    message += &deepest.kind().to_string();
    if let Some(detail) = deepest.detail() {
        message += ": ";
        message += detail;
    }
    Failure::Failed(message)
}

/// `{% generation %}` marks what the assistant said, for training masks. It
/// renders as its content and is a scope of its own, which is what `with` is.
fn without_generation_tags(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let body = &tag[2..end];
        match body.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+') {
            "generation" => out.push_str(&tag[..end].replace("generation", "with")),
            "endgeneration" => out.push_str(&tag[..end].replace("endgeneration", "endwith")),
            _ => out.push_str(&tag[..end]),
        }
        rest = &tag[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}
