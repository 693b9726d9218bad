//! Python's `datetime.now().strftime(format)`, which is the C library's.

use std::ffi::CString;
use std::mem::MaybeUninit;

const MAX_SIZE: usize = 1024; // bytes; a date line is far shorter

/// Nothing if the format has a NUL, or the result is not UTF-8 or too long.
pub fn strftime(format: &str, seconds_since_epoch: i64) -> Option<String> {
    // strftime() returns 0 for "too long" and for "nothing to say" alike: a
    // character of ours at the end tells them apart.
    let format = CString::new(format!("{format}.")).ok()?;
    let seconds = seconds_since_epoch as libc::time_t;
    let mut broken_down = MaybeUninit::<libc::tm>::uninit();
    let mut out = vec![0u8; MAX_SIZE];
    let size = unsafe {
        if libc::localtime_r(&seconds, broken_down.as_mut_ptr()).is_null() {
            return None;
        }
        libc::strftime(
            out.as_mut_ptr().cast(),
            out.len(),
            format.as_ptr(),
            broken_down.as_ptr(),
        )
    };
    out.truncate(size.checked_sub(1)?);
    String::from_utf8(out).ok()
}
