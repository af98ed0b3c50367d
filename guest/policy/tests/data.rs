//! Policies as data: what is not said has its default, and what is not known is refused.

#![cfg(feature = "serde")]

use abide_policy::endpoint::EndpointState;
use abide_policy::mistake::Check;
use abide_policy::policies::Policies;
use abide_policy::qos::Qos;
use abide_policy::rate::{Algorithm, RateLimit};
use abide_policy::retry::{Attempts, RetryPolicy};
use abide_policy::schedule::{Scheduler, TaskState};
use abide_policy::selector::{ClassConfig, Routing, Selector};
use abide_policy::shard::Sharding;
use abide_policy::strategy::{Growth, Jitter};
use abide_policy::zombie::ZombieCheck;
use serde_json::from_str;

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(
        from_str::<RetryPolicy>("{}").unwrap(),
        RetryPolicy::default()
    );
    assert_eq!(from_str::<Scheduler>("{}").unwrap(), Scheduler::default());
    assert_eq!(from_str::<RateLimit>("{}").unwrap(), RateLimit::default());
    assert_eq!(from_str::<Qos>("{}").unwrap(), Qos::default());
    assert_eq!(from_str::<Sharding>("{}").unwrap(), Sharding::default());
    assert_eq!(from_str::<Routing>("{}").unwrap(), Routing::default());
    assert_eq!(
        from_str::<ZombieCheck>("{}").unwrap(),
        ZombieCheck::default()
    );
    assert_eq!(from_str::<Attempts>("{}").unwrap(), Attempts::default());
}

#[test]
fn what_is_written_is_read_again() {
    let policy = RetryPolicy::default();
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(from_str::<RetryPolicy>(&text).unwrap(), policy);
    let qos = Qos::default();
    let text = serde_json::to_string(&qos).unwrap();
    assert_eq!(from_str::<Qos>(&text).unwrap(), qos);
    let task = TaskState::at(5);
    let text = serde_json::to_string(&task).unwrap();
    assert_eq!(from_str::<TaskState>(&text).unwrap(), task);
    let endpoint = EndpointState::default();
    let text = serde_json::to_string(&endpoint).unwrap();
    assert_eq!(from_str::<EndpointState>(&text).unwrap(), endpoint);
}

#[test]
fn fields_are_written_like_this() {
    let policy: RetryPolicy = from_str(
        r#"{"issuance": {"base_ms": 1000, "cap_ms": 9000, "growth": {"linear": {"step_ms": 500}},
            "jitter": {"percent": 20}},
            "transient": {"growth": "constant", "jitter": "decorrelated"},
            "max_attempts": 7, "renewal": {"after": [1, 2]}}"#,
    )
    .unwrap();
    assert_eq!(policy.issuance.growth, Growth::Linear { step_ms: 500 });
    assert_eq!(policy.issuance.jitter, Jitter::Percent(20));
    assert_eq!(policy.transient.growth, Growth::Constant);
    assert_eq!(policy.max_attempts, Some(7));
    assert_eq!(policy.renewal.after, (1, 2));
    let routing: Routing = from_str(
        r#"{"endpoints": [{"url": "https://a.example"},
            {"url": "https://b.example", "priority": 9, "selector": {"account": "prod.*"}},
            {"url": "https://c.example", "selector": {"origin": {"origin": "deck"}}}],
            "dynamicEndpoints": {"deck": "https://d.example"}}"#,
    )
    .unwrap();
    assert_eq!(routing.endpoints[0].priority, 1);
    assert_eq!(routing.endpoints[0].selector, Selector::Default);
    assert_eq!(
        routing.endpoints[1].selector,
        Selector::Account("prod.*".to_owned())
    );
    assert!(routing.compile().is_ok());
}

/// The block of Spinnaker's `gate.yml`, but for `redis`, which is no matter of the policy.
#[test]
fn the_spelling_of_spinnaker_is_accepted() {
    let limit: RateLimit = from_str(
        r#"{"enabled": true, "learning": true, "rateSeconds": 10, "capacity": 500,
            "capacityByPrincipal": [{"principal": "anonymous", "override": 1000}],
            "rateSecondsByPrincipal": [{"principal": "anonymous", "override": 5}],
            "enforcing": ["example@example.com"],
            "ignoring": ["unmetered-example@example.com"]}"#,
    )
    .unwrap();
    assert_eq!(limit.capacity_by_principal[0].value, 1000);
    assert_eq!(limit.rate_seconds_by_principal[0].value, 5);
    assert_eq!(limit.algorithm, Algorithm::Gcra);
    let class: ClassConfig = from_str(
        r#"{"selectorClass": "com.netflix.spinnaker.kork.web.selector.ByCloudProviderServiceSelector",
            "cloudProviders": ["kubernetes"]}"#,
    )
    .unwrap();
    assert_eq!(
        Selector::from_class(&class),
        Ok(Selector::CloudProvider(vec!["kubernetes".to_owned()]))
    );
}

#[test]
fn all_policies_are_checked_at_once() {
    assert_eq!(Policies::default().mistakes(), []);
    let policies: Policies = from_str(
        r#"{"retry": {"issuance": {"base_ms": 5, "cap_ms": 4}},
            "scheduler": {"batch": 0}, "outgoing": {"rate_seconds": 0},
            "qos": {"promotion": {"policies": [{"longest-wait": {"most_ms": 0, "size": 1}}]}},
            "cache_sharding": {"ttl_ms": 1}, "zombie_check": {"cutoff_ms": 0}}"#,
    )
    .unwrap();
    let paths: Vec<String> = policies.mistakes().into_iter().map(|m| m.path).collect();
    assert_eq!(
        paths,
        [
            "retry.issuance.cap_ms",
            "scheduler.batch",
            "outgoing.rate_seconds",
            "qos.promotion.policies[0].longest-wait.most_ms",
            "cache_sharding.ttl_ms",
            "zombie_check.cutoff_ms",
        ]
    );
}

#[test]
fn what_is_not_known_is_refused() {
    for wrong in [
        r#"{"issuence": {}}"#,
        r#"{"issuance": {"base": 1}}"#,
        r#"{"issuance": {"base_ms": -1}}"#,
        r#"{"issuance": {"base_ms": "1h"}}"#,
        r#"{"issuance": {"jitter": "some"}}"#,
        r#"{"max_attempts": 1.5}"#,
    ] {
        assert!(from_str::<RetryPolicy>(wrong).is_err(), "{wrong}");
    }
    assert!(from_str::<Sharding>(r#"{"placement": "random"}"#).is_err());
    assert!(from_str::<Qos>(r#"{"buffer": [{"naive": {}}]}"#).is_err());
}
