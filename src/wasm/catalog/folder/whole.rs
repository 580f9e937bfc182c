//! Whether a file may still be on its way, seen from its bytes alone.

/// How WebAssembly begins.
const MAGIC: &[u8] = b"\0asm";

/// The magic and the version with its layer.
const HEADER_BYTES: usize = 8;

/// Bytes of the longest LEB128 number of 32 bits.
const LENGTH_BYTES_MAX: usize = 5;

/// Whether nothing shows that bytes are missing: the file ends where its last section ends, or is no WebAssembly at all,
/// which more bytes would not change. A file that is cut exactly between two sections is whole in this sense.
///
/// Some programs give a file its size before its bytes. What they have not written yet is zeros: no header, or a section
/// without a name, which no compiler writes.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let (header, mut sections) = bytes.split_at(bytes.len().min(HEADER_BYTES));
    if header.iter().all(|byte| *byte == 0) || MAGIC.starts_with(header) {
        return false;
    }
    if !header.starts_with(MAGIC) {
        return true;
    }
    if header.len() < HEADER_BYTES {
        return false;
    }
    while let Some((id, rest)) = sections.split_first() {
        sections = match (id, length(rest)) {
            (_, Length::CutOff) | (0, Length::Is(0, _)) => return false,
            (_, Length::Wrong) => return true,
            (_, Length::Is(length, rest)) => match rest.split_at_checked(length) {
                Some((_, next)) => next,
                None => return false,
            },
        };
    }
    true
}

/// The length of a section, and what follows it.
enum Length<'b> {
    Is(usize, &'b [u8]),
    CutOff,
    Wrong,
}

fn length(bytes: &[u8]) -> Length<'_> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(LENGTH_BYTES_MAX) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let rest = bytes.get(index + 1..).unwrap_or_default();
            return u32::try_from(value)
                .ok()
                .and_then(|value| usize::try_from(value).ok())
                .map_or(Length::Wrong, |value| Length::Is(value, rest));
        }
    }
    if bytes.len() < LENGTH_BYTES_MAX { Length::CutOff } else { Length::Wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

    fn component(rest: &[u8]) -> Vec<u8> {
        [HEADER, rest].concat()
    }

    #[test]
    fn a_file_is_whole_where_a_section_ends() {
        let sections = component(b"\x00\x03\x02abc\x07\x81\x00X");
        let ends: Vec<usize> = (0..=sections.len()).filter(|end| is_whole(&sections[..*end])).collect();
        // After the header, after a section of three bytes whose last byte is left over, and at the end.
        let first = component(b"\x00\x03\x02ab").len();
        assert_eq!(ends, [HEADER.len(), first]);
        assert!(is_whole(&component(b"\x00\x03\x02ab\x07\x81\x00X")));
    }

    #[test]
    fn what_is_no_webassembly_is_not_waited_for() {
        for bytes in [b"x".as_slice(), b"hello", b"hello, this is a text", b"\x7fELF\x02\x01\x01\0\0\0\0"] {
            assert!(is_whole(bytes), "{bytes:?}");
        }
        for bytes in [b"".as_slice(), b"\0", b"\0as", b"\0asm", b"\0asm\x0d\0\x01"] {
            assert!(!is_whole(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn zeros_where_bytes_will_come_are_waited_for() {
        assert!(!is_whole(&[0; 4096]));
        assert!(!is_whole(&component(&[0; 4096])));
        assert!(!is_whole(&component(b"\x00\x03\x02ab\0\0\0\0\0\0")));
    }

    #[test]
    fn a_length_that_is_none_is_left_to_the_loader() {
        assert!(is_whole(&component(b"\x01\xff\xff\xff\xff\x7f")));
        assert!(is_whole(&component(b"\x01\x80\x80\x80\x80\x80\x80")));
        assert!(!is_whole(&component(b"\x01\xff\xff\xff\xff\x0f")));
        assert!(!is_whole(&component(b"\x01\x80\x80\x80\x80")));
    }
}
