//! Selectors: the examples of Spinnaker's document as they stand, every kind, priorities, and
//! what lint finds.

use std::collections::BTreeMap;

use abide_policy::mistake::Check;
use abide_policy::selector::{
    ClassConfig, ClassError, Criteria, Endpoint, Fault, NoRoute, Router, Routing, Selector,
};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn entry(url: &str, priority: i32, selector: Selector) -> Endpoint {
    Endpoint {
        url: format!("https://{url}.example.com"),
        priority,
        selector,
    }
}

fn routing(endpoints: Vec<Endpoint>) -> Routing {
    Routing {
        endpoints,
        ..Routing::default()
    }
}

fn router(endpoints: Vec<Endpoint>) -> Router {
    routing(endpoints).compile().expect("a routing")
}

fn class(name: &str) -> ClassConfig {
    ClassConfig {
        selector_class: Some(name.to_owned()),
        ..ClassConfig::default()
    }
}

fn selector(config: &ClassConfig) -> Selector {
    Selector::from_class(config).expect("a selector")
}

/// Where an order goes, without what all hosts here have in common.
fn host<'r>(router: &'r Router, criteria: &Criteria<'_>) -> &'r str {
    let url = router.route(criteria).expect("a route").url;
    url.strip_prefix("https://")
        .and_then(|rest| rest.strip_suffix(".example.com"))
        .expect("one of these hosts")
}

/// `clouddriver.readonly` of `orca.yml`.
fn orca_readonly() -> Vec<Endpoint> {
    const ORCA: &str = "com.netflix.spinnaker.orca.clouddriver.config.";
    let types = ClassConfig {
        execution_types: Some(strings(&["orchestration"])),
        ..class(&format!("{ORCA}ByExecutionTypeServiceSelector"))
    };
    let application = ClassConfig {
        application_pattern: Some("app1|.*app2.*".to_owned()),
        ..class(&format!("{ORCA}ByApplicationServiceSelector"))
    };
    let origin = ClassConfig {
        origin: Some("deck".to_owned()),
        execution_types: Some(strings(&["orchestration"])),
        ..class(&format!("{ORCA}ByOriginServiceSelector"))
    };
    let users = ClassConfig {
        users: Some(strings(&["horseman.*", "bojack.*"])),
        ..class(&format!("{ORCA}ByAuthenticatedUserServiceSelector"))
    };
    vec![
        entry("orca-1", 10, selector(&types)),
        entry("orca-2", 20, selector(&application)),
        entry("orca-3", 30, selector(&origin)),
        entry("orca-4", 50, selector(&users)),
        entry("orca-5", 1, selector(&ClassConfig::default())),
    ]
}

#[test]
fn the_read_only_shards_of_orca() {
    let router = router(orca_readonly());
    let nothing = Criteria::default();
    let orchestration = Criteria {
        execution_type: Some("orchestration"),
        ..nothing
    };
    let cases = [
        (nothing, "orca-5"),
        (orchestration, "orca-1"),
        (
            Criteria {
                execution_type: Some("pipeline"),
                ..nothing
            },
            "orca-5",
        ),
        (
            Criteria {
                application: Some("APP1"),
                ..orchestration
            },
            "orca-2",
        ),
        (
            Criteria {
                application: Some("my-app2-prod"),
                ..nothing
            },
            "orca-2",
        ),
        // The whole value has to match.
        (
            Criteria {
                application: Some("app10"),
                ..nothing
            },
            "orca-5",
        ),
        (
            Criteria {
                application: Some("app1"),
                origin: Some("Deck"),
                ..orchestration
            },
            "orca-3",
        ),
        (
            Criteria {
                origin: Some("deck"),
                execution_type: Some("pipeline"),
                ..nothing
            },
            "orca-5",
        ),
        (
            Criteria {
                user: Some("horseman@example.com"),
                origin: Some("deck"),
                application: Some("app1"),
                ..orchestration
            },
            "orca-4",
        ),
        // Users are told apart by case, as in kork.
        (
            Criteria {
                user: Some("Bojack"),
                ..nothing
            },
            "orca-5",
        ),
    ];
    for (criteria, expected) in cases {
        assert_eq!(host(&router, &criteria), expected, "{criteria:?}");
    }
    assert_eq!(router.lint(), []);
}

