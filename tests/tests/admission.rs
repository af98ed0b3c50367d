//! Limits, quality of service and placement as a host has them: through the component.

use abide_host::wit::admission::{Arrival, Caller, Criticality, Mode, Outcome, Overrides};
use abide_host::wit::placement::{Algorithm, Criteria, Epoch, Heartbeat, Standing};
use abide_host::{Gate, Runtime, RuntimeConfig};

/// Some time that is a whole second.
const NOW_MS: u64 = 1_800_000_000_000;

fn gate() -> Gate {
    Runtime::new(RuntimeConfig::default())
        .expect("a runtime")
        .gate()
}

fn named(name: &str) -> Caller {
    Caller {
        authenticated: Some(name.to_owned()),
        app: None,
        address: None,
    }
}

fn self_named(app: &str) -> Caller {
    Caller {
        authenticated: None,
        app: Some(app.to_owned()),
        address: None,
    }
}

#[tokio::test]
async fn no_span_of_ten_seconds_admits_more_than_sixty() {
    let policy = r#"{"enabled":true,"learning":false,"capacity":60,"rate_seconds":10}"#;
    let limiter = gate().limiter(policy).await.unwrap().unwrap();
    let mut admitted = Vec::new();
    for at_ms in [NOW_MS + 9_900, NOW_MS + 10_100] {
        for _ in 0..60 {
            let answer = limiter
                .admit(&named("bob"), None, 1, at_ms)
                .await
                .expect("a decision");
            if answer.outcome == Outcome::Admitted {
                admitted.push(at_ms);
            } else {
                assert_eq!(answer.outcome, Outcome::Throttled);
                let headers = limiter.headers(answer, at_ms).await.expect("headers");
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                assert_eq!(
                    names,
                    [
                        "X-RateLimit-Capacity",
                        "X-RateLimit-Remaining",
                        "X-RateLimit-Reset",
                        "X-RateLimit-Learning",
                        "Retry-After",
                    ]
                );
            }
        }
    }
    assert_eq!(admitted, vec![NOW_MS + 9_900; 60]);
}

#[tokio::test]
async fn what_operators_set_goes_before_the_configuration() {
    let policy = r#"{"enabled":true,"learning":true,"capacity":1}"#;
    let limiter = gate().limiter(policy).await.unwrap().unwrap();
    let enforced = Overrides {
        learning: None,
        enforcing: true,
        ignoring: false,
        capacity: Some("2".to_owned()),
        rate_seconds: None,
    };
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let answer = limiter
            .admit(&named("bob"), Some(&enforced), 1, NOW_MS)
            .await
            .expect("a decision");
        outcomes.push((answer.outcome, answer.mode, answer.remaining));
    }
    assert_eq!(
        outcomes,
        [
            (Outcome::Admitted, Mode::Enforced, 1),
            (Outcome::Admitted, Mode::Enforced, 0),
            (Outcome::Throttled, Mode::Enforced, 0),
        ]
    );
}

#[tokio::test]
async fn names_that_clients_choose_reach_no_other_key_and_are_bounded() {
    let policy = r#"{"enabled":true,"learning":false,"capacity":1,"most_apps":3}"#;
    let limiter = gate().limiter(policy).await.unwrap().unwrap();
    let mut keys = Vec::new();
    for app in ["learning", "enforcing", "capacity:bob", "fourth", "fifth"] {
        let placed = limiter
            .place(&self_named(app), None, NOW_MS)
            .await
            .expect("a place");
        keys.push(placed.key);
    }
    assert_eq!(
        keys,
        [
            "rateLimit:bucket:app:learning",
            "rateLimit:bucket:app:enforcing",
            "rateLimit:bucket:app:capacity:bob",
            "rateLimit:bucket:anonymous",
            "rateLimit:bucket:anonymous",
        ]
    );
    let bob = limiter
        .place(&named("bob"), None, NOW_MS)
        .await
        .expect("a place");
    assert_eq!(bob.key, "rateLimit:bucket:principal:bob");
    assert_eq!(bob.limit.capacity, 1);
}

#[tokio::test]
async fn a_bucket_in_a_shared_store_is_taken_from_by_its_octets() {
    let policy = r#"{"enabled":true,"learning":false,"capacity":2}"#;
    let limiter = gate().limiter(policy).await.unwrap().unwrap();
    let placed = limiter.place(&named("bob"), None, NOW_MS).await.unwrap();
    let mut bucket: Option<Vec<u8>> = None;
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let (after, taken) = limiter
            .take(bucket.as_deref(), placed.limit, 1, NOW_MS)
            .await
            .expect("a call")
            .expect("a bucket");
        bucket = Some(after);
        let answer = limiter
            .answer_of(placed.limit, placed.mode, Some(taken), NOW_MS)
            .await
            .expect("an answer");
        outcomes.push(answer.outcome);
    }
    assert_eq!(
        outcomes,
        [Outcome::Admitted, Outcome::Admitted, Outcome::Throttled]
    );
    let away = limiter
        .answer_of(placed.limit, placed.mode, None, NOW_MS)
        .await
        .expect("an answer");
    assert_eq!(
        (away.outcome, away.mode),
        (Outcome::Admitted, Mode::Learning)
    );
    let garbage = limiter
        .take(Some(b"garbage"), placed.limit, 1, NOW_MS)
        .await;
    assert_eq!(garbage.expect("a call"), None);
}

