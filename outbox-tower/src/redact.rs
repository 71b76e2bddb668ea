//! What of a destination may be logged.

/// The destination without what may hold a secret: user info, query and fragment of a URL.
pub(crate) fn destination(text: &str) -> String {
    let end = text.find(['?', '#']).unwrap_or(text.len());
    let text = &text[..end];
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let authority = rest.find('/').unwrap_or(rest.len());
    let from = rest[..authority].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[from..])
}

#[cfg(test)]
mod tests {
    use super::destination;

    #[test]
    fn drops_user_info_query_and_fragment() {
        let secret = "https://user:pa@ss@ci.example/hooks?token=1#x";
        assert_eq!(destination(secret), "https://ci.example/hooks");
        assert_eq!(
            destination("https://ci.example/@me"),
            "https://ci.example/@me"
        );
        assert_eq!(destination("orders.created"), "orders.created");
    }
}