#[test]
fn the_write_only_shards_of_orca() {
    const KORK: &str = "com.netflix.spinnaker.kork.web.selector.";
    let provider = |name: &str| {
        selector(&ClassConfig {
            cloud_providers: Some(strings(&[name])),
            ..class(&format!("{KORK}ByCloudProviderServiceSelector"))
        })
    };
    let account = ClassConfig {
        account_pattern: Some("heavyUsageAccount.*|.*app2.*".to_owned()),
        ..class(&format!("{KORK}ByAccountServiceSelector"))
    };
    let router = router(vec![
        entry("kubernetes", 10, provider("kubernetes")),
        entry("cloudfoundry", 20, provider("cloudfoundry")),
        entry("heavy-account", 30, selector(&account)),
        entry("write", 1, Selector::Default),
    ]);
    let to = |cloud_provider, account| {
        host(
            &router,
            &Criteria {
                cloud_provider,
                account,
                ..Criteria::default()
            },
        )
    };
    assert_eq!(to(Some("kubernetes"), None), "kubernetes");
    assert_eq!(to(Some("cloudfoundry"), Some("quiet")), "cloudfoundry");
    // kork lowers the value and not the pattern, so that this one never matched there.
    for name in [
        "heavyUsageAccount",
        "heavyusageaccount-1",
        "HEAVYUSAGEACCOUNT",
    ] {
        assert_eq!(to(Some("kubernetes"), Some(name)), "heavy-account");
    }
    assert_eq!(to(Some("titus"), Some("quiet")), "write");
}

/// `services.orca.shards` and `dynamicEndpoints` of `gate.yml`.
#[test]
fn the_shards_of_gate() {
    let application = ClassConfig {
        application_pattern: Some("xxxxyyyapp |demo.*xxxxyyyy".to_owned()),
        ..class("com.netflix.spinnaker.kork.web.selector.ByApplicationServiceSelector")
    };
    let orca = router(vec![
        entry("orca", 1, Selector::Default),
        entry("orca-shard1", 10, selector(&application)),
    ]);
    let to = |application| {
        host(
            &orca,
            &Criteria {
                application: Some(application),
                ..Criteria::default()
            },
        )
    };
    assert_eq!(to("demo-xxxxyyyy"), "orca-shard1");
    // The blank is part of the pattern, and lint says so.
    assert_eq!(to("xxxxyyyapp "), "orca-shard1");
    assert_eq!(to("xxxxyyyapp"), "orca");
    let findings = orca.lint();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].path, "endpoints[1]");
    assert!(matches!(findings[0].fault, Fault::Blank { .. }));

    let clouddriver = Routing {
        endpoints: vec![entry("readonly", 1, Selector::Default)],
        dynamic_endpoints: BTreeMap::from([(
            "deck".to_owned(),
            "https://readonly-deck.example.com".to_owned(),
        )]),
    }
    .compile()
    .expect("a routing");
    let from = |user_origin, origin| {
        host(
            &clouddriver,
            &Criteria {
                user_origin,
                origin,
                ..Criteria::default()
            },
        )
    };
    assert_eq!(from(Some("deck"), None), "readonly-deck");
    assert_eq!(from(Some("DECK"), Some("api")), "readonly-deck");
    assert_eq!(from(None, Some("deck")), "readonly-deck");
    assert_eq!(from(Some("api"), Some("deck")), "readonly");
    assert_eq!(from(None, None), "readonly");
}

