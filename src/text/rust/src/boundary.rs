//! What crosses the boundary, and the wall that stops panics there.

use std::any::Any;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::os::raw::c_char;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::{Mutex, Once};
use std::thread;

const MAX_MESSAGE: usize = 1000; // bytes

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    Ok = 0,
    Failed = 1,
    Raised = 2,
    Panicked = 3,
    Absent = 4,
    Broken = 5,
}

#[derive(Debug)]
pub enum Failure {
    /// The input can't be used; why.
    Failed(String),
    /// The words a template gave to `raise_exception`.
    Raised(String),
    /// A library says that it panicked.
    Broken(String),
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

    fn new(bytes: Vec<u8>) -> Self {
        let (data, size) = into_raw(bytes);
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

/// The caller's array, to be filled.
pub unsafe fn slice_mut<'a, T>(data: *mut T, size: usize) -> &'a mut [T] {
    if size == 0 {
        return &mut [];
    }
    unsafe { std::slice::from_raw_parts_mut(data, size) }
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
    utf8(unsafe { bytes(data, size) })
}

pub fn utf8(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|error| {
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

/// Runs `body`; its text or bytes, or the message of its failure, go to `out`.
pub unsafe fn guard<T: Into<Vec<u8>>>(
    out: *mut Buffer,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Code {
    let (code, bytes) = run(body);
    unsafe { *out = Buffer::new(bytes) };
    code
}

/// As `guard`, on a thread of its own. `body` is told the size of its stack: the
/// larger of `stack_bytes`, or what of it the system grants. Memory is taken for
/// as much as is used.
pub unsafe fn guard_on_stack(
    stack_bytes: RangeInclusive<usize>,
    out: *mut Buffer,
    body: impl Fn(usize) -> Result<String, Failure> + Sync,
) -> Code {
    let (least, mut size) = stack_bytes.into_inner();
    let body = &body;
    let (code, bytes) = thread::scope(|scope| loop {
        let started = thread::Builder::new()
            .stack_size(size)
            .spawn_scoped(scope, move || run(|| body(size)));
        match started {
            Ok(thread) => {
                break thread
                    .join()
                    .unwrap_or_else(|panic| (Code::Panicked, panic_message(&*panic).into()))
            }
            Err(error) if size <= least => {
                let message = format!("no thread to run on: {error}");
                break (Code::Panicked, message.into());
            }
            Err(_) => size = least.max(size / 2),
        }
    });
    unsafe { *out = Buffer::new(bytes) };
    code
}

/// Runs `body` and hands its value out as a handle.
pub unsafe fn guard_create<T>(
    out: *mut *mut T,
    error: *mut Buffer,
    body: impl FnOnce() -> Result<T, Failure>,
) -> Code {
    let mut value = None;
    let code = unsafe {
        guard(error, || {
            value = Some(body()?);
            Ok(String::new())
        })
    };
    unsafe { *out = into_handle(value) };
    code
}

/// As `guard_create`, on a thread of its own as `guard_on_stack`.
pub unsafe fn guard_create_on_stack<T: Send>(
    stack_bytes: RangeInclusive<usize>,
    out: *mut *mut T,
    error: *mut Buffer,
    body: impl Fn() -> Result<T, Failure> + Sync,
) -> Code {
    let value = Mutex::new(None);
    let code = unsafe {
        guard_on_stack(stack_bytes, error, |_| {
            let created = body()?;
            *value.lock().unwrap() = Some(created);
            Ok(String::new())
        })
    };
    let value = value.into_inner().unwrap_or_default();
    unsafe { *out = into_handle(value) };
    code
}

fn into_handle<T>(value: Option<T>) -> *mut T {
    value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)))
}

#[derive(Default)]
struct Panic {
    in_library: bool,
    at: String, // "file:line"
}

thread_local! {
    static LAST_PANIC: RefCell<Panic> = RefCell::new(Panic::default());
}

fn run<T: Into<Vec<u8>>>(body: impl FnOnce() -> Result<T, Failure>) -> (Code, Vec<u8>) {
    // The message of a panic goes to the caller, not to standard error.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        set_hook(Box::new(|panic| {
            if let Some(at) = panic.location() {
                let in_registry = within_registry(at.file());
                LAST_PANIC.set(Panic {
                    in_library: in_registry.is_some(),
                    at: format!("{}:{}", in_registry.unwrap_or(at.file()), at.line()),
                });
            }
        }))
    });

    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => (Code::Ok, result.into()),
        Ok(Err(Failure::Failed(message))) => (Code::Failed, one_line(&message).into()),
        Ok(Err(Failure::Raised(message))) => (Code::Raised, one_line(&message).into()),
        Ok(Err(Failure::Broken(message))) => (Code::Broken, one_line(&message).into()),
        Ok(Err(Failure::Absent)) => (Code::Absent, Vec::new()),
        Err(panic) => {
            let Panic { in_library, at } = LAST_PANIC.take();
            let code = if in_library {
                Code::Broken
            } else {
                Code::Panicked
            };
            let message = one_line(panic_message(&*panic));
            (code, format!("{at}: {message}").into())
        }
    }
}

/// The path of a source file of a library, without where Cargo keeps it.
fn within_registry(file: &str) -> Option<&str> {
    let (_, path) = file.split_once("/registry/src/")?;
    path.split_once('/').map(|(_, in_registry)| in_registry)
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

/// A message is never empty, and cut where it is long: the input may be in it.
fn one_line(message: &str) -> String {
    let mut line = message
        .split(|c: char| c.is_control())
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if line.is_empty() {
        return "no reason was given".into();
    }
    if line.len() > MAX_MESSAGE {
        let is_end = |at: &usize| line.is_char_boundary(*at);
        let end = (0..=MAX_MESSAGE).rev().find(is_end).unwrap_or(0);
        line.truncate(end);
        line += "...";
    }
    line
}
