//! Reads the time after which a server wants to be asked again.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Returns the time of `retry-after-ms` or `Retry-After`.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let exact = text("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok());
    let exact = exact.and_then(|time| Duration::try_from_secs_f64(time / 1000.0).ok());
    exact.or_else(|| parse_retry_after(text(RETRY_AFTER.as_str())?, now))
}

/// Reads the header `Retry-After`: seconds or an HTTP date.
#[must_use]
pub fn parse_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to parse means longer than anyone waits.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    // A date in the past means no wait.
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2099-10-21T07:27:00Z.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(4_096_250_820)
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let check = |text: &str, expected: Option<u64>| {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(parse_retry_after(text, now()), expected, "{text}");
        };
        check("2", Some(2));
        check("Wed, 21 Oct 2099 07:28:00 GMT", Some(60));
        check("Wed, 21 Oct 2099 07:26:00 GMT", Some(0));
        // Obsolete date formats.
        check("Thursday, 21-Oct-99 07:28:00 GMT", Some(0));
        check("Wed Oct 21 07:28:00 2099", Some(60));
        check("Thu Oct  1 07:28:00 2099", Some(0));
        // Very long, but a number.
        check("999999999999999999999999999999", Some(u64::MAX));
        for text in ["soon", "-1", "+5", "1.5", "", "21 Oct 2099", "2099"] {
            let expected = text.parse::<u64>().ok();
            check(text, expected.filter(|_| !text.starts_with('+')));
        }
    }

    #[test]
    fn milliseconds_count_more_than_seconds() {
        let check = |headers: &[(&'static str, &'static str)], expected: Option<u64>| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, value.parse().unwrap());
            }
            let expected = expected.map(Duration::from_millis);
            assert_eq!(retry_after(&map, now()), expected, "{headers:?}");
        };
        check(&[], None);
        check(
            &[("retry-after-ms", "1500"), ("retry-after", "7")],
            Some(1500),
        );
        check(
            &[("retry-after-ms", "-1"), ("retry-after", "7")],
            Some(7000),
        );
        check(
            &[("retry-after-ms", "NaN"), ("retry-after", "7")],
            Some(7000),
        );
        check(&[("retry-after-ms", "inf"), ("retry-after", "soon")], None);
    }
}