#[test]
fn every_class_has_its_selector_under_each_package_and_its_short_name() {
    let full = ClassConfig {
        selector_class: None,
        account_pattern: Some("a".to_owned()),
        application_pattern: Some("b".to_owned()),
        users: Some(strings(&["c"])),
        cloud_providers: Some(strings(&["d"])),
        execution_types: Some(strings(&["e"])),
        origin: Some("f".to_owned()),
        locations: Some(strings(&["g"])),
    };
    let expected = [
        ("DefaultServiceSelector", "default", Selector::Default),
        (
            "ByAccountServiceSelector",
            "account",
            Selector::Account("a".to_owned()),
        ),
        (
            "ByApplicationServiceSelector",
            "application",
            Selector::Application("b".to_owned()),
        ),
        (
            "ByAuthenticatedUserServiceSelector",
            "user",
            Selector::User(strings(&["c"])),
        ),
        (
            "ByCloudProviderServiceSelector",
            "cloud-provider",
            Selector::CloudProvider(strings(&["d"])),
        ),
        (
            "ByExecutionTypeServiceSelector",
            "execution-type",
            Selector::ExecutionType(strings(&["e"])),
        ),
        (
            "ByOriginServiceSelector",
            "origin",
            Selector::Origin {
                origin: "f".to_owned(),
                execution_types: strings(&["e"]),
            },
        ),
        (
            "ByLocationServiceSelector",
            "location",
            Selector::Location(strings(&["g"])),
        ),
        (
            "ByUserOriginSelector",
            "user-origin",
            Selector::UserOrigin("f".to_owned()),
        ),
    ];
    for (class, short, selector) in expected {
        for name in [
            format!("com.netflix.spinnaker.kork.web.selector.{class}"),
            format!("com.netflix.spinnaker.orca.clouddriver.config.{class}"),
            class.to_owned(),
            short.to_owned(),
        ] {
            let config = ClassConfig {
                selector_class: Some(name),
                ..full.clone()
            };
            assert_eq!(Selector::from_class(&config), Ok(selector.clone()));
        }
    }
}

#[test]
fn classes_that_cannot_be() {
    for name in [
        "",
        "com.example.ByAccountServiceSelector",
        "byaccount",
        "Runtime",
    ] {
        let error = Selector::from_class(&class(name)).expect_err("no selector");
        assert_eq!(error, ClassError::Unknown(name.to_owned()));
        let text = error.to_string();
        assert!(
            text.contains("ByAccountServiceSelector (account)"),
            "{text}"
        );
    }
    let error = Selector::from_class(&class("ByLocationServiceSelector")).expect_err("no list");
    assert_eq!(
        error.to_string(),
        "ByLocationServiceSelector needs locations"
    );
    // kork's types, where none are given.
    let origin = ClassConfig {
        origin: Some("deck".to_owned()),
        ..class("ByOriginServiceSelector")
    };
    assert_eq!(
        selector(&origin),
        Selector::Origin {
            origin: "deck".to_owned(),
            execution_types: strings(&["pipeline", "orchestration"]),
        }
    );
}

#[test]
fn the_highest_priority_wins_and_the_first_among_equals() {
    let by = |pattern: &str| Selector::Account(pattern.to_owned());
    let router = router(vec![
        entry("default", 1, Selector::Default),
        entry("low", 5, by(".*")),
        entry("first", 7, by("prod.*")),
        entry("second", 7, by("prod-1")),
        entry("negative", -3, by("never")),
    ]);
    let to = |account| {
        host(
            &router,
            &Criteria {
                account,
                ..Criteria::default()
            },
        )
    };
    assert_eq!(to(Some("prod-1")), "first");
    assert_eq!(to(Some("test")), "low");
    assert_eq!(to(Some("")), "low");
    assert_eq!(to(None), "default");
}

#[test]
fn without_a_default_an_order_may_have_no_route() {
    let router = router(vec![entry("prod", 1, Selector::Account("prod".to_owned()))]);
    let order = Criteria {
        account: Some("test"),
        ..Criteria::default()
    };
    assert_eq!(router.route(&order), Err(NoRoute));
    assert!(NoRoute.to_string().contains("there is no default"));
    let findings = router.lint();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].fault, Fault::NoDefault);
}

