//! What crosses the boundary, and the wall that stops panics there.

use std::any::Any;
use std::cell::RefCell;
use std::os::raw::c_char;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;
use std::thread;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    Ok = 0,
    Failed = 1,
    Raised = 2,
    Panicked = 3,
    Absent = 4,
}

#[derive(Debug)]
pub enum Failure {
    /// The input can't be used; why.
    Failed(String),
    /// The words a template gave to `raise_exception`.
    Raised(String),
    Absent,
}

/// Owned bytes on their way to the caller.
#[repr(C)]
pub struct Buffer {
    data: *mut c_char,
    size: usize,
}

impl Buffer {
    pub fn empty() -> Self {
        Buffer {
            data: std::ptr::null_mut(),
            size: 0,
        }
    }

    fn new(text: String) -> Self {
        let (data, size) = into_raw(text.into_bytes());
        Buffer {
            data: data.cast(),
            size,
        }
    }

    pub unsafe fn free(self) {
        unsafe { free_raw(self.data.cast::<u8>(), self.size) }
    }
}

#[repr(C)]
pub struct Ids {
    data: *mut i32,
    size: usize,
}

impl Ids {
    pub fn empty() -> Self {
        Ids {
            data: std::ptr::null_mut(),
            size: 0,
        }
    }

    pub fn new(ids: Vec<i32>) -> Self {
        let (data, size) = into_raw(ids);
        Ids { data, size }
    }

    pub unsafe fn free(self) {
        unsafe { free_raw(self.data, self.size) }
    }
}

fn into_raw<T>(items: Vec<T>) -> (*mut T, usize) {
    let items = items.into_boxed_slice();
    let size = items.len();
    if size == 0 {
        return (std::ptr::null_mut(), 0);
    }
    (Box::into_raw(items).cast(), size)
}

unsafe fn free_raw<T>(data: *mut T, size: usize) {
    if !data.is_null() {
        let items = std::ptr::slice_from_raw_parts_mut(data, size);
        drop(unsafe { Box::from_raw(items) });
    }
}

/// The caller's array; a null pointer is an empty one.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data, size) }
}

pub unsafe fn bytes<'a>(data: *const c_char, size: usize) -> &'a [u8] {
    unsafe { slice(data.cast(), size) }
}

pub unsafe fn text<'a>(data: *const c_char, size: usize) -> Result<&'a str, Failure> {
    std::str::from_utf8(unsafe { bytes(data, size) }).map_err(|error| {
        Failure::Failed(format!(
            "the text is not UTF-8: bad byte at offset {}",
            error.valid_up_to()
        ))
    })
}

pub unsafe fn free_handle<T>(handle: *mut T) {
    if handle.is_null() {
        return;
    }
    let handle = unsafe { Box::from_raw(handle) };
    // A destructor that panics leaks; there is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(handle)));
}

/// Runs `body`; its text, or the message of its failure, goes to `out`.
pub unsafe fn guard(out: *mut Buffer, body: impl FnOnce() -> Result<String, Failure>) -> Code {
    let (code, text) = run(body);
    unsafe { *out = Buffer::new(text) };
    code
}

/// As `guard`, on a thread of its own with a stack of `stack_bytes`. Memory is
/// taken for as much of it as is used.
pub unsafe fn guard_on_stack(
    stack_bytes: usize,
    out: *mut Buffer,
    body: impl FnOnce() -> Result<String, Failure> + Send,
) -> Code {
    let (code, text) = thread::scope(|scope| {
        let started = thread::Builder::new()
            .stack_size(stack_bytes)
            .spawn_scoped(scope, || run(body));
        match started {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| (Code::Panicked, panic_message(&*panic).into())),
            Err(error) => (Code::Panicked, format!("no thread to run on: {error}")),
        }
    });
    unsafe { *out = Buffer::new(text) };
    code
}

/// Runs `body` and hands its value out as a handle.
pub unsafe fn guard_create<T>(
    out: *mut *mut T,
    error: *mut Buffer,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Code {
    unsafe { *out = std::ptr::null_mut() };
    let mut handle = std::ptr::null_mut();
    let (code, text) = run(|| {
        handle = Box::into_raw(Box::new(body()?));
        Ok(String::new())
    });
    unsafe {
        *out = handle;
        *error = Buffer::new(text);
    }
    code
}

thread_local! {
    /// Where the last panic of this thread was: "file:line".
    static PANICKED_AT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn run(body: impl FnOnce() -> Result<String, Failure>) -> (Code, String) {
    // The message of a panic goes to the caller, not to standard error.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_hook(Box::new(|panic| {
            if let Some(at) = panic.location() {
                PANICKED_AT.set(format!("{}:{}", at.file(), at.line()));
            }
        }))
    });

    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(text)) => (Code::Ok, text),
        Ok(Err(Failure::Failed(message))) => (Code::Failed, one_line(&message)),
        Ok(Err(Failure::Raised(message))) => (Code::Raised, message),
        Ok(Err(Failure::Absent)) => (Code::Absent, String::new()),
        Err(panic) => {
            let message = one_line(panic_message(&*panic));
            (Code::Panicked, format!("{}: {message}", PANICKED_AT.take()))
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(message) = panic.downcast_ref::<&str>() {
        message
    } else if let Some(message) = panic.downcast_ref::<String>() {
        message
    } else {
        "panicked"
    }
}

fn one_line(message: &str) -> String {
    message
        .split(|c: char| c.is_control())
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
