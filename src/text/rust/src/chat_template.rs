//! Chat templates as Hugging Face's `transformers` renders them.

use std::cell::Cell;
use std::fmt;
use std::ops::RangeInclusive;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{
    escape_formatter, AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior,
    Value,
};

use crate::boundary::Failure;
use crate::generation_tags::without_generation_tags;
use crate::python_filters::{self, escaped, text_of};
use crate::python_json::{tojson, BYTES_PER_FUEL};
use crate::python_methods::call_method;
use crate::python_values::{as_float, from_json, write_str};
use crate::strftime::strftime;

const NAME: &str = "chat_template";

/// What one rendering may do: an instruction costs 1, and so do 64 bytes of
/// text. So much for a short conversation: a template that never ends is
/// stopped within about a second and 128 MiB.
const BASE_FUEL: usize = 2 << 20;
/// And so much for each byte of the variables. Templates spend up to 5 on one
/// of the shortest messages; those that look through the whole conversation at
/// each message, as Gemma 4's, get to 2,000 messages of 240 bytes.
const FUEL_PER_BYTE: usize = 32;
/// The longest conversation's. It is used up within seconds and 2 GiB.
const MAX_FUEL: usize = 32 << 20;
/// Values can be nested until the fuel is gone, and are made into text by `~`
/// and freed recursively. A level costs at least 1.5 fuel; the one takes 385
/// bytes of stack for it, the other 80: 257 bytes for 1 fuel, and half as much
/// again to spare.
const STACK_BYTES_PER_FUEL: usize = 384;
/// Macro calls inside each other. A template needs a handful.
const RECURSION_LIMIT: usize = 100;
/// Bytes of the template in a message.
const MAX_SHOWN_CODE: usize = 120;

thread_local! {
    /// What the rendering on this thread takes for the time. (A variable of
    /// the template would not be seen inside its macros.)
    static NOW: Cell<i64> = const { Cell::new(0) };
}

/// The stack on which a context of `bytes` can be rendered, and the smallest
/// that is of use.
pub fn stack_bytes(bytes: usize) -> RangeInclusive<usize> {
    let fuel = bytes
        .saturating_mul(FUEL_PER_BYTE)
        .saturating_add(BASE_FUEL);
    BASE_FUEL * STACK_BYTES_PER_FUEL..=fuel.min(MAX_FUEL) * STACK_BYTES_PER_FUEL
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
        env.set_unknown_method_callback(call_method);
        env.set_debug(true);
        env.set_recursion_limit(RECURSION_LIMIT);
        env.remove_global("debug");
        // It lays values out by their depth: nested ones in quadratic space.
        env.remove_filter("pprint");
        env.set_formatter(print_value);
        python_filters::add_to(&mut env);
        env.add_filter("tojson", tojson);
        env.add_function("raise_exception", raise_exception);
        env.add_function("strftime_now", strftime_now);
        env.add_template_owned(NAME, without_generation_tags(source).into_owned())
            .map_err(|error| describe(&error))?;
        Ok(ChatTemplate { env })
    }

    /// `stack_bytes`: that of this thread, which is what the template may use.
    pub fn render(&self, context: &str, now: i64, stack_bytes: usize) -> Result<String, Failure> {
        // The budget is the environment's. A copy shares all else with it.
        let mut env = self.env.clone();
        env.set_fuel(Some((stack_bytes / STACK_BYTES_PER_FUEL) as u64));
        let context = from_json(context).map_err(|error| {
            Failure::Failed(format!("the template's variables are not JSON: {error}"))
        })?;
        if context.kind() != ValueKind::Map {
            return Err(Failure::Failed(
                "the template's variables are not a JSON object".into(),
            ));
        }
        NOW.set(now);
        let template = env.get_template(NAME).map_err(|error| describe(&error))?;
        template.render(context).map_err(|error| describe(&error))
    }
}

/// What `{{ value }}` does. The engine charges for lists and maps after they
/// were written; one that holds itself many times over has to be stopped on
/// the way.
fn print_value(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    if matches!(state.auto_escape(), AutoEscape::Html) && !value.is_safe() {
        return Ok(out.write_str(&escaped(&text_of(state, value)?))?);
    }
    if value.as_object().is_none() && as_float(value).is_none() {
        return escape_formatter(out, state, value);
    }
    let fuel = state.fuel_levels().map_or(0, |(_, remaining)| remaining);
    let left = fuel as usize * BYTES_PER_FUEL;
    write_str(&mut Limited { out, left }, value).map_err(|_| Error::from(ErrorKind::OutOfFuel))
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

/// What of the template failed, if it is short enough to be shown.
fn code_of(error: &Error) -> Option<&str> {
    let code = error.template_source()?.get(error.range()?)?;
    (!code.is_empty() && code.len() <= MAX_SHOWN_CODE).then_some(code)
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
    if let Some(code) = code_of(deepest).or_else(|| code_of(error)) {
        message += &format!(", in `{code}`");
    }
    Failure::Failed(message)
}