#[test]
fn a_choice_is_explained() {
    let router = router(orca_readonly());
    let order = Criteria {
        application: Some("app1"),
        origin: Some("api"),
        execution_type: Some("orchestration"),
        ..Criteria::default()
    };
    let said: Vec<String> = router
        .explain(&order)
        .into_iter()
        .map(|judged| {
            format!(
                "{} {} {}: {}",
                judged.priority, judged.entry, judged.matches, judged.why
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "50 endpoints[3] false: the order has no user",
            "30 endpoints[2] false: origin \"api\" is not \"deck\"",
            "20 endpoints[1] true: application \"app1\" matches \"app1|.*app2.*\"",
            "10 endpoints[0] true: execution type \"orchestration\" is among them",
            "1 endpoints[4] true: the default",
        ]
    );
    let route = router.route(&order).expect("a route");
    assert_eq!(route.entry, "endpoints[1]");
    assert!(route.why.contains("app1"));
}

/// Pairs of patterns: whether everything that the second matches is matched by the first.
#[test]
fn lint_proves_what_covers_what() {
    let covered = |outer: &str, inner: &str| {
        let findings = router(vec![
            entry("default", 1, Selector::Default),
            entry("outer", 9, Selector::Account(outer.to_owned())),
            entry("inner", 5, Selector::Account(inner.to_owned())),
        ])
        .lint();
        match findings.as_slice() {
            [] => false,
            [finding] => {
                assert_eq!(finding.path, "endpoints[2]");
                assert_eq!(
                    finding.fault,
                    Fault::Unreachable {
                        behind: "endpoints[1]".to_owned()
                    }
                );
                true
            }
            more => panic!("{more:?}"),
        }
    };
    for (outer, inner) in [
        (".*", "prod"),
        (".*", ".+"),
        ("prod.*", "prod-[0-9]+"),
        ("prod.*", "PROD"),
        ("a|b|c", "c|a"),
        ("(ab)*", "(abab)*"),
        ("[a-z]{1,3}", "[b-d]{2}"),
        ("\\w+", "é"),
        ("^prod$", "prod"),
        ("prod", "^prod$"),
        ("x*", ""),
    ] {
        assert!(covered(outer, inner), "{inner} is in {outer}");
    }
    for (outer, inner) in [
        ("prod", ".*"),
        (".+", ".*"),
        ("prod-[0-9]+", "prod.*"),
        ("(abab)*", "(ab)*"),
        ("a|b", "a|b|c"),
        ("[b-d]{2}", "[a-z]{1,3}"),
        ("[a-z]+", "é"),
        // Without a proof there is no finding.
        ("\\bprod\\b", "prod"),
        ("(a|b)*a(a|b){30}", "(a|b)*a(a|b){30}b?"),
    ] {
        assert!(!covered(outer, inner), "{inner} is not in {outer}");
    }
}

#[test]
fn lint_knows_what_names_and_origins_cover() {
    let origin = |origin: &str, types: &[&str]| Selector::Origin {
        origin: origin.to_owned(),
        execution_types: strings(types),
    };
    let location = |names: &[&str]| Selector::Location(strings(names));
    let types = |names: &[&str]| Selector::ExecutionType(strings(names));
    let users = |names: &[&str]| Selector::User(strings(names));
    let covered = |outer: Selector, inner: Selector| {
        let router = router(vec![
            entry("outer", 9, outer),
            entry("inner", 9, inner),
            entry("default", 1, Selector::Default),
        ]);
        !router.lint().is_empty()
    };
    assert!(covered(location(&["a", "b"]), location(&["b"])));
    assert!(!covered(location(&["b"]), location(&["a", "b"])));
    assert!(covered(origin("deck", &[]), origin("Deck", &["pipeline"])));
    assert!(covered(origin("deck", &["x", "y"]), origin("deck", &["y"])));
    assert!(!covered(origin("deck", &["pipeline"]), origin("deck", &[])));
    assert!(!covered(origin("deck", &[]), origin("api", &[])));
    assert!(covered(types(&["pipeline"]), origin("deck", &["pipeline"])));
    assert!(!covered(types(&["pipeline"]), origin("deck", &[])));
    assert!(covered(users(&["a.*", "b.*"]), users(&["bo", "al"])));
    assert!(!covered(users(&["a.*"]), users(&["bo", "al"])));
    assert!(covered(
        Selector::UserOrigin("deck".to_owned()),
        Selector::UserOrigin("DECK".to_owned())
    ));
    assert!(covered(Selector::Default, location(&["a"])));
    assert!(covered(Selector::Default, Selector::Default));
    assert!(!covered(location(&["a"]), types(&["a"])));
}

#[test]
fn lint_finds_patterns_that_match_nothing() {
    let impossible = |pattern: &str| {
        let findings = router(vec![
            entry("never", 9, Selector::Application(pattern.to_owned())),
            entry("default", 1, Selector::Default),
        ])
        .lint();
        findings
            .iter()
            .any(|finding| matches!(finding.fault, Fault::Impossible { .. }))
    };
    for pattern in ["a^b", "a$b", "[^\\s\\S]", "[a&&b]", "x[^\\s\\S]y", "$.^"] {
        assert!(impossible(pattern), "{pattern}");
    }
    for pattern in ["", "^$", "$^", "a|b^c", "(^a|b)$", ".*", "\\bx\\b"] {
        assert!(!impossible(pattern), "{pattern}");
    }
}

#[test]
fn mistakes_are_named_by_path() {
    let wrong = routing(vec![
        Endpoint {
            url: "ftp://example.com".to_owned(),
            ..Endpoint::default()
        },
        entry("a", 1, Selector::Application("a(b".to_owned())),
        entry("b", 1, Selector::User(strings(&["ok", "[z-a]"]))),
        entry("c", 1, Selector::CloudProvider(vec![])),
        entry("d", 1, Selector::Location(strings(&[""]))),
        entry("e", 1, Selector::UserOrigin(String::new())),
        entry("f", 1, Selector::Account("x".repeat(1025))),
        entry(
            "g",
            1,
            Selector::Account("(?:(?:a{100}){100}){100}".to_owned()),
        ),
        entry(
            "h",
            1,
            Selector::Account("(".repeat(500) + &")".repeat(500)),
        ),
        entry("i", 1, Selector::Account("(a)\\1".to_owned())),
    ]);
    let mistakes = wrong.compile().expect_err("mistakes");
    let paths: Vec<&str> = mistakes
        .iter()
        .map(|mistake| mistake.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "endpoints[0].url",
            "endpoints[1].selector.application",
            "endpoints[2].selector.user[1]",
            "endpoints[3].selector.cloud-provider",
            "endpoints[4].selector.location[0]",
            "endpoints[5].selector.user-origin",
            "endpoints[6].selector.account",
            "endpoints[7].selector.account",
            "endpoints[8].selector.account",
            "endpoints[9].selector.account",
        ]
    );
    let text = mistakes[1].to_string();
    assert!(text.contains("unclosed group at octet 1"), "{text}");
    assert_eq!(Routing::default().mistakes()[0].path, "endpoints");
    for url in ["", "http://", "https:///path", "https://a b"] {
        let wrong = routing(vec![Endpoint {
            url: url.to_owned(),
            ..Endpoint::default()
        }]);
        assert_eq!(wrong.mistakes().len(), 1, "{url:?}");
    }
}

/// A pattern that takes backtracking engines for ever.
#[test]
fn matching_takes_linear_time() {
    let router = router(vec![
        entry("a", 9, Selector::Account("(a|a)*(a|a)*(a*)*b".to_owned())),
        entry("default", 1, Selector::Default),
    ]);
    let long = "a".repeat(20_000);
    let order = Criteria {
        account: Some(&long),
        ..Criteria::default()
    };
    assert_eq!(host(&router, &order), "default");
}
