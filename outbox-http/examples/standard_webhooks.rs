//! Signs and verifies Standard Webhooks on the command line, for tests against other libraries.
//!
//! * `standard_webhooks sign KEY < BODY` prints the headers, one a line.
//! * `standard_webhooks verify KEY HEADER… < BODY` says whether the signature is good.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Read;
use std::process::ExitCode;
use std::time::SystemTime;

use outbox_http::http::{HeaderMap, HeaderName};
use outbox_http::outbox_core::{Bytes, EventId, Signer, SigningInput};
use outbox_http::{StandardWebhooks, Verifier};

#[expect(clippy::disallowed_methods, reason = "signed as of now")]
fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut body = Vec::new();
    std::io::stdin().read_to_end(&mut body)?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sign", key] => {
            let scheme = StandardWebhooks::new(key)?;
            let input = SigningInput::new(EventId::new(), SystemTime::now(), Bytes::from(body));
            for header in futures::executor::block_on(scheme.sign(&input))? {
                println!("{}: {}", header.name, header.value);
            }
            Ok(ExitCode::SUCCESS)
        }
        ["verify", key, ref lines @ ..] => {
            let mut headers = HeaderMap::new();
            for line in lines {
                let (name, value) = line.split_once(": ").ok_or("a header is `name: value`")?;
                headers.append(HeaderName::try_from(name)?, value.parse()?);
            }
            match StandardWebhooks::new(key)?.verify(&headers, &body) {
                Ok(verified) => println!("good: {:?}", verified.id),
                Err(reason) => {
                    println!("bad: {reason}");
                    return Ok(ExitCode::FAILURE);
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => Err("usage: standard_webhooks sign KEY | verify KEY HEADER…".into()),
    }
}
