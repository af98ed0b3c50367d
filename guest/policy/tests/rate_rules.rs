//! Who is limited, by what, and what he is told: the learning matrix, names that clients choose,
//! headers, and the table in memory.

use std::net::IpAddr;

use abide_policy::mistake::Check;
use abide_policy::rate::{
    Key, Mode, Outcome, Override, Overrides, Principal, RateLimit, Source, Table, Warning,
};

const NOW: u64 = 1_800_000_000_000;

fn named(name: &str) -> Principal {
    Principal::authenticated(name).expect("a name")
}

fn listed(list: bool) -> Vec<String> {
    list.then(|| "bob".to_owned()).into_iter().collect()
}

/// Every combination of the global flag and the two lists, once in the configuration and once in
/// the store: enforcing wins over the flag, ignoring too, and both together are learning.
#[test]
fn the_learning_matrix() {
    use Mode::{Enforced, Learning};
    let matrix = [
        // flag, enforcing, ignoring, mode
        (true, false, false, Learning),
        (true, true, false, Enforced),
        (true, false, true, Learning),
        (true, true, true, Learning),
        (false, false, false, Enforced),
        (false, true, false, Enforced),
        (false, false, true, Learning),
        (false, true, true, Learning),
    ];
    for (learning, enforcing, ignoring, mode) in matrix {
        let in_files = RateLimit {
            learning,
            enforcing: listed(enforcing),
            ignoring: listed(ignoring),
            ..RateLimit::default()
        };
        let resolved = in_files.resolve(&named("bob"), &Overrides::default());
        assert_eq!(resolved.mode, mode, "{in_files:?}");
        let both = enforcing && ignoring;
        assert_eq!(resolved.warnings.len(), usize::from(both));
        // Somebody else has the flag.
        let other = in_files.resolve(&named("eve"), &Overrides::default()).mode;
        assert_eq!(other, if learning { Learning } else { Enforced });

        for static_flag in [true, false] {
            let in_files = RateLimit {
                learning: static_flag,
                ..RateLimit::default()
            };
            let in_store = Overrides {
                learning: Some(if learning { "true" } else { "false" }),
                enforcing,
                ignoring,
                ..Overrides::default()
            };
            let resolved = in_files.resolve(&named("bob"), &in_store);
            assert_eq!(resolved.mode, mode, "{in_store:?}");
            assert_eq!(resolved.warnings.len(), usize::from(both));
        }
    }
}

#[test]
fn the_store_goes_before_the_configuration() {
    let config = RateLimit {
        ignoring: listed(true),
        ..RateLimit::default()
    };
    let set_in_store = Overrides {
        enforcing: true,
        ..Overrides::default()
    };
    let resolved = config.resolve(&named("bob"), &set_in_store);
    assert_eq!(
        (resolved.mode, resolved.source),
        (Mode::Enforced, Source::DynamicList)
    );
    // A list of the configuration goes before a flag of the store.
    let flag = Overrides {
        learning: Some("false"),
        ..Overrides::default()
    };
    let resolved = config.resolve(&named("bob"), &flag);
    assert_eq!(
        (resolved.mode, resolved.source),
        (Mode::Learning, Source::StaticList)
    );
}

#[test]
fn garbage_in_the_store_falls_back_with_a_warning() {
    let config = RateLimit {
        learning: false,
        capacity_by_principal: vec![Override {
            principal: "bob".to_owned(),
            value: 7,
        }],
        ..RateLimit::default()
    };
    for wrong in [
        "",
        " ",
        "-1",
        "+5",
        "1e3",
        "0x10",
        "1000001",
        "99999999999",
        "many",
        "5.0",
    ] {
        let overrides = Overrides {
            learning: Some("perhaps"),
            capacity: Some(wrong),
            rate_seconds: Some("0"),
            ..Overrides::default()
        };
        let resolved = config.resolve(&named("bob"), &overrides);
        assert_eq!(resolved.limit.capacity, 7, "{wrong:?}");
        assert_eq!(resolved.limit.rate_ms, 10_000);
        assert_eq!(resolved.mode, Mode::Enforced);
        assert_eq!(resolved.warnings.len(), 3, "{wrong:?}");
    }
    let good = Overrides {
        capacity: Some(" 2000 "),
        rate_seconds: Some("5"),
        learning: Some("TRUE"),
        ..Overrides::default()
    };
    let resolved = config.resolve(&named("bob"), &good);
    assert_eq!(
        (resolved.limit.capacity, resolved.limit.rate_ms),
        (2000, 5000)
    );
    assert_eq!(resolved.mode, Mode::Learning);
    assert_eq!(resolved.warnings, []);
    let long = "x".repeat(70_000);
    let overrides = Overrides {
        capacity: Some(&long),
        ..Overrides::default()
    };
    let text = config.resolve(&named("bob"), &overrides).warnings[0].to_string();
    assert!(
        text.len() < 200 && text.contains("rateLimit:capacity"),
        "{text}"
    );
}

