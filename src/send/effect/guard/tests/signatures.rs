//! Signatures over the request as it is sent. Foreign verifiers judge them in the integration tests.

use super::*;
use crate::wasm::{Part, Signature};

const URL: &str = "https://hooks.example/x";
const MARKER: &str = "signature-goes-here";

fn signature(key: String, message: Vec<Part>) -> Signature {
    Signature {
        marker: MARKER.to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        encoding: "base64".to_owned(),
        key,
        derive: Vec::new(),
        message,
    }
}

fn signed(header: &str, signatures: Vec<Signature>) -> Request {
    Request {
        sign: signatures,
        body: br#"{"test": 2432232314}"#.to_vec(),
        ..with_header(URL, "webhook-signature", header)
    }
}

fn bytes(text: &str) -> Part {
    Part::Bytes(text.as_bytes().to_vec())
}

#[test]
fn a_standard_webhooks_signature_is_that_of_its_specification() {
    let sent = judged("acme", |placeholder| {
        let message = vec![bytes("msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330."), Part::Body];
        signed(&format!("v1,{MARKER}"), vec![signature(placeholder("sign"), message)])
    });
    let sent = sent.unwrap();
    assert_eq!(sent.headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn several_signatures_stand_in_one_header() {
    let sent = judged("acme", |placeholder| {
        let one = signature(placeholder("sign"), vec![Part::Body]);
        let other = Signature {
            marker: "another-goes-here".to_owned(),
            encoding: "hex".to_owned(),
            ..signature(placeholder("aws"), vec![Part::Body])
        };
        signed(&format!("v1,{MARKER} v1,another-goes-here"), vec![one, other])
    });
    let value = sent.unwrap().headers["webhook-signature"].to_str().unwrap().to_owned();
    let [one, other] = value.split(' ').collect::<Vec<_>>()[..] else { panic!("{value}") };
    assert_eq!((one.len(), other.len()), (3 + 44, 3 + 64));
}

#[test]
fn a_derived_key_is_that_of_signature_version_4() {
    // AWS General Reference, "Deriving a signing key": the example of 20150830, us-east-1, iam.
    let sent = judged("acme", |placeholder| {
        let derive = ["20150830", "us-east-1", "iam", "aws4_request"].map(|step| step.as_bytes().to_vec()).to_vec();
        let message = "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n\
                       f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59";
        let signature =
            Signature { derive, encoding: "hex".to_owned(), ..signature(placeholder("aws"), vec![bytes(message)]) };
        signed(MARKER, vec![signature])
    });
    assert_eq!(
        sent.unwrap().headers["webhook-signature"],
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    );
}

#[test]
fn an_ed25519_signature_is_that_of_its_specification() {
    // RFC 8032 §7.1, test 1: an empty message.
    let sent = judged("acme", |placeholder| {
        let signature = Signature {
            algorithm: "ed25519".to_owned(),
            encoding: "hex".to_owned(),
            ..signature(placeholder("edwards"), Vec::new())
        };
        signed(MARKER, vec![signature])
    });
    assert_eq!(
        sent.unwrap().headers["webhook-signature"],
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    );
}

#[test]
fn what_is_signed_is_what_is_sent() {
    let check = |part: Part, expected: &str| {
        let with = |part: Part| {
            judged("acme", move |placeholder| Request {
                url: format!("{URL}?api+key={}", placeholder("query")),
                ..signed(MARKER, vec![signature(placeholder("sign"), vec![part.clone()])])
            })
        };
        assert_eq!(
            with(part).unwrap().headers["webhook-signature"],
            with(bytes(expected)).unwrap().headers["webhook-signature"]
        );
    };
    check(Part::Url, "https://hooks.example/x?api+key=a%2Fb%26c%3Dd%200123456789");
    check(Part::Body, r#"{"test": 2432232314}"#);
    check(Part::BodyHash("sha256".to_owned()), "ae858931f67887e8150d6f96c9fe03062c1df36b4464c4ddc8e002c084d5d198");
}

#[test]
fn no_marker_tells_what_a_secret_is() {
    let with = |secret: &'static str, marker: &'static str, message: Vec<Part>| {
        move |placeholder: &dyn Fn(&str) -> String| {
            let signature = Signature { marker: marker.to_owned(), ..signature(placeholder("sign"), message.clone()) };
            Request { sign: vec![signature], ..with_header(URL, "authorization", placeholder(secret)) }
        }
    };
    for (secret, right) in [("bot", "Bearer xoxb-0"), ("basic", "Basic cm9ib3Q6"), ("crm", "Bearer token-of")] {
        for marker in [right, "Bearer wrong guess"] {
            for message in [vec![Part::Body], vec![Part::Header("Authorization".to_owned())]] {
                refused("signature", "stands in exactly one header", with(secret, marker, message));
            }
        }
    }
}

#[test]
fn signatures_that_cannot_be_made_are_refused_with_the_reason() {
    let one = |change: fn(&mut Signature)| {
        move |placeholder: &dyn Fn(&str) -> String| {
            let mut signature = signature(placeholder("sign"), vec![Part::Body]);
            change(&mut signature);
            signed(MARKER, vec![signature])
        }
    };
    refused("signature", "hmac-sha256, ed25519", one(|signature| signature.algorithm = "md5".to_owned()));
    refused("signature", "hex, base64, base64url", one(|signature| signature.encoding = "rot13".to_owned()));
    refused("signature", "exactly one header", one(|signature| signature.marker = "stands-nowhere".to_owned()));
    refused("signature", "at least 8 bytes", one(|signature| signature.marker = "short".to_owned()));
    refused("signature", "in: sign", one(|signature| signature.key = "whsec_guessed".to_owned()));
    refused("signature", "no header", one(|signature| signature.message = vec![Part::Header("x-none".to_owned())]));
    refused(
        "signature",
        "cannot be signed itself",
        one(|signature| {
            signature.message = vec![Part::Header("Webhook-Signature".to_owned())];
        }),
    );
    refused("signature", "not sha256", one(|signature| signature.message = vec![Part::BodyHash("md5".to_owned())]));
    refused("signature", "PKCS#8", one(|signature| signature.algorithm = "ed25519".to_owned()));
    refused("secret-place", "the key of a signature", |placeholder| {
        signed(MARKER, vec![signature(placeholder("bot"), vec![Part::Body])])
    });
    refused("signature", "at most 8 signatures", |placeholder| {
        signed(MARKER, vec![signature(placeholder("sign"), vec![Part::Body]); 9])
    });
    refused("signature", "marker of its own", |placeholder| {
        signed(MARKER, vec![signature(placeholder("sign"), vec![Part::Body]); 2])
    });
    refused("signature", "at most", |placeholder| {
        let mut huge = signed(MARKER, vec![signature(placeholder("sign"), vec![Part::Body; 3])]);
        huge.body = vec![b'x'; BODY_BYTES_MAX];
        huge
    });
}
