//! Percent-encoding of attributes in headers (CloudEvents HTTP Protocol Binding 1.0, section 3.1.3.2).

use alloc::string::String;

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The text so that it may stand in a header, in at most `bytes_max`; what was cut is left off at the end.
pub(crate) fn encoded(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        let before = out.len();
        if stands_for_itself(letter) {
            out.push(letter);
        } else {
            for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                out.push('%');
                out.push(digit(byte >> 4));
                out.push(digit(byte & 0xf));
            }
        }
        if out.len() > bytes_max {
            out.truncate(before);
            break;
        }
    }
    out
}

fn stands_for_itself(letter: char) -> bool {
    letter.is_ascii_graphic() && letter != '"' && letter != '%'
}

fn digit(value: u8) -> char {
    DIGITS.get(usize::from(value)).map_or('0', |digit| char::from(*digit))
}
