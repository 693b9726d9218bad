//! Grammars that answers have to follow, by `llguidance`: which tokens may come
//! next.

use std::ops::RangeInclusive;
use std::os::raw::c_char;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use llguidance::api::{GrammarWithLexer, ParserLimits, TopLevelGrammar};
use llguidance::{Matcher, ParserFactory};
use serde_json::{json, Value};
use toktrie::InferenceCapabilities;

use crate::boundary::{utf8, Failure};
use crate::grammar_tokens::GrammarTokens;
use crate::schema_fault::{check_multiples, find_fault};
use crate::tokenizer::Tokenizer;

/// A row's lexer may grow to so many states, of one to two kilobytes each.
const MAX_LEXER_STATES: usize = 50_000;

/// White space within JSON: enough for any way to lay it out. A model that is
/// lost can't go on with it for ever.
const JSON_SPACE: &str = r"\x20|\r?\n[\x20\t]{0,64}";

/// A Lark grammar's brackets may be nested so deep; the library recurses.
const MAX_LARK_NESTING: usize = 200;

/// The library recurses on definitions that refer to one another in a chain.
/// Memory is taken for as much of it as is used.
pub const STACK_BYTES: RangeInclusive<usize> = (64 << 20)..=(512 << 20);

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    JsonSchema = 0,
    Regex = 1,
    Lark = 2,
    Choice = 3,
    LenientJsonSchema = 4,
}

/// What all grammars of one tokenizer share. Its slices make masks within JSON
/// strings cheap.
pub struct GrammarFactory(ParserFactory);

/// Compiled, and never advanced itself.
pub struct Grammar(Matcher);

pub struct GrammarMatcher(Matcher);

/// `IngleGrammarPart`.
#[repr(C)]
pub struct RawPart {
    pub name: *const c_char,
    pub name_size: usize,
    pub kind: Kind,
    pub text: *const c_char,
    pub text_size: usize,
}

pub struct Part<'a> {
    pub name: &'a [u8],
    pub kind: Kind,
    pub text: &'a [u8],
}

/// What an accepted token leads to.
pub struct Progress {
    /// The text so far is one of the grammar's.
    pub is_complete: bool,
    /// No token but an end of sequence can follow.
    pub has_ended: bool,
}

impl GrammarFactory {
    pub fn new(tokenizer: &Tokenizer, eos: &[i32], vocab_size: usize) -> Result<Self, Failure> {
        let tokens = GrammarTokens::environment(tokenizer, eos, vocab_size)?;
        let slices = llguidance::earley::SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&tokens, InferenceCapabilities::default(), &slices)
            .map_err(failed)?;
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_lexer_states: MAX_LEXER_STATES,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        Ok(GrammarFactory(factory))
    }

    /// The first part, which may refer to the others. A failure sets `at_fault`
    /// to the part's index.
    pub fn compile(&self, parts: &[Part], at_fault: &AtomicUsize) -> Result<Grammar, Failure> {
        let mut grammars = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            at_fault.store(index, Relaxed);
            grammars.push(part.grammar()?);
        }
        at_fault.store(0, Relaxed);
        let compiled = self.matcher(TopLevelGrammar {
            grammars,
            max_tokens: None,
        });
        if let Err(Failure::Failed(_)) = &compiled {
            for (index, part) in parts.iter().enumerate() {
                if let Some((place, message)) = self.fault_of(part) {
                    at_fault.store(index, Relaxed);
                    return Err(Failure::Failed(format!("{place}{message}")));
                }
            }
        }
        compiled.map(Grammar)
    }

    /// Its first step is tried: there most of those show that are too large, or
    /// that allow nothing.
    fn matcher(&self, grammar: TopLevelGrammar) -> Result<Matcher, Failure> {
        let parser = self.0.create_parser(grammar).map_err(failed)?;
        let mut matcher = Matcher::new(Ok(parser));
        let mask = matcher.compute_mask().map_err(failed)?;
        if let Some(token) = mask.first_bit_set() {
            let mut next = matcher.deep_clone();
            next.consume_token(token as u32).map_err(failed)?;
        }
        Ok(matcher)
    }

    /// Where a schema is at fault by itself, as a path and ": ", and why.
    fn fault_of(&self, part: &Part) -> Option<(String, String)> {
        if part.kind != Kind::JsonSchema {
            return None;
        }
        let schema: Value = serde_json::from_slice(part.text).ok()?;
        let fault = |schema: &Value| {
            let grammar = TopLevelGrammar::from_json_schema(with_options(schema.clone(), false));
            match self.matcher(grammar) {
                Err(Failure::Failed(message)) => Some(message),
                _ => None,
            }
        };
        let message = fault(&schema)?;
        let path = find_fault(&schema, |inner| fault(inner).is_some());
        let place = if path.is_empty() { path } else { path + ": " };
        Some((place, message))
    }
}

