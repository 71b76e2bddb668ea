//! The key of a request, as it stands in the header.

use ::http::HeaderMap;
use ::http::header::HeaderName;

pub(super) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// What is wrong with the header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The key, where the request has one: a string of RFC 9651 (quoted; parameters after it are not
/// looked at). The draft has no other form; where `bare` is set, a value without quotes is taken as
/// it is, as many clients send it.
pub(super) fn of(headers: &HeaderMap, bare: bool) -> Result<Option<String>, Malformed> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Malformed);
    }
    let text = value.to_str().map_err(|_| Malformed)?.trim_matches(' ');
    let key = match text.strip_prefix('"') {
        Some(rest) => quoted(rest)?,
        None if bare
            && text
                .bytes()
                .all(|b| b.is_ascii_graphic() && !b"\",;\\".contains(&b)) =>
        {
            text.to_owned()
        }
        None => return Err(Malformed),
    };
    if key.is_empty() {
        return Err(Malformed);
    }
    Ok(Some(key))
}

fn quoted(text: &str) -> Result<String, Malformed> {
    let mut key = String::with_capacity(text.len());
    let mut chars = text.chars();
    loop {
        match chars.next() {
            Some('"') => break,
            Some('\\') => match chars.next() {
                Some(c @ ('"' | '\\')) => key.push(c),
                _ => return Err(Malformed),
            },
            Some(c @ ' '..='~') => key.push(c),
            _ => return Err(Malformed),
        }
    }
    let rest = chars.as_str();
    if rest.is_empty() || rest.starts_with(';') {
        Ok(key)
    } else {
        Err(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, bare: bool) -> Result<Option<String>, Malformed> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, text.parse().unwrap());
        of(&headers, bare)
    }

    #[test]
    fn reads_strings_as_rfc_9651_has_them() {
        let id = "8e03978e-40d5-43e8-bc93-6894a57f9324";
        assert_eq!(key(&format!("\"{id}\""), false), Ok(Some(id.to_owned())));
        assert_eq!(
            key(r#" "a\"b\\c" "#, false),
            Ok(Some(r#"a"b\c"#.to_owned()))
        );
        assert_eq!(key(r#""a";v=1"#, false), Ok(Some("a".to_owned())));
        for malformed in [
            r#""a"#,
            r#""a"b"#,
            r#""a\b""#,
            r#""""#,
            "",
            "a",
            r#""a", "b""#,
        ] {
            assert_eq!(key(malformed, false), Err(Malformed), "{malformed}");
        }
    }

    #[test]
    fn takes_a_bare_value_where_that_is_allowed() {
        assert_eq!(key("8e03978e", true), Ok(Some("8e03978e".to_owned())));
        for malformed in ["a b", "a,b", "a\"", "a;b", ""] {
            assert_eq!(key(malformed, true), Err(Malformed), "{malformed}");
        }
    }

    #[test]
    fn refuses_a_repeated_header_and_tells_none_from_malformed() {
        let mut headers = HeaderMap::new();
        assert_eq!(of(&headers, true), Ok(None));
        headers.append(HEADER, "a".parse().unwrap());
        headers.append(HEADER, "a".parse().unwrap());
        assert_eq!(of(&headers, true), Err(Malformed));
    }
}
