//! Random bytes, which the standard library does not hand out.
#![allow(unsafe_code, reason = "a call of the C library")]

unsafe extern "C" {
    safe fn getentropy(buffer: &mut [u8; 8], length: usize) -> i32;
}

/// Eight of them.
pub(crate) fn bytes() -> [u8; 8] {
    let mut buffer = [0; 8];
    let length = buffer.len();
    getentropy(&mut buffer, length);
    buffer
}