impl Grammar {
    /// It shares nothing with others: what breaks one breaks no other.
    pub fn matcher(&self) -> GrammarMatcher {
        GrammarMatcher(self.0.deep_clone())
    }
}

impl GrammarMatcher {
    /// Sets the bits of the tokens that may come next: of the ends of sequence
    /// alone, where nothing else may.
    pub fn mask(&mut self, bits: &mut [u32]) -> Result<(), Failure> {
        let mask = self.0.compute_mask_or_eos().map_err(failed)?;
        let allowed = mask.as_slice();
        let known = bits.len().min(allowed.len());
        bits[..known].copy_from_slice(&allowed[..known]);
        bits[known..].fill(0);
        Ok(())
    }

    pub fn accept(&mut self, id: i32) -> Result<Progress, Failure> {
        self.0.consume_token(id as u32).map_err(failed)?;
        let has_ended = self.0.is_stopped();
        let is_complete = has_ended || self.0.is_accepting().map_err(failed)?;
        Ok(Progress {
            is_complete,
            has_ended,
        })
    }
}

impl Part<'_> {
    fn grammar(&self) -> Result<GrammarWithLexer, Failure> {
        let text = utf8(self.text)?;
        let grammar = match self.kind {
            Kind::JsonSchema | Kind::LenientJsonSchema => {
                let schema = serde_json::from_str(text)
                    .map_err(|error| Failure::Failed(format!("not JSON: {error}")))?;
                check_multiples(&schema)?;
                let lenient = self.kind == Kind::LenientJsonSchema;
                GrammarWithLexer::from_json_schema(with_options(schema, lenient))
            }
            Kind::Regex => GrammarWithLexer::from_regex(text),
            Kind::Lark => {
                check_lark(text)?;
                GrammarWithLexer::from_lark(text.to_string())
            }
            Kind::Choice => {
                let choices: Vec<String> = serde_json::from_str(text)
                    .map_err(|error| Failure::Failed(format!("not a list of strings: {error}")))?;
                let quoted: Vec<String> = choices.iter().map(|text| quote(text)).collect();
                GrammarWithLexer::from_lark(format!("start: {}", quoted.join(" | ")))
            }
        };
        Ok(GrammarWithLexer {
            name: Some(utf8(self.name)?.to_string()),
            ..grammar
        })
    }
}

/// The schema with our options, whatever the client says of them.
fn with_options(mut schema: Value, lenient: bool) -> Value {
    let options = json!({ "whitespace_pattern": JSON_SPACE, "lenient": lenient });
    match &mut schema {
        Value::Object(fields) => {
            fields.insert("x-guidance".into(), options);
            schema
        }
        Value::Bool(true) => json!({ "x-guidance": options }),
        _ => schema,
    }
}

/// As Lark writes a string.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

fn check_lark(lark: &str) -> Result<(), Failure> {
    // The schemas in it can't be told from the rest before it is compiled.
    if lark.contains("%json") && (lark.contains("multipleOf") || lark.contains("\\u")) {
        return Err(Failure::Failed(
            "a grammar with %json can't have multipleOf, nor characters written as \\u".into(),
        ));
    }
    let mut depth = 0usize;
    for c in lark.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_LARK_NESTING {
            return Err(Failure::Failed(format!(
                "brackets are nested more than {MAX_LARK_NESTING} deep"
            )));
        }
    }
    Ok(())
}

/// What the library says, without what it appends for its developers. A panic
/// that it caught is no fault of the grammar.
fn failed(error: anyhow::Error) -> Failure {
    let message = format!("{error:#}");
    let message = message
        .trim_end()
        .trim_end_matches("<non-verbose/>")
        .trim_end();
    let words = message.split("\n<backtrace>").next().unwrap_or_default();
    if words == "NoExtensionBias" {
        return Failure::Failed("it allows no text at all".into());
    }
    match words.strip_prefix("panic: ") {
        Some(words) => Failure::Broken(words.into()),
        None => Failure::Failed(words.into()),
    }
}
