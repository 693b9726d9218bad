//! The C boundary. `ingle_text.h` is its contract; every function here has its
//! declaration there.

mod boundary;
mod chat_template;
mod generation_tags;
mod grammar;
mod grammar_tokens;
mod python_arguments;
mod python_filters;
mod python_json;
mod python_methods;
mod python_text;
mod python_values;
mod schema_fault;
mod strftime;
mod token_bytes;
mod tokenizer;

use std::os::raw::{c_char, c_int};
use std::sync::atomic::AtomicUsize;

use boundary::{
    bytes, guard, guard_create, guard_create_on_stack, guard_on_stack, text, utf8, Buffer, Code,
    Failure, Ids,
};
use chat_template::{stack_bytes, ChatTemplate};
use grammar::{Grammar, GrammarFactory, GrammarMatcher, Part, RawPart};
use tokenizer::Tokenizer;

/// # Safety
/// `buffer` came from this crate and was not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ingle_text_buffer_free(buffer: Buffer) {
    unsafe { buffer.free() }
}

/// # Safety
/// `ids` came from this crate and was not freed yet.
#[no_mangle]
pub unsafe extern "C" fn ingle_text_ids_free(ids: Ids) {
    unsafe { ids.free() }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_create(
    json: *const c_char,
    json_size: usize,
    out: *mut *mut Tokenizer,
    error: *mut Buffer,
) -> Code {
    unsafe { guard_create(out, error, || Tokenizer::from_json(bytes(json, json_size))) }
}

/// # Safety
/// `tokenizer` is null or came from `ingle_tokenizer_create`.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_free(tokenizer: *mut Tokenizer) {
    unsafe { boundary::free_handle(tokenizer) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_encode(
    tokenizer: *const Tokenizer,
    input: *const c_char,
    input_size: usize,
    add_special_tokens: c_int,
    out: *mut Ids,
    error: *mut Buffer,
) -> Code {
    unsafe {
        *out = Ids::empty();
        guard(error, || {
            let input = text(input, input_size)?;
            let ids = (*tokenizer).encode(input, add_special_tokens != 0)?;
            *out = Ids::new(ids);
            Ok(String::new())
        })
    }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const i32,
    ids_size: usize,
    skip_special_tokens: c_int,
    out: *mut Buffer,
) -> Code {
    unsafe {
        guard(out, || {
            let ids = boundary::slice(ids, ids_size);
            (*tokenizer).decode(ids, skip_special_tokens != 0)
        })
    }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_id_to_token(
    tokenizer: *const Tokenizer,
    id: i32,
    out: *mut Buffer,
) -> Code {
    unsafe { guard(out, || (*tokenizer).id_to_token(id).ok_or(Failure::Absent)) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_token_bytes(
    tokenizer: *const Tokenizer,
    id: i32,
    out: *mut Buffer,
) -> Code {
    unsafe { guard(out, || (*tokenizer).token_bytes(id)) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_token_to_id(
    tokenizer: *const Tokenizer,
    token: *const c_char,
    token_size: usize,
    out: *mut i32,
) -> Code {
    let mut message = Buffer::empty();
    unsafe {
        let code = guard(&mut message, || {
            let token = text(token, token_size)?;
            *out = (*tokenizer).token_to_id(token).ok_or(Failure::Absent)?;
            Ok(String::new())
        });
        message.free();
        code
    }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_tokenizer_vocab_size(tokenizer: *const Tokenizer) -> i32 {
    unsafe { (*tokenizer).vocab_size() }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_template_create(
    source: *const c_char,
    source_size: usize,
    out: *mut *mut ChatTemplate,
    error: *mut Buffer,
) -> Code {
    unsafe {
        guard_create(out, error, || {
            ChatTemplate::compile(text(source, source_size)?)
        })
    }
}

/// # Safety
/// `handle` is null or came from `ingle_template_create`.
#[no_mangle]
pub unsafe extern "C" fn ingle_template_free(handle: *mut ChatTemplate) {
    unsafe { boundary::free_handle(handle) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_template_render(
    handle: *const ChatTemplate,
    context: *const c_char,
    context_size: usize,
    now: i64,
    out: *mut Buffer,
) -> Code {
    unsafe {
        let template = &*handle;
        let context = bytes(context, context_size);
        guard_on_stack(stack_bytes(context_size), out, |stack_bytes| {
            template.render(utf8(context)?, now, stack_bytes)
        })
    }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_factory_create(
    tokenizer: *const Tokenizer,
    eos: *const i32,
    eos_size: usize,
    vocab_size: usize,
    out: *mut *mut GrammarFactory,
    error: *mut Buffer,
) -> Code {
    unsafe {
        guard_create(out, error, || {
            GrammarFactory::new(&*tokenizer, boundary::slice(eos, eos_size), vocab_size)
        })
    }
}

/// # Safety
/// `factory` is null or came from `ingle_grammar_factory_create`.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_factory_free(factory: *mut GrammarFactory) {
    unsafe { boundary::free_handle(factory) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_create(
    factory: *const GrammarFactory,
    parts: *const RawPart,
    parts_size: usize,
    out: *mut *mut Grammar,
    at_fault: *mut usize,
    error: *mut Buffer,
) -> Code {
    unsafe {
        let factory = &*factory;
        let parts: Vec<Part> = boundary::slice(parts, parts_size)
            .iter()
            .map(|part| Part {
                name: bytes(part.name, part.name_size),
                kind: part.kind,
                text: bytes(part.text, part.text_size),
            })
            .collect();
        let fault = AtomicUsize::new(0);
        let code = guard_create_on_stack(grammar::STACK_BYTES, out, error, || {
            factory.compile(&parts, &fault)
        });
        *at_fault = fault.into_inner();
        code
    }
}

/// # Safety
/// `grammar` is null or came from `ingle_grammar_create`.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_free(grammar: *mut Grammar) {
    unsafe { boundary::free_handle(grammar) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_matcher_create(
    grammar: *const Grammar,
    out: *mut *mut GrammarMatcher,
    error: *mut Buffer,
) -> Code {
    unsafe { guard_create(out, error, || Ok((*grammar).matcher())) }
}

/// # Safety
/// `matcher` is null or came from `ingle_grammar_matcher_create`.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_matcher_free(matcher: *mut GrammarMatcher) {
    unsafe { boundary::free_handle(matcher) }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_matcher_mask(
    matcher: *mut GrammarMatcher,
    bits: *mut u32,
    words: usize,
    error: *mut Buffer,
) -> Code {
    unsafe {
        guard(error, || {
            (*matcher).mask(boundary::slice_mut(bits, words))?;
            Ok(String::new())
        })
    }
}

/// # Safety
/// As the header says.
#[no_mangle]
pub unsafe extern "C" fn ingle_grammar_matcher_accept(
    matcher: *mut GrammarMatcher,
    id: i32,
    is_complete: *mut c_int,
    has_ended: *mut c_int,
    error: *mut Buffer,
) -> Code {
    unsafe {
        guard(error, || {
            let progress = (*matcher).accept(id)?;
            *is_complete = c_int::from(progress.is_complete);
            *has_ended = c_int::from(progress.has_ended);
            Ok(String::new())
        })
    }
}
