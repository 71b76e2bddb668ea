//! How a destination is shown to logs and metrics.

/// A destination without what may be secret in it: of a URL the scheme, host and port (webhook URLs
/// carry tokens in their user, path and query); any other destination as it is.
#[must_use]
pub fn shown_destination(destination: &str) -> &str {
    let Some((scheme, rest)) = destination.split_once("://") else {
        return destination;
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    if rest[..end].contains('@') {
        // A slice can't leave the user out: show no more than the scheme.
        return scheme;
    }
    &destination[..scheme.len() + 3 + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_no_user_path_or_query() {
        for (destination, shown) in [
            (
                "https://hooks.example.com/T0/B0/secret?token=1",
                "https://hooks.example.com",
            ),
            (
                "https://hooks.example.com:8443?token=1",
                "https://hooks.example.com:8443",
            ),
            ("https://user:secret@example.com/", "https"),
            ("https://example.com", "https://example.com"),
            ("amqp://guest:guest@rabbit", "amqp"),
            ("orders.created", "orders.created"),
            ("", ""),
        ] {
            assert_eq!(shown_destination(destination), shown);
        }
    }
}
