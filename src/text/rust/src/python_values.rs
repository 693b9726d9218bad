//! JSON as the values a Python program would have made of it: what prints as
//! Python's `str` and `repr`, and dictionaries whose methods hide their keys.

use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::sync::Arc;

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, Tuple, ValueKind};
use minijinja::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// `x.items` is the method, even where the dictionary has such a key; `x["items"]`
/// is the key.
const DICT_METHODS: [&str; 11] = [
    "clear",
    "copy",
    "fromkeys",
    "get",
    "items",
    "keys",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "values",
];

pub fn from_json(text: &str) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Json.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct Json;

impl<'de> DeserializeSeed<'de> for Json {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::from(()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(if float_repr(value).contains('e') {
            Value::from_object(Float(value))
        } else {
            Value::from(value)
        })
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Json)? {
            list.push(item);
        }
        Ok(container(Value::from(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            map.push((key, entries.next_value_seed(Json)?));
        }
        Ok(container(Value::from_pairs(map)))
    }
}

fn container(value: Value) -> Value {
    match value.as_object() {
        Some(object) => Value::from_object(Container(object.clone())),
        None => value,
    }
}

/// A list or a dictionary.
#[derive(Debug)]
struct Container(DynObject);

impl Object for Container {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        self.0.repr()
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get_value(key)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if self.0.repr() == ObjectRepr::Map && DICT_METHODS.contains(&key) {
            return Some(Value::from_object(Method(key.to_owned())));
        }
        self.0.get_value_by_str(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.0.enumerate()
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.0.enumerator_len()
    }

    fn render(self: &Arc<Self>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_repr(out, &Value::from(self.0.clone()))
    }
}

/// A dictionary's method that is not called. It is true, and no more.
#[derive(Debug)]
struct Method(String);

impl Object for Method {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "<built-in method {} of dict object>", self.0)
    }
}

/// A number that Python prints with an exponent, which the engine does not. It
/// can be printed, tested and turned into JSON, not calculated with.
#[derive(Debug)]
struct Float(f64);

impl Object for Float {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        self.0.partial_cmp(&other.downcast_ref::<Float>()?.0)
    }

    fn render(self: &Arc<Self>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&float_repr(self.0))
    }
}

pub fn as_float(value: &Value) -> Option<f64> {
    if let Some(float) = value.downcast_object_ref::<Float>() {
        return Some(float.0);
    }
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    f64::try_from(value.clone()).ok()
}

/// `str(value)`, but that the engine's strings print themselves.
pub fn write_str(out: &mut dyn Write, value: &Value) -> fmt::Result {
    match value.kind() {
        ValueKind::String | ValueKind::Undefined => write!(out, "{value}"),
        _ => write_repr(out, value),
    }
}

/// A list or dictionary of which a part was written.
struct Open {
    /// Each with what stands before it, unless it is the first.
    items: Box<dyn Iterator<Item = (&'static str, Value)>>,
    is_first: bool,
    close: &'static str,
}

/// `repr(value)`. Values may be nested more deeply than a recursion can go.
fn write_repr(out: &mut dyn Write, value: &Value) -> fmt::Result {
    let mut nested = Vec::new();
    nested.extend(begin(out, value)?);
    while let Some(open) = nested.last_mut() {
        let Some((separator, item)) = open.items.next() else {
            out.write_str(open.close)?;
            nested.pop();
            continue;
        };
        if !open.is_first {
            out.write_str(separator)?;
        }
        open.is_first = false;
        nested.extend(begin(out, &item)?);
    }
    Ok(())
}

/// Writes the value, or what a list or dictionary begins with.
fn begin(out: &mut dyn Write, value: &Value) -> Result<Option<Open>, fmt::Error> {
    match value.as_object().and_then(open) {
        Some((begin, open)) => {
            out.write_str(begin)?;
            return Ok(Some(open));
        }
        None => write_scalar(out, value)?,
    }
    Ok(None)
}

/// What `object` begins with, and the rest of it; nothing where it has no items
/// to print.
fn open(object: &DynObject) -> Option<(&'static str, Open)> {
    let length = object.enumerator_len();
    let (begin, close) = match object.repr() {
        ObjectRepr::Map => ("{", "}"),
        ObjectRepr::Seq if object.downcast_ref::<Tuple>().is_some() => {
            ("(", if length == Some(1) { ",)" } else { ")" })
        }
        ObjectRepr::Seq => ("[", "]"),
        ObjectRepr::Iterable if length.is_some() => ("[", "]"),
        _ => return None,
    };
    let items: Box<dyn Iterator<Item = _>> = if object.repr() == ObjectRepr::Map {
        let pairs = object.try_iter_pairs()?;
        Box::new(pairs.flat_map(|(key, value)| [(", ", key), (": ", value)]))
    } else {
        Box::new(object.try_iter()?.map(|item| (", ", item)))
    };
    let is_first = true;
    Some((
        begin,
        Open {
            items,
            is_first,
            close,
        },
    ))
}

fn write_scalar(out: &mut dyn Write, value: &Value) -> fmt::Result {
    match value.kind() {
        ValueKind::Undefined => out.write_str("Undefined"),
        ValueKind::String => write_string_repr(out, value.as_str().unwrap_or_default()),
        _ => match as_float(value) {
            Some(float) => out.write_str(&float_repr(float)),
            None => write!(out, "{value}"),
        },
    }
}

fn write_string_repr(out: &mut dyn Write, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\\' => out.write_str("\\\\")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if is_printable(c) => out.write_char(c)?,
            c => match u32::from(c) {
                code @ ..0x100 => write!(out, "\\x{code:02x}")?,
                code @ ..0x10000 => write!(out, "\\u{code:04x}")?,
                code => write!(out, "\\U{code:08x}")?,
            },
        }
    }
    out.write_char(quote)
}

/// `str.isprintable()`. Rust escapes what Python does, but for marks that
/// combine with a character before them; in front of one stands a letter here.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut buffer = [0; 5];
    buffer[0] = b'a';
    let size = 1 + c.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..size]).unwrap_or_default();
    text.escape_debug().count() == 2
}

/// `repr(float)`: the shortest digits that read back, in exponent form below
/// 1e-4 and from 1e16 on.
pub fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = value.to_string();
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}
