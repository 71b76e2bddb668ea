//! Periods of time as requests have them.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A period in seconds, fractions allowed.
pub(super) fn seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(input)?;
    seconds
        .map(|seconds| Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom))
        .transpose()
}
