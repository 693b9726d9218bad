//! What in a JSON schema can't be used, and where it stands.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::boundary::Failure;

/// Parts that are tried before the search is given up.
const MAX_TRIES: usize = 100;
/// And the time that it may take: a request waits for it.
const MAX_TIME: Duration = Duration::from_millis(500);

/// The path of the smallest part that is at fault by itself, as in
/// `properties.age.minimum`; empty: only the whole is. `is_faulty` is asked about
/// parts, with the schema's definitions.
pub fn find_fault(schema: &Value, is_faulty: impl Fn(&Value) -> bool) -> String {
    let mut part = schema;
    let mut path: Vec<String> = Vec::new();
    let mut tries = 0;
    let start = Instant::now();
    'deeper: loop {
        for (place, inner) in parts(part) {
            tries += 1;
            if tries > MAX_TRIES || start.elapsed() > MAX_TIME {
                break 'deeper;
            }
            if is_faulty(&with_definitions(inner, schema)) {
                path.push(place);
                part = inner;
                continue 'deeper;
            }
        }
        break;
    }
    path.concat().trim_start_matches('.').to_string()
}

/// The schemas that stand in a schema, and where.
fn parts(schema: &Value) -> Vec<(String, &Value)> {
    let Value::Object(fields) = schema else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions",
                Value::Object(named),
            ) => {
                for (name, inner) in named.iter().filter(|(_, inner)| inner.is_object()) {
                    parts.push((format!(".{key}.{name}"), inner));
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
                for (index, inner) in list.iter().enumerate() {
                    parts.push((format!(".{key}[{index}]"), inner));
                }
            }
            ("items" | "additionalItems" | "additionalProperties", Value::Object(_)) => {
                parts.push((format!(".{key}"), value));
            }
            _ => {}
        }
    }
    parts
}

/// References are to the whole.
fn with_definitions(part: &Value, whole: &Value) -> Value {
    let mut part = part.clone();
    if let Value::Object(fields) = &mut part {
        for key in ["$defs", "definitions"] {
            if let (Some(definitions), false) = (whole.get(key), fields.contains_key(key)) {
                fields.insert(key.into(), definitions.clone());
            }
        }
    }
    part
}

/// The library's automaton has a state for each remainder, and joins the
/// multiples that are asked of one number: all of a schema's together are bounded.
pub fn check_multiples(schema: &Value) -> Result<(), Failure> {
    const MAX_STATES: u64 = 10_000;
    let mut states = 1u64;
    let mut left = vec![schema];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(list) => left.extend(list),
            Value::Object(fields) => {
                if let Some(multiple) = fields.get("multipleOf").and_then(Value::as_f64) {
                    states = least_common_multiple(states, significant_digits(multiple));
                }
                left.extend(fields.values());
            }
            _ => {}
        }
        if states > MAX_STATES {
            return Err(Failure::Failed(format!(
                "multipleOf is too fine: the least common multiple of all of them, without \
                 their decimal points, can be at most {MAX_STATES}"
            )));
        }
    }
    Ok(())
}

/// 0.25 has 25; as large as can be where there are too many.
fn significant_digits(number: f64) -> u64 {
    let spelled = format!("{:e}", number.abs());
    let mantissa = spelled.split('e').next().unwrap_or_default();
    let digits = mantissa.replace('.', "");
    let exponent: i32 = spelled
        .split('e')
        .nth(1)
        .and_then(|exponent| exponent.parse().ok())
        .unwrap_or_default();
    let decimals = digits.len() as i32 - 1;
    let zeros = u32::try_from(exponent - decimals).unwrap_or(0);
    let digits: u64 = digits.parse().unwrap_or(u64::MAX);
    digits.saturating_mul(10u64.saturating_pow(zeros))
}

fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}
