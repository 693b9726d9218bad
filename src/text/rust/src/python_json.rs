//! Python's `json.dumps`: the `tojson` of Hugging Face's chat templates.
//!
//! Jinja's own `tojson` escapes for HTML, sorts keys and puts no space where
//! Python does; models were trained on Python's form.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use crate::python_arguments::{argument, bad_argument};
use crate::python_values::{as_float, float_repr};

/// Deeper than any JSON a request may hold (the parser stops at 128).
const MAX_DEPTH: usize = 256;
/// What writing costs, besides one for each value: more than copying a string
/// (64 bytes for one).
pub const BYTES_PER_FUEL: usize = 4;

/// `value|tojson(ensure_ascii=False, indent=None, separators=None,
/// sort_keys=False)`.
pub fn tojson(
    state: &State,
    value: &Value,
    ensure_ascii: Option<bool>,
    indent: Option<Value>,
    options: Kwargs,
) -> Result<String, Error> {
    let ensure_ascii = argument(ensure_ascii, &options, "ensure_ascii")?.unwrap_or(false);
    let indent = argument(indent, &options, "indent")?;
    let separators: Option<Value> = options.get("separators")?;
    let mut writer = Writer {
        state,
        out: String::new(),
        paid: 0,
        ensure_ascii,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        item_separator: if indent.is_some() { "," } else { ", " }.into(),
        key_separator: ": ".into(),
        indent: indent.map(|indent| indent_text(&indent)).transpose()?,
    };
    if let Some(separators) = separators {
        (writer.item_separator, writer.key_separator) = separator_pair(&separators)?;
    }
    options.assert_all_used()?;
    writer.write(value, 0)?;
    writer.pay()?;
    Ok(writer.out)
}

/// One level's indentation: a string, or a number of spaces.
fn indent_text(indent: &Value) -> Result<String, Error> {
    if let Some(text) = indent.as_str() {
        return Ok(text.to_owned());
    }
    match i64::try_from(indent.clone()) {
        Ok(spaces) if spaces <= 64 => Ok(" ".repeat(spaces.max(0) as usize)),
        _ => Err(bad_argument("tojson: indent is not a small number")),
    }
}

fn separator_pair(separators: &Value) -> Result<(String, String), Error> {
    let pair: Vec<Value> = separators.try_iter()?.take(3).collect();
    match pair.as_slice() {
        [item, key] => match (item.as_str(), key.as_str()) {
            (Some(item), Some(key)) => Ok((item.to_owned(), key.to_owned())),
            _ => Err(bad_argument("tojson: separators are not strings")),
        },
        _ => Err(bad_argument("tojson: separators is not a pair")),
    }
}

struct Writer<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    out: String,
    /// How much of `out` the template's budget has paid for.
    paid: usize,
    ensure_ascii: bool,
    sort_keys: bool,
    item_separator: String,
    key_separator: String,
    indent: Option<String>,
}

impl Writer<'_, '_, '_> {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(bad_argument("tojson: the value is nested too deeply"));
        }
        // A value that holds itself many times over is small, its text is not:
        // the budget is charged on the way.
        self.state.consume_fuel(1)?;
        if self.out.len() - self.paid > 4096 {
            self.pay()?;
        }
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self
                .out
                .push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)),
            ValueKind::String => self.write_string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.write_array(value, depth)?,
            ValueKind::Map => self.write_object(value, depth)?,
            ValueKind::Plain if as_float(value).is_some() => self.out.push_str(&number(value)),
            kind => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("tojson: a value of type {kind} is not JSON serializable"),
                ))
            }
        }
        Ok(())
    }

    fn write_array(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.out.push('[');
        let mut empty = true;
        for item in value.try_iter()? {
            self.begin_item(empty, depth);
            empty = false;
            self.write(&item, depth + 1)?;
        }
        self.end_container(empty, depth);
        self.out.push(']');
        Ok(())
    }

    fn write_object(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let mut keys: Vec<Value> = value.try_iter()?.collect();
        if self.sort_keys {
            keys.sort();
        }
        self.out.push('{');
        for (index, key) in keys.iter().enumerate() {
            self.begin_item(index == 0, depth);
            match key.kind() {
                ValueKind::String => self.write_string(key.as_str().unwrap_or_default()),
                ValueKind::None => self.out.push_str("\"null\""),
                ValueKind::Bool if key.is_true() => self.out.push_str("\"true\""),
                ValueKind::Bool => self.out.push_str("\"false\""),
                ValueKind::Number => self.write_string(&number(key)),
                _ => return Err(bad_argument("tojson: a key is not a string")),
            }
            self.out.push_str(&self.key_separator);
            self.write(&value.get_item(key)?, depth + 1)?;
        }
        self.end_container(keys.is_empty(), depth);
        self.out.push('}');
        Ok(())
    }

    fn begin_item(&mut self, first: bool, depth: usize) {
        if !first {
            self.out.push_str(&self.item_separator);
        }
        self.new_line(depth + 1);
    }

    fn end_container(&mut self, empty: bool, depth: usize) {
        if !empty {
            self.new_line(depth);
        }
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn write_string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && c > '~') => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn pay(&mut self) -> Result<(), Error> {
        let unpaid = self.out.len() - self.paid;
        self.paid = self.out.len();
        self.state.consume_fuel((unpaid / BYTES_PER_FUEL) as u64)
    }
}

/// As `repr`, but for what Python's JSON calls otherwise.
fn number(value: &Value) -> String {
    match as_float(value) {
        Some(float) if float.is_nan() => "NaN".into(),
        Some(f64::INFINITY) => "Infinity".into(),
        Some(f64::NEG_INFINITY) => "-Infinity".into(),
        Some(float) => float_repr(float),
        None => value.to_string(),
    }
}
