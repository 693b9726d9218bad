//! Chat templates as Hugging Face's `transformers` renders them.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::boundary::Failure;
use crate::python_json::tojson;
use crate::strftime::strftime;

const NAME: &str = "chat_template";

/// What one rendering may do: an instruction costs 1, and so do 64 bytes of
/// text. A conversation of a thousand messages needs under a million; a
/// template that never ends is stopped within about a second and 512 MiB.
const FUEL: u64 = 8 << 20;
/// Macro calls inside each other. A template needs a handful; threads with
/// small stacks have room for this many.
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