/// The block of Spinnaker's document.
#[test]
fn capacities_by_principal() {
    let config = RateLimit {
        enabled: true,
        learning: true,
        rate_seconds: 10,
        capacity: 500,
        capacity_by_principal: vec![Override {
            principal: "anonymous".to_owned(),
            value: 1000,
        }],
        rate_seconds_by_principal: vec![Override {
            principal: "anonymous".to_owned(),
            value: 5,
        }],
        enforcing: vec!["example@example.com".to_owned()],
        ignoring: vec!["unmetered-example@example.com".to_owned()],
        ..RateLimit::default()
    };
    assert_eq!(config.mistakes(), []);
    let of = |principal: &Principal| {
        let resolved = config.resolve(principal, &Overrides::default());
        (
            resolved.limit.capacity,
            resolved.limit.rate_ms,
            resolved.mode,
        )
    };
    assert_eq!(of(&Principal::Anonymous), (1000, 5000, Mode::Learning));
    assert_eq!(
        of(&named("example@example.com")),
        (500, 10_000, Mode::Enforced)
    );
    assert_eq!(
        of(&named("unmetered-example@example.com")),
        (500, 10_000, Mode::Learning)
    );
    // An authenticated caller who happens to be called so is not the anonymous one.
    assert_eq!(of(&named("anonymous")), (500, 10_000, Mode::Learning));
}

#[test]
fn who_asks() {
    let config = RateLimit::default();
    let peer: IpAddr = "192.0.2.7".parse().expect("an address");
    let who = |name, app, config: &RateLimit| config.identify(name, app, Some(peer));
    assert_eq!(who(Some("bob"), Some("batch"), &config), named("bob"));
    assert_eq!(
        who(None, Some("batch"), &config),
        Principal::App("batch".to_owned())
    );
    assert_eq!(who(None, None, &config), Principal::Anonymous);
    let by_address = RateLimit {
        by_address: true,
        ..config.clone()
    };
    assert_eq!(who(None, None, &by_address), Principal::Address(peer));
    assert_eq!(who(None, Some(""), &by_address), Principal::Address(peer));
    assert_eq!(by_address.identify(None, None, None), Principal::Anonymous);
    assert_eq!(Principal::authenticated(""), None);
    assert_eq!(Principal::authenticated(&"x".repeat(513)), None);
}

#[test]
fn addresses_of_one_network_are_one() {
    let key = |text: &str| Principal::address(text.parse().expect("an address")).to_string();
    assert_eq!(key("192.0.2.7"), "address:192.0.2.7");
    assert_eq!(key("::ffff:192.0.2.7"), "address:192.0.2.7");
    assert_eq!(key("2001:db8:0:1:2:3:4:5"), "address:2001:db8:0:1::");
    assert_eq!(key("2001:db8:0:1::9"), key("2001:db8:0:1:ffff::"));
    assert_ne!(key("2001:db8:0:1::9"), key("2001:db8:0:2::9"));
}

