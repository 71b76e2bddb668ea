//! Secrets: what is refused, how it is said, and how rings are rotated.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use outbox_http::outbox_core::jobs::RotateSecrets;
use outbox_http::outbox_core::{
    Bytes, Error, ErrorKind, EventId, JobEnd, Schedule, ScheduledJob, Scheduler, Signer,
    SigningInput, TokioTimer, async_trait,
};
use outbox_http::{
    EnvSecrets, FileSecrets, Key, KeyRing, Reload, SecretProvider, SecretText, SharedRing,
    SharedSecret, StandardKey, StandardSecret, StandardWebhooks, Verifier, VerifyErrorKind,
};

const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

#[test]
fn a_refused_secret_is_told_what_is_wrong_and_never_quoted() {
    let cases = [
        ("", "is empty"),
        (" whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "white space"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "white space"),
        (
            "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "begins with `v1,`",
        ),
        (
            "v1a,whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "begins with `v1a,`",
        ),
        (
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "doesn't begin with `whsec_`",
        ),
        ("whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "is an Ed25519"),
        ("whsec_", "nothing after"),
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
            "isn't standard base64",
        ),
        ("whsec_MfKQ9r8GKYqrTwjU-_8ILPZIo2LaLaSw", "URL-safe base64"),
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8I",
            "holds 15 bytes; 24 to 75 are allowed",
        ),
    ];
    for (text, problem) in cases {
        let error = StandardSecret::new(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        let said = format!("{error} {error:?}");
        assert!(said.contains(problem), "{text:?}: {said}");
        assert!(!said.contains("MfKQ9r8"), "{said}");
    }
    assert!(SharedSecret::new("").is_err());
    assert!(SharedSecret::existing("").is_err());
}

#[cfg(not(feature = "ed25519"))]
#[test]
fn a_key_that_needs_a_feature_says_so() {
    let error = StandardKey::new("whsk_MfKQ9r8").unwrap_err().to_string();
    assert!(error.contains("needs the feature `ed25519`"), "{error}");
}

#[cfg(feature = "ed25519")]
#[test]
fn an_ed25519_key_must_be_whole() {
    use outbox_http::{PublicKey, SigningKey};
    let pair =
        "6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
    let key = SigningKey::new(&format!("whsk_{pair}")).unwrap();
    assert_eq!(
        key.public().to_string(),
        "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
    );
    assert!(!format!("{key:?}").contains("6Xb"));
    let other = format!("whsk_7{}", &pair[1..]);
    let error = SigningKey::new(&other).unwrap_err().to_string();
    assert!(error.contains("doesn't belong to its seed"), "{error}");
    let zero = format!("whpk_{}=", "A".repeat(43));
    assert!(PublicKey::new(&zero).is_err(), "a weak key proves nothing");
}

#[test]
fn nothing_that_holds_a_secret_shows_it() {
    let secret = "correct horse battery staple";
    let ring = KeyRing::new([Key::new("a", SharedSecret::new(secret).unwrap())]);
    let shared = SharedRing::from(ring.clone());
    let text = SecretText::new("a", secret);
    let scheme = StandardWebhooks::new(NEW).unwrap();
    let shown = format!("{ring:?} {shared:?} {text:?} {scheme:?}");
    assert!(
        !shown.contains("horse") && !shown.contains("MfKQ9r8"),
        "{shown}"
    );
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn signed(scheme: &StandardWebhooks, when: SystemTime) -> HeaderMap {
    let input = SigningInput::new(EventId::new(), when, Bytes::from_static(b"{}"));
    let headers = futures::executor::block_on(scheme.sign(&input)).unwrap();
    let pair = |h: outbox_http::outbox_core::SignatureHeader| {
        (
            HeaderName::try_from(h.name).unwrap(),
            h.value.parse().unwrap(),
        )
    };
    headers.into_iter().map(pair).collect()
}

/// The receiver learns the new secret first, then the sender signs with both, then with the new
/// alone; at no moment is a delivery refused.
#[test]
fn a_rotation_has_no_gap() {
    let key = |name: &str, text: &str| Key::new(name, StandardKey::new(text).unwrap());
    let sender = StandardWebhooks::with_keys(key("old", OLD));
    let receiver = |when| {
        StandardWebhooks::with_keys(KeyRing::new([key("new", NEW), key("old", OLD)]))
            .clock(move || at(when))
    };
    let check = |when: u64| {
        receiver(when)
            .verify(&signed(&sender, at(when)), b"{}")
            .unwrap()
            .key
    };
    assert_eq!(&*check(100), "old");

    let ring = sender
        .keys()
        .current()
        .rotated(key("new", NEW), at(200), Duration::from_secs(60));
    sender.keys().replace(ring);
    for when in [200, 259] {
        let headers = signed(&sender, at(when));
        let list = headers["webhook-signature"].to_str().unwrap();
        assert_eq!(list.split(' ').count(), 2, "both keys sign");
        assert_eq!(&*check(when), "new");
    }
    let headers = signed(&sender, at(260));
    let only_old = StandardWebhooks::with_keys(key("old", OLD)).clock(|| at(260));
    let error = only_old.verify(&headers, b"{}").unwrap_err();
    assert_eq!(error.kind(), VerifyErrorKind::NoMatch);
    assert_eq!(sender.keys().current().uses()[0], ("new".into(), 5));
}

#[test]
fn signing_without_a_key_that_counts_is_tried_again_later() {
    let key = Key::new("next", StandardKey::new(NEW).unwrap()).not_before(at(100));
    let scheme = StandardWebhooks::with_keys(key);
    let input = SigningInput::new(EventId::new(), at(99), Bytes::new());
    let error = futures::executor::block_on(scheme.sign(&input)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_ring_is_loaded_from_files_and_refreshed() {
    let folder = std::env::temp_dir().join(format!("outbox-http-secrets-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (current, previous) = (folder.join("current"), folder.join("previous"));
    let provider = FileSecrets::new([&current, &previous]);
    assert!(provider.secrets().await.is_err(), "no file is an error");

    fs::write(&current, format!("{OLD}\n")).unwrap();
    let ring: SharedRing<StandardKey> = SharedRing::load(&provider).await.unwrap();
    fs::write(&previous, OLD).unwrap();
    fs::write(&current, NEW).unwrap();
    ring.refresh(&provider).await.unwrap();
    let names: Vec<_> = ring
        .current()
        .uses()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["current".into(), "previous".into()]);

    fs::write(&current, "whsec_oops").unwrap();
    let error = ring.refresh(&provider).await.unwrap_err();
    assert_eq!(error.to_string(), "the secret named \"current\" is refused");
    assert_eq!(ring.current().uses().len(), 2, "a bad file changes nothing");
    fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn variables_that_are_not_set_are_left_out_unless_none_is() {
    let error = EnvSecrets::new(["OUTBOX_HTTP_NOT_SET"])
        .secrets()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    let found = EnvSecrets::new(["OUTBOX_HTTP_NOT_SET", "PATH"])
        .secrets()
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
}

/// A key service whose answer can be changed.
#[derive(Clone)]
struct Vault(Arc<Mutex<Vec<SecretText>>>);

#[async_trait]
impl SecretProvider for Vault {
    async fn secrets(&self) -> Result<Vec<SecretText>, Error> {
        Ok(self.0.lock().unwrap().clone())
    }
}

#[tokio::test(start_paused = true)]
async fn the_rotation_job_reloads_the_ring_of_a_scheme_and_outlives_a_bad_secret() {
    let vault = Vault(Arc::new(Mutex::new(vec![SecretText::new("old", OLD)])));
    let ring: SharedRing<StandardKey> = SharedRing::load(&vault).await.unwrap();
    let sender = StandardWebhooks::with_keys(ring.clone());
    let receiver = |name: &str, text: &str| {
        let key = Key::new(name, StandardKey::new(text).unwrap());
        StandardWebhooks::with_keys(key).clock(|| at(100))
    };
    let job = RotateSecrets::new(Reload::new(ring.clone(), vault.clone()));
    let job = ScheduledJob::new("secrets", Schedule::every(Duration::from_secs(60)), job);
    let scheduler = Scheduler::builder(TokioTimer).job(job).build().unwrap();
    let put = |secrets: Vec<SecretText>| *vault.0.lock().unwrap() = secrets;

    put(vec![
        SecretText::new("new", NEW),
        SecretText::new("old", OLD),
    ]);
    scheduler
        .run(tokio::time::sleep(Duration::from_secs(61)))
        .await;
    let headers = signed(&sender, at(100));
    assert_eq!(
        &*receiver("new", NEW).verify(&headers, b"{}").unwrap().key,
        "new"
    );
    assert_eq!(
        &*receiver("old", OLD).verify(&headers, b"{}").unwrap().key,
        "old"
    );

    for bad in [vec![SecretText::new("new", "whsec_oops")], vec![]] {
        put(bad);
        let end = scheduler.run_now("secrets").await;
        assert!(matches!(end, Some(JobEnd::Failed(_))), "{end:?}");
        assert_eq!(
            ring.current().uses().len(),
            2,
            "a bad secret, or none, changes nothing"
        );
    }

    put(vec![SecretText::new("new", NEW)]);
    let end = scheduler.run_now("secrets").await;
    assert!(matches!(end, Some(JobEnd::Finished)), "{end:?}");
    let headers = signed(&sender, at(100));
    receiver("old", OLD).verify(&headers, b"{}").unwrap_err();
    assert_eq!(ring.current().uses(), [("new".into(), 2)], "counts go on");
}

/// What tells a receiver that the old secret can go.
#[test]
fn the_receivers_ring_tells_which_key_still_verifies() {
    let key = |name: &str, text: &str| Key::new(name, StandardKey::new(text).unwrap());
    let receiver = StandardWebhooks::with_keys(KeyRing::new([key("new", NEW), key("old", OLD)]));
    let receiver = receiver.clock(|| at(100));
    let old = StandardWebhooks::with_keys(key("mine", OLD));
    for _ in 0..3 {
        receiver.verify(&signed(&old, at(100)), b"{}").unwrap();
    }
    let uses = receiver.keys().current().uses();
    assert_eq!(uses, [("new".into(), 0), ("old".into(), 3)]);
}
