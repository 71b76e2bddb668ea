//! Hex, as signature headers have it.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends lower-case hex.
pub(crate) fn push(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// The 32 bytes of 64 hex digits, in either case; anything else is none.
pub(crate) fn decode_code(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes();
    if text.len() != 64 {
        return None;
    }
    let mut code = [0; 32];
    for (byte, pair) in code.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(code)
}

const fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_from_either_case_and_nothing_else() {
        let code: [u8; 32] = std::array::from_fn(|i| u8::try_from(i * 8).unwrap());
        let mut text = String::new();
        push(&code, &mut text);
        assert_eq!(decode_code(&text), Some(code));
        assert_eq!(decode_code(&text.to_uppercase()), Some(code));
        assert_eq!(decode_code(&text[1..]), None);
        assert_eq!(decode_code(&text.replace('8', "g")), None);
        assert_eq!(decode_code(&format!("{text}00")), None);
    }
}