#[tokio::test]
async fn a_mistake_in_a_policy_is_named_by_its_path() {
    let gate = gate();
    let mistakes = gate
        .limiter(r#"{"rate_seconds":0}"#)
        .await
        .expect("a call")
        .expect_err("no limiter");
    assert_eq!(mistakes[0].path, "rate_seconds");
    let mistakes = gate
        .router(r#"{"endpoints":[{"url":"http://a/","selector":{"account":"("}}]}"#)
        .await
        .expect("a call")
        .expect_err("no router");
    assert!(mistakes[0].path.starts_with("endpoints[0]"), "{mistakes:?}");
}

#[tokio::test]
async fn above_the_threshold_new_orders_wait_and_the_oldest_goes_first() {
    let policy = r#"{"enabled":true,"learning_mode":false,"buffer":["naive"]}"#;
    let quality = gate().quality(policy).await.unwrap().unwrap();
    let arrival = Arrival {
        origin: "api".to_owned(),
        by_hand: false,
        criticality: Criticality::Medium,
        not_after_ms: None,
    };
    let at = quality
        .admit(&arrival, 100, NOW_MS)
        .await
        .expect("a decision");
    let above = quality
        .admit(&arrival, 101, NOW_MS)
        .await
        .expect("a decision");
    assert_eq!((at.buffered, above.buffered), (false, true));
    let candidates: Vec<_> = [("b", 20), ("a", 10), ("c", 30)]
        .map(|(id, since_ms)| abide_host::wit::admission::Candidate {
            id: id.to_owned(),
            account: "prod".to_owned(),
            since_ms,
        })
        .into();
    let promoted = quality
        .promote(&candidates, &[], 101, NOW_MS)
        .await
        .expect("a choice");
    assert_eq!(promoted.chosen, [1]);
}

#[tokio::test]
async fn accounts_have_the_owners_that_java_would_give_them() {
    let gate = gate();
    let workers: Vec<String> = ["w0", "w1", "w2"].map(str::to_owned).into();
    // prod 3449687, test 3556498, tenant-a -1306694658, polygenelubricants -2147483648: the
    // absolute value of the truncated remainder by three.
    for (account, owner) in [
        ("prod", "w2"),
        ("test", "w1"),
        ("tenant-a", "w0"),
        ("polygenelubricants", "w2"),
        ("", "w0"),
    ] {
        let found = gate.owner(Algorithm::Modulo, account, &workers).await;
        assert_eq!(found.expect("a call").as_deref(), Some(owner), "{account}");
    }
}

#[tokio::test]
async fn a_new_worker_waits_until_nobody_acts_by_an_older_list() {
    let gate = gate();
    let policy = r#"{"enabled":true,"heartbeat_ms":1000,"ttl_ms":3000}"#;
    let beat = Heartbeat {
        worker: "w0".to_owned(),
        at_ms: NOW_MS,
    };
    let none = Epoch {
        number: 0,
        workers: Vec::new(),
    };
    let epoch = gate
        .next_epoch(policy, &none, &[beat], NOW_MS)
        .await
        .expect("a call")
        .expect("a policy")
        .expect("another list");
    assert_eq!(
        (epoch.number, epoch.workers.as_slice()),
        (1, &["w0".to_owned()][..])
    );
    let view = gate
        .shard_view(policy, &epoch, NOW_MS, NOW_MS)
        .await
        .expect("a call")
        .expect("a policy");
    let standing = async |at_ms| view.standing("w0", "prod", at_ms).await.expect("a call");
    // One and a half heartbeats.
    assert_eq!(standing(NOW_MS).await, Ok(Standing::Waiting(NOW_MS + 1500)));
    view.read(&epoch, NOW_MS + 1000, NOW_MS + 1000)
        .await
        .expect("a call");
    assert_eq!(standing(NOW_MS + 1500).await, Ok(Standing::Owner));
    assert!(
        standing(NOW_MS + 2500).await.is_err(),
        "its list is too old"
    );
}

#[tokio::test]
async fn the_endpoint_with_the_highest_priority_that_matches_is_taken() {
    let routing = r#"{"endpoints":[
        {"url":"http://default/"},
        {"url":"http://prod/","priority":10,"selector":{"account":"prod.*"}},
        {"url":"http://never/","priority":5,"selector":{"account":"prod-eu"}}]}"#;
    let router = gate().router(routing).await.unwrap().unwrap();
    let criteria = Criteria {
        application: None,
        account: Some("PROD-eu".to_owned()),
        user: None,
        cloud_provider: None,
        execution_type: None,
        origin: None,
        location: None,
        user_origin: None,
    };
    let route = router
        .route(&criteria)
        .await
        .expect("a call")
        .expect("a route");
    assert_eq!(
        (route.url.as_str(), route.entry.as_str()),
        ("http://prod/", "endpoints[1]")
    );
    let lint = router.lint().await.expect("a call");
    assert_eq!(lint[0].path, "endpoints[2]", "{lint:?}");
}
