//! Arguments of filters and methods as Python binds them.

use minijinja::value::{ArgType, Kwargs};
use minijinja::{Error, ErrorKind, Value};

/// An argument by its place, or else by its name. None is as good as absent.
pub fn argument<'a, T>(
    by_place: Option<T>,
    by_name: &'a Kwargs,
    name: &'a str,
) -> Result<Option<T>, Error>
where
    Option<T>: ArgType<'a, Output = Option<T>>,
{
    match by_place {
        Some(value) => Ok(Some(value)),
        None => by_name.get(name),
    }
}

/// An argument for which None is a value like any other.
pub struct Given(Option<Value>);

impl<'a> ArgType<'a> for Given {
    type Output = Self;

    fn from_value(value: Option<&'a Value>) -> Result<Self, Error> {
        Ok(Given(value.cloned()))
    }
}

impl Given {
    pub fn or_named(self, by_name: &Kwargs, name: &str) -> Result<Option<Value>, Error> {
        match self.0 {
            Some(value) => Ok(Some(value)),
            None => Ok(by_name.get::<Given>(name)?.0),
        }
    }
}

pub fn bad_argument(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