#[test]
fn names_that_clients_choose_reach_nothing() {
    let config = RateLimit {
        learning: false,
        capacity: 5,
        capacity_by_principal: vec![Override {
            principal: "bob".to_owned(),
            value: 1000,
        }],
        ignoring: vec!["bob".to_owned(), "app:bob".to_owned()],
        ..RateLimit::default()
    };
    for header in [
        "learning",
        "enforcing",
        "ignoring",
        "capacity:bob",
        "rateSeconds:bob",
        "bob",
        "bucket:principal:bob",
        "principal:bob",
        "anonymous",
        "app:bob",
    ] {
        let principal = Principal::app(header);
        assert_eq!(principal, Principal::App(header.to_owned()));
        let key = principal.bucket_key();
        assert_eq!(Key::parse(&key), None, "{key}");
        assert_ne!(key, named("bob").bucket_key());
        assert_ne!(key, Principal::Anonymous.bucket_key());
        let resolved = config.resolve(&principal, &Overrides::default());
        assert_eq!(
            (resolved.limit.capacity, resolved.mode),
            (5, Mode::Enforced)
        );
    }
    let warned = config.resolve(&Principal::app("bob"), &Overrides::default());
    assert_eq!(
        warned.warnings,
        [Warning::SelfNamedIgnored {
            app: "bob".to_owned()
        }]
    );
    for header in [
        "",
        "  ",
        "two words",
        "tab\tin",
        "ünïcode",
        "nul\0",
        &"x".repeat(129),
    ] {
        assert_eq!(Principal::app(header), Principal::Anonymous, "{header:?}");
    }
    assert_eq!(Principal::app(&"x".repeat(65_536)), Principal::Anonymous);
    assert_eq!(
        Principal::app(" batch "),
        Principal::App("batch".to_owned())
    );
}

#[test]
fn keys_of_the_store() {
    for (text, key) in [
        ("rateLimit:learning", Key::Learning),
        ("rateLimit:enforcing", Key::Enforcing),
        ("rateLimit:ignoring", Key::Ignoring),
        (
            "rateLimit:capacity:chaosmonkey@example.com",
            Key::Capacity("chaosmonkey@example.com".to_owned()),
        ),
        (
            "rateLimit:rateSeconds:app:a:b",
            Key::RateSeconds("app:a:b".to_owned()),
        ),
    ] {
        assert_eq!(Key::parse(text), Some(key.clone()));
        assert_eq!(key.to_string(), text);
    }
    for text in [
        "rateLimit:",
        "rateLimit:capacity:",
        "rateLimit:learning:x",
        "ratelimit:learning",
        "learning",
        "rateLimit:bucket:anonymous",
    ] {
        assert_eq!(Key::parse(text), None, "{text}");
    }
    assert_eq!(named("a:b").bucket_key(), "rateLimit:bucket:principal:a:b");
    assert_eq!(
        Principal::Anonymous.bucket_key(),
        "rateLimit:bucket:anonymous"
    );
}

/// 1 800 000 000 s are 2027-01-15T08:00:00Z, a Friday; the bucket of ten seconds opened half a
/// second later.
#[test]
fn headers_round_up() {
    let config = RateLimit {
        learning: false,
        capacity: 2,
        algorithm: abide_policy::rate::Algorithm::Window,
        ..RateLimit::default()
    };
    let resolved = config.resolve(&Principal::Anonymous, &Overrides::default());
    let (bucket, first) = resolved.decide(None, 1, NOW + 500);
    assert_eq!(
        first.headers(NOW + 500).pairs(),
        [
            ("X-RateLimit-Capacity", "2".to_owned()),
            ("X-RateLimit-Remaining", "1".to_owned()),
            (
                "X-RateLimit-Reset",
                "Fri, 15 Jan 2027 08:00:11 GMT".to_owned()
            ),
            ("X-RateLimit-Learning", "false".to_owned()),
        ]
    );
    let (bucket, _) = resolved.decide(Some(bucket), 1, NOW + 600);
    let at = NOW + 10_499;
    let (_, refused) = resolved.decide(Some(bucket), 1, at);
    assert_eq!(refused.outcome, Outcome::Throttled);
    let headers = refused.headers(at);
    // One millisecond is left: a second, since there is nothing shorter.
    assert_eq!(headers.retry_after_s, Some(1));
    assert_eq!(headers.pairs().len(), 5);
    assert_eq!(headers.reset.to_string(), "Fri, 15 Jan 2027 08:00:11 GMT");
    assert_eq!(refused.headers(NOW + 600).retry_after_s, Some(10));
    // Learning: the same headers, but nobody is sent away.
    let learning = RateLimit {
        learning: true,
        ..config
    }
    .resolve(&Principal::Anonymous, &Overrides::default());
    let (_, answer) = learning.decide(Some(bucket), 1, at);
    assert_eq!(answer.outcome, Outcome::WouldThrottle);
    let headers = answer.headers(at);
    assert!(headers.learning && headers.retry_after_s.is_none());
    assert_eq!(headers.remaining, 0);
}

