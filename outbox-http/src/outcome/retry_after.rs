//! `Retry-After` (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// The longest wait that is passed on: 30 days. The retry policy has its own, shorter cap.
const MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How long the receiver asks to wait: seconds, or a date in any of the three forms of HTTP.
///
/// A date counts from the answer's own `Date`, or else from `now`; one in the past is no wait at
/// all. Absurd values are cut to 30 days; what is neither (a fraction, a sign, `inf`) is ignored.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use http::{HeaderMap, header::RETRY_AFTER};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(RETRY_AFTER, "120".parse().unwrap());
/// let wait = outbox_http::retry_after(&headers, SystemTime::now());
/// assert_eq!(wait, Some(Duration::from_secs(120)));
/// ```
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // Only too many digits can fail here.
        let wait = value.parse().map_or(MAX, Duration::from_secs);
        return Some(wait.min(MAX));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let from = date
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or(now);
    Some(until.duration_since(from).unwrap_or_default().min(MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        // 1994-11-06 08:48:37, a minute before the dates of RFC 9110, section 5.6.7.
        retry_after(
            &headers,
            SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_717),
        )
    }

    #[test]
    fn reads_seconds_and_cuts_absurd_ones() {
        assert_eq!(wait("0"), Some(Duration::ZERO));
        assert_eq!(wait("120"), Some(Duration::from_secs(120)));
        assert_eq!(wait("99999999999999999999999999"), Some(MAX));
        assert_eq!(wait(&u64::MAX.to_string()), Some(MAX));
    }

    #[test]
    fn reads_all_three_forms_of_a_date() {
        let minute = Some(Duration::from_secs(60));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), minute);
        assert_eq!(wait("Sunday, 06-Nov-94 08:49:37 GMT"), minute);
        assert_eq!(wait("Sun Nov  6 08:49:37 1994"), minute);
    }

    #[test]
    fn a_date_in_the_past_is_no_wait_and_a_far_one_is_cut() {
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), Some(MAX));
    }

    #[test]
    fn ignores_what_is_neither() {
        for value in [
            "", " ", "-1", "+1", "1.5", "1e3", "inf", "NaN", "soon", "1 2", "0x10",
        ] {
            assert_eq!(wait(value), None, "{value:?}");
        }
    }

    #[test]
    fn a_date_counts_from_the_answers_own_date() {
        let mut headers = HeaderMap::new();
        headers.insert(
            RETRY_AFTER,
            "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap(),
        );
        headers.insert(DATE, "Sun, 06 Nov 1994 08:49:07 GMT".parse().unwrap());
        let wait = retry_after(&headers, SystemTime::UNIX_EPOCH);
        assert_eq!(wait, Some(Duration::from_secs(30)));
    }
}
