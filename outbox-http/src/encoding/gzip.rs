//! Gzip (RFC 1952).

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use http::HeaderValue;
use http::header::CONTENT_ENCODING;

use super::Encoded;

pub(super) fn encode(mut encoded: Encoded) -> Result<Encoded, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder
        .write_all(&encoded.body)
        .and_then(|()| encoder.finish())
        .map_err(|e| e.to_string())?;
    encoded.body = Bytes::from(compressed);
    let gzip = HeaderValue::from_static("gzip");
    encoded.headers.insert(CONTENT_ENCODING, gzip);
    Ok(encoded)
}

/// The first bytes, at most `max`, of what this beginning of a gzip stream holds. Decoding stops
/// there, so that a bomb costs no more than a page.
pub(crate) fn decode_start(compressed: &[u8], max: usize) -> Vec<u8> {
    let mut decoder = GzDecoder::new(Capped {
        bytes: Vec::new(),
        max,
    });
    // An error is the cap, a corrupt stream, or one of which only the beginning is here.
    let _ = decoder.write_all(compressed).and_then(|()| decoder.flush());
    std::mem::take(&mut decoder.get_mut().bytes)
}

struct Capped {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for Capped {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = data.len().min(room);
        self.bytes.extend_from_slice(&data[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_is_decoded_up_to_the_cap() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..8 {
            encoder.write_all(&vec![b'x'; 1 << 20]).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert_eq!(decode_start(&bomb, 100), vec![b'x'; 100]);
        assert_eq!(decode_start(&bomb[..200], 100), vec![b'x'; 100]);
        assert!(decode_start(b"no gzip", 100).is_empty());
        assert!(decode_start(&bomb, 0).is_empty());
    }
}