#[test]
fn reset_is_always_later_than_the_date() {
    let config = RateLimit {
        rate_seconds: 1,
        ..RateLimit::default()
    };
    let resolved = config.resolve(&Principal::Anonymous, &Overrides::default());
    for now in (NOW..NOW + 2000).step_by(7) {
        for answer in [resolved.decide(None, 1, now).1, resolved.without_store(now)] {
            assert!(answer.headers(now).reset.0 / 1000 > now / 1000);
        }
    }
}

#[test]
fn a_hundred_thousand_names_take_little_and_harm_nobody() {
    let config = RateLimit {
        learning: false,
        capacity: 3,
        most_principals: 500,
        most_apps: 100,
        ..RateLimit::default()
    };
    let mut table = Table::new();
    let none = Overrides::default();
    table.decide(&config, named("bob"), &none, 1, NOW);
    let mut admitted = 0;
    for n in 0..100_000_u32 {
        let app = Principal::app(&format!("app-{n}"));
        let answer = table.decide(&config, app, &none, 1, NOW + u64::from(n) / 100);
        admitted += u32::from(answer.outcome.goes_on());
        assert!(table.len() <= 102);
    }
    // A hundred names of their own, and three requests for everybody else.
    assert_eq!(admitted, 103);
    let answer = table.decide(&config, named("bob"), &none, 1, NOW + 1000);
    assert_eq!(answer.remaining, 1);
    // Once theirs are full again, others have their turn.
    let later = NOW + 60_000;
    let answer = table.decide(&config, Principal::app("late"), &none, 1, later);
    assert_eq!((answer.outcome, answer.remaining), (Outcome::Admitted, 2));
    assert_eq!(table.len(), 1);
}

#[test]
fn too_many_authenticated_ones_share_a_bucket() {
    let config = RateLimit {
        learning: false,
        capacity: 2,
        most_principals: 10,
        ..RateLimit::default()
    };
    let mut table = Table::new();
    let admitted: Vec<bool> = (0..14)
        .map(|n| {
            let answer = table.decide(
                &config,
                named(&format!("user-{n}")),
                &Overrides::default(),
                1,
                NOW,
            );
            answer.outcome.goes_on()
        })
        .collect();
    assert_eq!(admitted[..12], [true; 12]);
    assert_eq!(admitted[12..], [false; 2]);
    assert_eq!(table.len(), 10);
}

#[test]
fn mistakes_in_lists_are_named() {
    let entry = |principal: &str, value| Override {
        principal: principal.to_owned(),
        value,
    };
    let wrong = RateLimit {
        rate_seconds: 0,
        capacity: 1_000_001,
        capacity_by_principal: vec![entry("bob", 1), entry("", 2), entry("bob", 3)],
        rate_seconds_by_principal: vec![entry("bob", 0)],
        enforcing: vec!["eve".to_owned()],
        // Also in enforcing: only learnt from, which is no mistake.
        ignoring: vec!["eve".to_owned(), "app:batch".to_owned()],
        most_principals: 0,
        ..RateLimit::default()
    };
    let paths: Vec<String> = wrong.mistakes().into_iter().map(|m| m.path).collect();
    assert_eq!(
        paths,
        [
            "rate_seconds",
            "capacity",
            "capacity_by_principal[1].principal",
            "capacity_by_principal[2].principal",
            "rate_seconds_by_principal[0].override",
            "ignoring[1]",
            "most_principals",
        ]
    );
    assert_eq!(RateLimit::default().mistakes(), []);
}
