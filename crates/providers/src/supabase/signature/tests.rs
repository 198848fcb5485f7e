//! The published examples of each algorithm.

use jsonwebtoken::crypto::verify;

use super::*;

/// The header and payload of RFC 7515's examples differ in the algorithm only.
const PAYLOAD: &str =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

fn holds(algorithm: Algorithm, key: &DecodingKey, message: &str, signature: &str) -> bool {
    install();
    verify(signature, message.as_bytes(), key, algorithm).expect("the key is of the algorithm's family")
}

/// True for what the example signs, and for nothing that differs by one character.
fn holds_for_this_message_only(
    algorithm: Algorithm,
    key: &DecodingKey,
    message: &str,
    signature: &str,
) -> bool {
    holds(algorithm, key, message, signature) && !holds(algorithm, key, &format!("{message}A"), signature)
}

#[test]
fn the_example_of_rfc_7515_a_2_holds() {
    let key = DecodingKey::from_rsa_components(
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
        "AQAB",
    )
    .expect("base64");
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

    let message = format!("eyJhbGciOiJSUzI1NiJ9.{PAYLOAD}");
    assert!(holds_for_this_message_only(Algorithm::RS256, &key, &message, signature));
}

#[test]
fn the_example_of_rfc_7515_a_3_holds() {
    let key = DecodingKey::from_ec_components(
        "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    )
    .expect("base64");
    let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

    let message = format!("eyJhbGciOiJFUzI1NiJ9.{PAYLOAD}");
    assert!(holds_for_this_message_only(Algorithm::ES256, &key, &message, signature));
}

#[test]
fn the_example_of_rfc_8037_a_4_holds() {
    let key = DecodingKey::from_ed_components("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").expect("base64");
    let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    assert!(holds_for_this_message_only(Algorithm::EdDSA, &key, message, signature));
}

#[test]
fn a_key_of_another_family_checks_nothing() {
    let secret = DecodingKey::from_secret(b"a secret").expect("not empty");
    let point =
        DecodingKey::from_ed_components("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").expect("base64");

    for (algorithm, key) in [
        (Algorithm::HS256, &secret),
        (Algorithm::ES256, &secret),
        (Algorithm::ES256, &point),
        (Algorithm::RS256, &point),
        (Algorithm::EdDSA, &secret),
    ] {
        assert!(verifier(algorithm, key).is_err(), "{algorithm:?}");
    }
}
