//! HTTP transfer.

use abide_cmp::PkiBody;
use abide_enroll::{FailureClass, NetworkError, Operation, Phase, Response};

use super::peer::{Answer, answers_well, under_secret, world};
use crate::faults::state;
use crate::world::{World, issued, ok, waits};

/// An HTTP answer that carries no message: it must change nothing, whatever it says.
fn changes_nothing(class: FailureClass, words: &str, response: Response) {
    let world = world(Operation::Cr);
    world.next_is_lost();
    waits(world.begin().expect("a beginning"));
    let before = state(&world.record());
    world.next(move |_, _| Ok(response.clone()));
    let failure = waits(world.step()).failure.expect("a failure");
    assert_eq!(failure.class, class, "{failure:?}");
    assert!(failure.reason.contains(words), "{failure:?}");
    assert_eq!(state(&world.record()), before);
    answers_well(&world);
    issued(world.step());
    let sent = world.sent();
    assert!(sent[0] == sent[1] && sent[1] == sent[2], "octet for octet");
}

fn empty(status: u16) -> Response {
    Response {
        status,
        content_type: None,
        ..ok(Vec::new())
    }
}

/// RFC 9811, 3.1.
#[test]
fn a_message_is_handled_under_any_status_of_2xx_4xx_and_5xx() {
    for status in [200, 201, 202, 299, 400, 403, 404, 429, 500, 503, 599] {
        let world = world(Operation::Cr);
        for _ in 0..2 {
            world.next(move |ca, request| {
                Ok(Response {
                    status,
                    ..ok(under_secret(ca, request))
                })
            });
        }
        issued(world.begin().expect("a beginning"));
    }
}

/// RFC 9811, 3.1 and 5: a 301 could send an end entity elsewhere for good.
#[test]
fn a_redirect_is_not_followed() {
    for status in [300, 301, 302, 307, 308] {
        let redirect = Response {
            location: Some("http://elsewhere.example/".into()),
            ..empty(status)
        };
        // The next request goes to the configured server: the world demands it.
        changes_nothing(
            FailureClass::Malformed,
            "http://elsewhere.example/",
            redirect,
        );
    }
    // Not even with a message in it.
    let world = world(Operation::Cr);
    world.next(|ca, request| {
        Ok(Response {
            status: 301,
            ..ok(under_secret(ca, request))
        })
    });
    waits(world.begin().expect("a beginning"));
    assert_eq!(world.record().phase, Phase::Enrolling);
}

/// RFC 9811, 3.2 and 3.4.
#[test]
fn a_message_comes_as_application_pkixcmp() {
    for (kind, taken) in [
        (Some("application/pkixcmp"), true),
        (Some("Application/PKIXCMP; charset=binary"), true),
        (Some("application/pkixcmp-poll"), true),
        (None, true),
        (Some("text/html"), false),
        (Some("application/octet-stream"), false),
        (Some("application/pkixcmpx"), false),
    ] {
        let world = world(Operation::Cr);
        for _ in 0..2 {
            world.next(move |ca, request| {
                Ok(Response {
                    content_type: kind.map(String::from),
                    ..ok(under_secret(ca, request))
                })
            });
        }
        let progress = world.begin().expect("a beginning");
        match taken {
            true => drop(issued(progress)),
            false => {
                let failure = waits(progress).failure.expect("a failure");
                assert_eq!(failure.class, FailureClass::Malformed);
            }
        }
    }
}

/// RFC 9811, 3.1: what HTTP says is no word of the CA.
#[test]
fn http_without_a_message_changes_nothing() {
    let html = |status| Response {
        status,
        content_type: Some("text/html".into()),
        ..ok(b"<html>certificate revoked</html>".to_vec())
    };
    for status in [408, 425, 429, 500, 502, 503, 599] {
        let words = format!("HTTP {status}");
        changes_nothing(FailureClass::Transient, &words, html(status));
        changes_nothing(FailureClass::Transient, &words, empty(status));
    }
    for status in [400, 401, 403, 404, 410] {
        let words = format!("HTTP {status}");
        changes_nothing(FailureClass::Malformed, &words, html(status));
        changes_nothing(FailureClass::Malformed, &words, empty(status));
    }
    for status in [200, 202, 204] {
        changes_nothing(
            FailureClass::Malformed,
            &format!("HTTP {status}"),
            empty(status),
        );
    }
}

/// RFC 9811, 3.3: without an answer, the message counts as not delivered. It may have been
/// all the same, hence the same octets again.
#[test]
fn without_an_answer_the_same_octets_are_sent_again() {
    let errors: [fn() -> NetworkError; 4] = [
        || NetworkError::Timeout("30 s".into()),
        || NetworkError::Interrupted("reset".into()),
        || NetworkError::Unreachable("refused".into()),
        || NetworkError::Tls("handshake".into()),
    ];
    for error in errors {
        let world = world(Operation::Cr);
        world.next(move |_, _| Err(error()));
        let failure = waits(world.begin().expect("a beginning")).failure;
        let failure = failure.expect("a failure that is waited out");
        assert_eq!(failure.class, FailureClass::Transient);
        answers_well(&world);
        issued(world.step());
        assert_eq!(world.sent()[0], world.sent()[1]);
    }
}

/// A server that is busy says when it wants the next request; policy has the last word.
#[test]
fn retry_after_is_minded_within_the_bounds_of_the_configuration() {
    use crate::world::{LIMITS, SECOND};
    for (asked, wait) in [
        (60, 60 * SECOND),
        (1 << 40, LIMITS.maximum_poll_interval_ms),
    ] {
        let world = World::new(Operation::P10cr);
        world.next(move |_, _| {
            Ok(Response {
                retry_after: Some(asked),
                ..empty(503)
            })
        });
        let waiting = waits(world.begin().expect("a beginning"));
        assert_eq!(waiting.until_ms - world.now_ms.get(), wait);
    }
}

/// RFC 9483, 6.1: the request that opens, certConf and pollReq go to the same endpoint.
#[test]
fn all_messages_of_an_operation_go_to_the_endpoint_of_the_first() {
    // The world demands it of every message.
    let world = World::new(Operation::P10cr);
    world.ca.patience.set(2);
    waits(world.begin().expect("a beginning"));
    issued(world.to_the_end());
    let sent = world.sent_types();
    assert_eq!(sent, ["p10cr", "pollReq", "pollReq", "certConf"]);
    // A response of one message is one message: nothing may follow it.
    let world = super::peer::world(Operation::Cr);
    world.next_says(|_, request| {
        let one = Answer::under_secret(request).with(&PkiBody::PkiConf);
        [one.clone(), one].concat()
    });
    let failure = waits(world.begin().expect("a beginning")).failure;
    assert_eq!(failure.expect("a failure").class, FailureClass::Malformed);
}
