//! Methods of Python's strings, lists and dictionaries: those that
//! minijinja-contrib lacks or does otherwise, then its own.

use minijinja::value::{from_args, Kwargs, Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::python_arguments::{argument, bad_argument};
use crate::python_text::{
    count_lines, is_space, split_last_words, split_lines, split_words, title,
};

pub fn call_method(
    state: &mut State,
    value: &Value,
    method: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            string_method(state, text, method, args)
        }
        ValueKind::Seq | ValueKind::Iterable => list_method(value, method, args),
        ValueKind::Map if method == "copy" => from_args::<()>(args).map(|()| Some(value.clone())),
        _ => Ok(None),
    };
    let result = match own {
        Ok(Some(result)) => return Ok(result),
        Ok(None) => unknown_method_callback(state, value, method, args),
        Err(error) => Err(error),
    };
    result.map_err(|error| with_name(error, method))
}

/// "too many arguments" alone does not say whose.
fn with_name(error: Error, method: &str) -> Error {
    if error.kind() == ErrorKind::UnknownMethod {
        return error;
    }
    let detail = error.detail().unwrap_or("not supported").to_owned();
    Error::new(error.kind(), format!("{method}(): {detail}"))
}

fn string_method(
    state: &State,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "strip" => strip(text, args, true, true)?,
        "lstrip" => strip(text, args, true, false)?,
        "rstrip" => strip(text, args, false, true)?,
        "split" => split(state, text, args, Direction::Forward)?,
        "rsplit" => split(state, text, args, Direction::Backward)?,
        "splitlines" => {
            let (keep_ends, kwargs): (Option<bool>, Kwargs) = from_args(args)?;
            let keep_ends = argument(keep_ends, &kwargs, "keepends")?.unwrap_or(false);
            kwargs.assert_all_used()?;
            pay_for_items(state, count_lines(text))?;
            split_lines(text, keep_ends)
                .into_iter()
                .map(Value::from)
                .collect()
        }
        "title" => {
            let () = from_args(args)?;
            Value::from(title(text))
        }
        "index" => {
            let (wanted,): (&str,) = from_args(args)?;
            match text.find(wanted) {
                Some(at) => Value::from(text[..at].chars().count()),
                None => return Err(bad_argument("the text does not occur")),
            }
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            partition(text.split_once(separator), separator, (text, "", ""))
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            partition(text.rsplit_once(separator), separator, ("", "", text))
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        _ => return Ok(None),
    }))
}

fn list_method(list: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "copy" => {
            let () = from_args(args)?;
            list.clone()
        }
        "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            match list.try_iter()?.position(|item| item == *wanted) {
                Some(index) => Value::from(index),
                None => return Err(bad_argument("the value is not in the list")),
            }
        }
        _ => return Ok(None),
    }))
}

fn strip(text: &str, args: &[Value], start: bool, end: bool) -> Result<Value, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    let is_stripped = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.contains(c));
    let mut text = text;
    if start {
        text = text.trim_start_matches(is_stripped);
    }
    if end {
        text = text.trim_end_matches(is_stripped);
    }
    Ok(Value::from(text))
}

#[derive(PartialEq)]
enum Direction {
    Forward,
    Backward,
}

/// A list is larger than the text that it is made of.
fn pay_for_items(state: &State, count: usize) -> Result<(), Error> {
    state.consume_fuel(count as u64)
}

fn split(state: &State, text: &str, args: &[Value], direction: Direction) -> Result<Value, Error> {
    let (separator, limit, kwargs): (Option<String>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = argument(separator, &kwargs, "sep")?;
    let limit = argument(limit, &kwargs, "maxsplit")?;
    kwargs.assert_all_used()?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let ends = match separator.as_deref() {
        Some(separator) => text.matches(separator).count(),
        None => text.matches(is_space).count(),
    };
    pay_for_items(state, limit.unwrap_or(usize::MAX).min(ends) + 1)?;
    let parts = match (separator.as_deref(), direction) {
        (None, Direction::Forward) => split_words(text, limit),
        (None, Direction::Backward) => split_last_words(text, limit),
        (Some(""), _) => return Err(bad_argument("the separator is empty")),
        (Some(separator), Direction::Forward) => match limit {
            Some(limit) => text.splitn(limit.saturating_add(1), separator).collect(),
            None => text.split(separator).collect(),
        },
        (Some(separator), Direction::Backward) => {
            let limit = limit.map_or(usize::MAX, |limit| limit.saturating_add(1));
            let mut parts: Vec<&str> = text.rsplitn(limit, separator).collect();
            parts.reverse();
            parts
        }
    };
    Ok(parts.into_iter().map(Value::from).collect())
}

fn partition(parts: Option<(&str, &str)>, separator: &str, whole: (&str, &str, &str)) -> Value {
    let (before, middle, after) = match parts {
        Some((before, after)) => (before, separator, after),
        None => whole,
    };
    Value::from(Tuple::new(vec![before.into(), middle.into(), after.into()]))
}
