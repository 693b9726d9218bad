//! Filters and tests of Jinja that minijinja does otherwise.

use std::borrow::Cow;
use std::fmt::{self, Write};

use minijinja::value::{from_args, Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{filters, Environment, Error, ErrorKind, State, Value};

use crate::python_arguments::{argument, bad_argument, Given};
use crate::python_json::BYTES_PER_FUEL;
use crate::python_text::{count_lines, is_space, split_lines};
use crate::python_values::{as_float, write_str};

pub fn add_to(env: &mut Environment) {
    env.add_filter("trim", trim);
    env.add_filter("string", string);
    env.add_filter("indent", indent);
    env.add_filter("default", default);
    env.add_filter("d", default);
    env.add_filter("int", int);
    env.add_filter("float", float);
    env.add_filter("escape", escape);
    env.add_filter("e", escape);
    // Jinja's finds methods and no keys.
    env.remove_filter("attr");
    env.add_test("iterable", is_iterable);
    env.add_test("sequence", is_sequence);
    env.add_test("number", is_number);
    env.add_test("float", is_float);
}

fn with_safety_of(value: &Value, text: String) -> Value {
    if value.is_safe() {
        Value::from_safe_string(text)
    } else {
        Value::from(text)
    }
}

fn trim(state: &State, value: &Value, chars: Option<Cow<'_, str>>) -> Result<Value, Error> {
    let text = text_of(state, value)?;
    let trimmed = match chars {
        Some(chars) => text.trim_matches(|c| chars.contains(c)),
        None => text.trim_matches(is_space),
    };
    Ok(with_safety_of(value, trimmed.to_owned()))
}

fn string(state: &State, value: &Value) -> Result<Value, Error> {
    if value.kind() == ValueKind::String {
        return Ok(value.clone());
    }
    Ok(Value::from(text_of(state, value)?.into_owned()))
}

/// `str(value)`, paid for by the template's budget.
pub fn text_of<'a>(state: &State, value: &'a Value) -> Result<Cow<'a, str>, Error> {
    if let Some(text) = value.as_str() {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Paid {
        state,
        text: String::new(),
    };
    match write_str(&mut out, value) {
        Ok(()) => Ok(Cow::Owned(out.text)),
        Err(fmt::Error) => Err(Error::from(ErrorKind::OutOfFuel)),
    }
}

/// Text that the template's budget pays for as it grows: a value that holds
/// itself many times over is small, its text is not.
struct Paid<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    text: String,
}

impl Write for Paid<'_, '_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let paid = self.text.len() / BYTES_PER_FUEL;
        self.text.push_str(text);
        let cost = self.text.len() / BYTES_PER_FUEL - paid;
        self.state.consume_fuel(cost as u64).map_err(|_| fmt::Error)
    }
}

/// `text|indent(width=4, first=False, blank=False)`; `width` may be a text.
fn indent(state: &State, value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let args = args.into_values();
    let (width, first, blank, kwargs): (Option<Value>, Option<bool>, Option<bool>, Kwargs) =
        from_args(&args)?;
    let width = argument(width, &kwargs, "width")?;
    let first = argument(first, &kwargs, "first")?.unwrap_or(false);
    let blank = argument(blank, &kwargs, "blank")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    let indentation = match width {
        None => " ".repeat(4),
        Some(width) => match (width.as_str(), i64::try_from(width.clone())) {
            (Some(text), _) => text.to_owned(),
            (None, Ok(columns)) if columns <= 1 << 16 => " ".repeat(columns.max(0) as usize),
            _ => return Err(bad_argument("indent: width is not a small number")),
        },
    };
    let Some(text) = value.as_str() else {
        return Err(bad_argument("indent: the value is not a string"));
    };

    let text = format!("{text}\n");
    state.consume_fuel(count_lines(&text) as u64)?;
    let lines = split_lines(&text, false);
    let growth = lines.len().saturating_mul(indentation.len());
    state.consume_fuel((growth / BYTES_PER_FUEL) as u64)?;
    let mut out = String::with_capacity(text.len() + growth);
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if if index == 0 {
            first
        } else {
            blank || !line.is_empty()
        } {
            out.push_str(&indentation);
        }
        out.push_str(line);
    }
    Ok(with_safety_of(value, out))
}

/// `value|default(default_value="", boolean=False)`.
fn default(
    value: &Value,
    other: Given,
    boolean: Option<bool>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let other = other.or_named(&kwargs, "default_value")?;
    let boolean = argument(boolean, &kwargs, "boolean")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    if value.is_undefined() || (boolean && !value.is_true()) {
        return Ok(other.unwrap_or_else(|| Value::from("")));
    }
    Ok(value.clone())
}

/// `value|int(default=0, base=10)`: the default where it is no number.
fn int(
    state: &State,
    value: &Value,
    default: Given,
    base: Option<u32>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let default = default
        .or_named(&kwargs, "default")?
        .unwrap_or_else(|| Value::from(0));
    let base = argument(base, &kwargs, "base")?;
    kwargs.assert_all_used()?;
    let value = as_float(value).map_or_else(|| value.clone(), Value::from);
    filters::int(state, &value, Some(default), base, no_options())
}

/// `value|float(default=0.0)`.
fn float(state: &State, value: &Value, default: Given, kwargs: Kwargs) -> Result<Value, Error> {
    let default = default
        .or_named(&kwargs, "default")?
        .unwrap_or_else(|| Value::from(0.0));
    kwargs.assert_all_used()?;
    let value = as_float(value).map_or_else(|| value.clone(), Value::from);
    filters::float(state, &value, Some(default), no_options())
}

fn no_options() -> Kwargs {
    Kwargs::from_iter(std::iter::empty::<(&str, Value)>())
}

/// As markupsafe escapes.
fn escape(state: &State, value: &Value) -> Result<Value, Error> {
    if value.is_safe() {
        return Ok(value.clone());
    }
    let text = text_of(state, value)?;
    Ok(Value::from_safe_string(escaped(&text)))
}

pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    out
}

fn is_iterable(value: &Value) -> bool {
    is_sequence(value) || value.kind() == ValueKind::Iterable
}

/// What has a length and items; that includes Jinja's undefined.
fn is_sequence(value: &Value) -> bool {
    let is_sized = |value: &Value| {
        value
            .as_object()
            .is_some_and(|o| o.enumerator_len().is_some())
    };
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Bytes => true,
        ValueKind::Seq | ValueKind::Map => true,
        ValueKind::Iterable => is_sized(value),
        _ => false,
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool) || is_float(value)
}

fn is_float(value: &Value) -> bool {
    as_float(value).is_some()
}
