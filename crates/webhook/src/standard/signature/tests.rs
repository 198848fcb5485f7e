use proptest::prelude::*;

use super::*;

/// The vector of the specification's libraries.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const TIMESTAMP: &str = "1614265330";
const BODY: &[u8] = br#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const NOW: i64 = 1_614_265_330;

const NEXT_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn sources(secrets: &[(&str, &str)]) -> Sources {
    let pairs = secrets.iter().map(|(name, secret)| (*name, SecretString::from(*secret)));
    Sources::of(pairs).expect("the secrets are well formed")
}

fn sign_with(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = BASE64_STANDARD.decode(&secret["whsec_".len()..]).expect("base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length");
    mac.update(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat());
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

/// Verifies with one secret of the source `acme`.
fn verify(id: &str, timestamp: &str, signature: &str, body: &[u8], now: i64) -> Result<(), Rejection> {
    sources(&[("acme", SECRET)]).verify("acme", Some(id), Some(timestamp), Some(signature), body, now)
}

fn verify_signature(signature: &str) -> Result<(), Rejection> {
    verify(ID, TIMESTAMP, signature, BODY, NOW)
}

/// A delivery that is rightly signed at `timestamp` and arrives at `now`.
fn arrives(timestamp: &str, now: i64) -> Result<(), Rejection> {
    verify(ID, timestamp, &sign_with(SECRET, ID, timestamp, BODY), BODY, now)
}

const REFUSED: Result<(), Rejection> = Err(Rejection::Unauthenticated);

#[test]
fn the_specifications_vector_holds() {
    assert_eq!(verify_signature(SIGNATURE), Ok(()));
    assert_eq!(sign_with(SECRET, ID, TIMESTAMP, BODY), SIGNATURE);
}

#[test]
fn whatever_is_tampered_with_is_refused() {
    assert_eq!(verify("msg_p5jXN8AQM9LWM0D4loKWxJel", TIMESTAMP, SIGNATURE, BODY, NOW), REFUSED);
    assert_eq!(verify(ID, "1614265331", SIGNATURE, BODY, NOW), REFUSED);
    assert_eq!(verify(ID, "01614265330", SIGNATURE, BODY, NOW), REFUSED);
    for body in [
        &br#"{"test": 2432232315}"#[..],
        br#"{"test":2432232314}"#,
        br#"{"test": 2432232314} "#,
        br#"{"test": 2.432232314e9}"#,
        b"{\"test\": 2432232314}\n",
        b"\xef\xbb\xbf{\"test\": 2432232314}",
        b"",
    ] {
        assert_eq!(verify(ID, TIMESTAMP, SIGNATURE, body, NOW), REFUSED);
    }
    for signature in [
        "",
        " ",
        "v1",
        "v1,",
        "v1,=",
        "v1,not base64!",
        "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1=g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "V1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1,h0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1O==",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OEA",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=,v1",
    ] {
        assert_eq!(verify_signature(signature), REFUSED, "{signature}");
    }
}

#[test]
fn the_bytes_are_signed_and_not_their_meaning() {
    for body in [
        "{\"z\":1,\"a\":1.10}\n",
        r#"{"a":"\/ é 😀 \u2028"}"#,
        "{\"a\":\"\u{2028}\"}",
        "\u{feff}{}",
        "",
        "a=1&b=2",
    ] {
        let signature = sign_with(SECRET, ID, TIMESTAMP, body.as_bytes());
        assert_eq!(verify(ID, TIMESTAMP, &signature, body.as_bytes(), NOW), Ok(()), "{body}");
    }
}

#[test]
fn one_right_signature_among_others_suffices() {
    let other = sign_with(NEXT_SECRET, ID, TIMESTAMP, BODY);
    for signatures in [
        format!("{SIGNATURE} {other}"),
        format!("{other} {SIGNATURE}"),
        format!("v1a,AAAA {SIGNATURE}"),
        format!("v1,! v2, {SIGNATURE}"),
        format!("  {SIGNATURE} "),
        format!("{SIGNATURE} {SIGNATURE}"),
    ] {
        assert_eq!(verify_signature(&signatures), Ok(()), "{signatures}");
    }
    assert_eq!(verify_signature(&format!("{other} {other}")), REFUSED);
}

#[test]
fn no_more_than_ten_signatures_are_looked_at() {
    let other = format!("{} ", sign_with(NEXT_SECRET, ID, TIMESTAMP, BODY));

    assert_eq!(verify_signature(&format!("{}{SIGNATURE}", other.repeat(9))), Ok(()));
    assert_eq!(verify_signature(&format!("{}{SIGNATURE}", other.repeat(10))), REFUSED);
    assert_eq!(verify_signature(&format!("{}{SIGNATURE}", "v1a,AA== ".repeat(10))), REFUSED);
}

#[test]
fn during_a_rotation_the_old_and_the_new_secret_hold_and_afterwards_only_the_new_one() {
    let third = "whsec_dGhlIHRoaXJkIHNlY3JldCBvZiB0aGUgc291cmNl";
    let signed = |sources: &Sources, secret: &str| {
        let signature = sign_with(secret, ID, TIMESTAMP, BODY);
        sources.verify("acme", Some(ID), Some(TIMESTAMP), Some(&signature), BODY, NOW)
    };
    let rotations = [
        (sources(&[("acme", SECRET), ("acme", NEXT_SECRET)]), [true, true, false]),
        (sources(&[("acme", NEXT_SECRET)]), [false, true, false]),
        (sources(&[("acme", NEXT_SECRET), ("acme", third)]), [false, true, true]),
    ];
    for (sources, holds) in rotations {
        let verified = [SECRET, NEXT_SECRET, third].map(|secret| signed(&sources, secret).is_ok());
        assert_eq!(verified, holds);
    }
}

#[test]
fn a_secret_holds_for_its_own_source_only() {
    let sources = sources(&[("acme", SECRET), ("globex", NEXT_SECRET)]);
    let from = |source: &str| sources.verify(source, Some(ID), Some(TIMESTAMP), Some(SIGNATURE), BODY, NOW);

    assert_eq!(from("acme"), Ok(()));
    for other in ["globex", "", "Acme", "acme ", "acm", "acme\0", "../acme"] {
        assert_eq!(from(other), REFUSED, "{other:?}");
    }
}

#[test]
fn without_secrets_or_without_a_header_everything_is_refused() {
    let none = sources(&[]);
    assert_eq!(none.verify("acme", Some(ID), Some(TIMESTAMP), Some(SIGNATURE), BODY, NOW), REFUSED);

    let sources = sources(&[("acme", SECRET)]);
    for (id, timestamp, signature) in [
        (None, Some(TIMESTAMP), Some(SIGNATURE)),
        (Some(ID), None, Some(SIGNATURE)),
        (Some(ID), Some(TIMESTAMP), None),
        (None, None, None),
    ] {
        assert_eq!(sources.verify("acme", id, timestamp, signature, BODY, NOW), REFUSED);
    }
}

#[test]
fn a_time_may_be_off_by_five_minutes_and_no_more() {
    for (off, verdict) in [
        (0, Ok(())),
        (300, Ok(())),
        (-300, Ok(())),
        (301, Err(Rejection::Skewed { seconds: 301 })),
        (-301, Err(Rejection::Skewed { seconds: -301 })),
        (600, Err(Rejection::Skewed { seconds: 600 })),
        (-172_800, Err(Rejection::Skewed { seconds: -172_800 })),
    ] {
        assert_eq!(arrives(&(NOW + off).to_string(), NOW), verdict, "{off}");
    }
}

#[test]
fn only_a_right_signature_tells_that_the_clock_is_wrong() {
    assert_eq!(verify(ID, "1614265000", SIGNATURE, BODY, NOW), REFUSED);
    assert_eq!(verify(ID, TIMESTAMP, "v1,AAAA", BODY, NOW + 301), REFUSED);
    assert_eq!(verify(ID, TIMESTAMP, SIGNATURE, BODY, NOW + 301), Err(Rejection::Skewed { seconds: -301 }));
}

#[test]
fn no_time_overflows() {
    for (timestamp, now, seconds) in [
        ("-9223372036854775808", NOW, i64::MIN),
        ("-9223372036854775808", i64::MAX, i64::MIN),
        ("-9223372036854775808", i64::MIN + 301, -301),
        ("9223372036854775807", NOW, i64::MAX - NOW),
        ("9223372036854775807", -1, i64::MAX),
        ("9223372036854775807", i64::MIN, i64::MAX),
        ("-1", NOW, -1 - NOW),
        ("0", NOW, -NOW),
    ] {
        let verdict = Err(Rejection::Skewed { seconds });
        assert_eq!(arrives(timestamp, now), verdict, "{timestamp} at {now}");
    }
    assert_eq!(arrives("-9223372036854775808", i64::MIN), Ok(()));
    assert_eq!(arrives("9223372036854775807", i64::MAX - 300), Ok(()));
}

#[test]
fn what_is_no_whole_number_of_seconds_is_refused_although_it_is_signed() {
    for timestamp in [
        "",
        " ",
        "-",
        "1614265330.0",
        "1.61426533e9",
        " 1614265330",
        "1614265330 ",
        "1614265330,1614265330",
        "0x60381c72",
        "9223372036854775808",
        "-9223372036854775809",
        "161426533016142653301614265330",
        "NaN",
        "inf",
        "2021-02-25T15:02:10Z",
        "١٦١٤٢٦٥٣٣٠",
    ] {
        assert_eq!(arrives(timestamp, NOW), REFUSED, "{timestamp:?}");
    }
}

#[test]
fn content_that_is_split_elsewhere_is_no_event() {
    use crate::standard::{Event, Meaning};

    let signature = sign_with(SECRET, "msg.1614265330", TIMESTAMP, BODY);
    let split_earlier = [TIMESTAMP.as_bytes(), b".", BODY].concat();

    assert_eq!(verify("msg", "1614265330", &signature, &split_earlier, NOW), Ok(()));
    assert!(matches!(Event::read(Some("msg"), &split_earlier).meaning(), Meaning::Quarantine(_)));
    // Later is worse still: a body that is an object holds no whole number before its first full stop.
    let signature = sign_with(SECRET, ID, TIMESTAMP, br#"{"a":1614265330.5}"#);
    let id = format!("{ID}.{TIMESTAMP}");
    assert_eq!(verify(&id, r#"{"a":1614265330"#, &signature, b"5}", NOW), REFUSED);
}

#[test]
fn secrets_are_read_by_name_and_a_wrong_one_stops_the_process_without_being_shown() {
    let read = |value: &str| {
        let mut env =
            Env::of_pairs([("SANMOPIA_ENV_STRICT", "false"), (keys::STANDARD_WEBHOOK_SECRETS.name, value)]);
        let sources = Sources::read(&mut env);
        (sources, env.finish().err().map(|error| error.to_string()))
    };
    let (sources, mistakes) = read(&format!("globex={NEXT_SECRET},acme={SECRET}"));
    assert_eq!(mistakes, None);
    let verdict =
        sources.map(|sources| sources.verify("acme", Some(ID), Some(TIMESTAMP), Some(SIGNATURE), BODY, NOW));
    assert_eq!(verdict, Ok(Ok(())));
    let (sources, mistakes) = read("");
    assert!(sources.is_ok_and(|sources| sources.keys.is_empty()) && mistakes.is_none());

    let encoded = |bytes: usize| format!("whsec_{}", BASE64_STANDARD.encode(vec![0x43; bytes]));
    for (secret, flaw) in [
        (SECRET["whsec_".len()..].to_owned(), "whsec_"),
        ("whpk_Q0FOQVJZQ0FOQVJZQ0FOQVJZQ0FOQVJZ".to_owned(), "whsec_"),
        ("whsec_not-base64-canary-canary!!".to_owned(), "base64"),
        ("whsec_Q0NDQ0NDQ0NDQ0NDQ0NDQ0ND=".to_owned(), "base64"),
        (encoded(23), "24 to 64 bytes"),
        (encoded(65), "24 to 64 bytes"),
    ] {
        let (sources, mistakes) = read(&format!("acme={SECRET},globex={secret}"));
        let text = mistakes.expect("it is noted");
        assert!(sources.is_err() && text.contains("secret 2, of `globex`") && text.contains(flaw), "{text}");
        assert!(!text.contains(&secret[secret.len() - 8..]) && !text.contains("canary"), "{text}");
    }
    for bytes in [24, 64] {
        assert_eq!(read(&format!("acme={}", encoded(bytes))).1, None, "{bytes}");
    }
    let (_, mistakes) = read("acme=whsec_AAAAAAAAAAAA,globex=0123456789abcdef");
    let text = mistakes.expect("both are noted");
    assert!(text.contains("secret 1, of `acme`") && text.contains("secret 2, of `globex`"), "{text}");
}

#[test]
fn a_debug_text_shows_no_secret() {
    let text = format!("{:?}", sources(&[("acme", SECRET)]));

    assert!(text.contains("acme") && !text.contains("49, 242"), "{text}");
}

proptest! {
    #[test]
    fn any_headers_and_any_body_are_judged_without_a_panic(
        id in ".{0,40}",
        timestamp in "\\PC{0,30}",
        signature in "(v1,)?\\PC{0,60}",
        body in proptest::collection::vec(any::<u8>(), 0..100),
        now in any::<i64>(),
    ) {
        prop_assert_eq!(verify(&id, &timestamp, &signature, &body, now), REFUSED);
    }

    #[test]
    fn whatever_is_signed_within_the_tolerance_holds(
        id in "[!-~]{1,40}",
        body in proptest::collection::vec(any::<u8>(), 0..100),
        now in any::<i64>(),
        off in -400_i64..=400,
    ) {
        let timestamp = now.saturating_add(off);
        let signature = sign_with(SECRET, &id, &timestamp.to_string(), &body);
        let verdict = verify(&id, &timestamp.to_string(), &signature, &body, now);
        let seconds = timestamp - now;
        let expected = if seconds.abs() <= 300 { Ok(()) } else { Err(Rejection::Skewed { seconds }) };
        prop_assert_eq!(verdict, expected);
    }

    #[test]
    fn one_other_bit_in_the_signature_is_refused(bit in 0_usize..256) {
        let mut bytes = BASE64_STANDARD.decode(&SIGNATURE[3..]).expect("base64");
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(verify_signature(&format!("v1,{}", BASE64_STANDARD.encode(bytes))), REFUSED);
    }
}
