//! Endpoints that are chosen by selectors: Spinnaker's files as they stand, and orders on their
//! way.

use std::fs;

use abide_tests::abide::{Abide, MockCa};
use abide_tests::process::Ended;
use abide_tests::service::Service;
use serde_json::json;

use crate::{World, order, wish};

/// "Clouddriver Read-only Shards", orca.yml, and "Write-only Shards".
const ORCA: &str = r"
clouddriver:
  readonly:
    baseUrls:
    - baseUrl: https://clouddriver-readonly-orca-1.example.com
      priority: 10
      config:
        selectorClass: com.netflix.spinnaker.orca.clouddriver.config.ByExecutionTypeServiceSelector
        executionTypes:
          - orchestration
    - baseUrl: https://clouddriver-readonly-orca-2.example.com
      priority: 20
      config:
        selectorClass: com.netflix.spinnaker.orca.clouddriver.config.ByApplicationServiceSelector
        applicationPattern: app1|.*app2.*
    - baseUrl: https://clouddriver-readonly-orca-3.example.com
      priority: 30
      config:
        selectorClass: com.netflix.spinnaker.orca.clouddriver.config.ByOriginServiceSelector
        origin: deck
        executionTypes:
          - orchestration
    - baseUrl: https://clouddriver-readonly-orca-4.example.com
      priority: 50
      config:
        selectorClass: com.netflix.spinnaker.orca.clouddriver.config.ByAuthenticatedUserServiceSelector
        users:
          - horseman.*
          - bojack.*
    - baseUrl: https://clouddriver-readonly-orca-5.example.com
  writeonly:
    baseUrls:
    - baseUrl: https://clouddriver-write-kubernetes.example.com
      priority: 10
      config:
        selectorClass: com.netflix.spinnaker.kork.web.selector.ByCloudProviderServiceSelector
        cloudProviders: 
          - kubernetes
    - baseUrl: https://clouddriver-write-cloudfoundry.example.com
      priority: 20
      config:
        selectorClass: com.netflix.spinnaker.kork.web.selector.ByCloudProviderServiceSelector
        cloudProviders: 
          - cloudfoundry
    - baseUrl: https://clouddriver-write-heavy-account.example.com
      priority: 30
      config:
        selectorClass: com.netflix.spinnaker.kork.web.selector.ByAccountServiceSelector
        accountPattern: heavyUsageAccount.*|.*app2.*
    - baseUrl: https://clouddriver-write-heavy-users.example.com
      priority: 40
      config:
        selectorClass: com.netflix.spinnaker.orca.clouddriver.config.ByAuthenticatedUserServiceSelector
        users:
          - horseman.*
          - bojack.*
    - baseUrl: https://clouddriver-write.example.com
";

/// "Sharding Orca Requests" and "Clouddriver Read-only Shards", gate.yml, in one file, with the
/// limiter of the same service.
const GATE: &str = r"
services:
  orca:
    shards:
      baseUrls:
        - baseUrl: https://orca.example.com
        - baseUrl: https://orca-shard1.example.com
          priority: 10
          config:
            selectorClass: com.netflix.spinnaker.kork.web.selector.ByApplicationServiceSelector
            applicationPattern: xxxxyyyapp |demo.*xxxxyyyy
  clouddriver:
    baseUrl: https://clouddriver-readonly.example.com
    config:
      dynamicEndpoints:
        deck: https://clouddriver-readonly-deck.example.com
rateLimit:
  enabled: true
  learning: true
  redis:
    enabled: true
  # The rate (in seconds) that the bucket will be replenished
  rateSeconds: 10
  # The number of allowed requests in the window of rateSeconds
  capacity: 500
  # Specific principals can be given different capacities
  capacityByPrincipal:
  - principal: anonymous
    override: 1000
  # Similarly, rateSeconds can be overridden per-principal
  rateSecondsByPrincipal:
  - principal: anonymous
    override: 5
  enforcing:
  - example@example.com
  ignoring:
  - unmetered-example@example.com
";

/// The keys of "Quality of Service", some of them with dots as in its text, and of "Account Name
/// Based Sharding".
const REST: &str = r"
cache-sharding:
  enabled: true
qos:
  enabled: true
  learningMode.enabled: false
  bufferPolicy:
    naive:
      enabled: true
  bufferingState:
    supplier: activeExecutions
    activeExecutions:
      threshold: 100
  promotionPolicy.naive.size: 3
pollers.qos.promoteIntervalMs: 2500
spectator:
  webEndpoint.enabled: true
";

fn run(abide: &Abide, words: &[&str]) -> Ended {
    abide.run(words)
}

/// Imports a YAML into abide.toml, after what is there by hand.
fn import(abide: &Abide, yaml: &str, before: &str) -> String {
    fs::write(abide.path("spinnaker.yml"), yaml).expect("a file");
    let ended = run(abide, &["config", "import", "spinnaker.yml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::write(
        abide.path("abide.toml"),
        format!("{before}{}", ended.stdout),
    )
    .expect("a file");
    ended.stdout
}

fn route(abide: &Abide, issuer: &str, more: &[&str]) -> String {
    let words = [&["shards", "route", "--issuer", issuer], more].concat();
    let ended = run(abide, &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_files_of_the_seed_lead_where_they_say() {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    import(&abide, ORCA, "");
    let read = |more: &[&str]| route(&abide, "clouddriver-readonly", more);
    let reader = |number: u32| format!("https://clouddriver-readonly-orca-{number}.example.com");
    let begins = |url: String, start: String| assert!(url.starts_with(&start), "{url}, {start}");
    for (more, number) in [
        (&["--execution-type", "orchestration"][..], 1),
        (&["--application", "APP1"], 2),
        (
            &[
                "--application",
                "myapp2b",
                "--execution-type",
                "orchestration",
            ],
            2,
        ),
        (
            &["--origin", "deck", "--execution-type", "orchestration"],
            3,
        ),
        // Of the origin, but of another type.
        (&["--origin", "deck", "--execution-type", "pipeline"], 5),
        (&["--user", "horseman-1", "--origin", "deck"], 4),
        (&[], 5),
        // The whole value has to match.
        (&["--application", "app11"], 5),
    ] {
        begins(read(more), reader(number));
    }
    let write = |more: &[&str]| route(&abide, "clouddriver-writeonly", more);
    for (more, name) in [
        (&["--cloud-provider", "kubernetes"][..], "write-kubernetes"),
        (
            &[
                "--account",
                "heavyUsageAccount7",
                "--cloud-provider",
                "cloudfoundry",
            ],
            "write-heavy-account",
        ),
        (
            &["--user", "bojack", "--account", "heavyUsageAccount7"],
            "write-heavy-users",
        ),
        (&["--account", "light"], "write.example"),
    ] {
        begins(write(more), format!("https://clouddriver-{name}"));
    }

    let toml = import(&abide, GATE, "");
    assert!(
        toml.contains("not taken over: rateLimit.redis.enabled"),
        "{toml}"
    );
    let orca = |more: &[&str]| route(&abide, "orca-shards", more);
    begins(
        orca(&["--application", "demo-of-xxxxyyyy"]),
        "https://orca-shard1.".to_owned(),
    );
    begins(
        orca(&["--application", "another"]),
        "https://orca.example.com".to_owned(),
    );
    let clouddriver = |more: &[&str]| route(&abide, "clouddriver", more);
    begins(
        clouddriver(&["--origin", "deck"]),
        "https://clouddriver-readonly-deck.".to_owned(),
    );
    begins(
        clouddriver(&["--origin", "api"]),
        "https://clouddriver-readonly.example.com".to_owned(),
    );
    let said = run(&abide, &["shards", "route", "--issuer", "nobody"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}

#[test]
fn what_is_imported_is_a_configuration() {
    let world = World::new(&[]);
    let known = world.config("");
    // Only the sections: the issuers of the file have no secrets.
    let limits = &GATE[GATE.find("rateLimit:").expect("the limiter")..];
    let toml = import(&world.abide, &format!("{limits}{REST}"), &known);
    let ended = run(&world.abide, &["config", "check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{toml}");
    let shown = run(&world.abide, &["config", "show"]);
    let json: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(
        json["rate_limit"],
        json!({
            "algorithm": "window", "enabled": true, "learning": true, "rate_seconds": 10,
            "capacity": 500,
            "capacity_by_principal": [{ "principal": "anonymous", "override": 1000 }],
            "rate_seconds_by_principal": [{ "principal": "anonymous", "override": 5 }],
            "enforcing": ["example@example.com"],
            "ignoring": ["unmetered-example@example.com"],
        })
    );
    assert_eq!(
        json["cache_sharding"],
        json!({ "enabled": true, "placement": "modulo" })
    );
    let qos = &json["qos"];
    assert_eq!(
        (&qos["enabled"], &qos["learning_mode"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        qos["supplier"],
        json!({ "active-executions": { "threshold": 100 } })
    );
    assert_eq!(
        qos["promotion"],
        json!({ "policies": [{ "naive": { "size": 3 } }], "promote_interval_ms": 2500 })
    );
    assert!(
        toml.contains("# not taken over: spectator.webEndpoint.enabled"),
        "{toml}"
    );
    // The service runs with it.
    let service = Service::again(&world.abide);
    let answer = service.get("/v1/orders");
    assert_eq!(
        answer.header("x-ratelimit-capacity"),
        Some("1000"),
        "{answer:?}"
    );
}

#[test]
fn what_is_no_yaml_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    for (yaml, said) in [
        ("a: [1, 2", "no YAML"),
        ("- a\n- b\n", "nothing in it is known"),
        ("a: b\n", "nothing in it is known"),
    ] {
        fs::write(abide.path("x.yml"), yaml).expect("a file");
        let ended = run(&abide, &["config", "import", "x.yml"]);
        assert_eq!(ended.code, Some(2), "{yaml}: {ended:?}");
        assert!(ended.stderr.contains(said), "{yaml}: {ended:?}");
    }
    // A selector that is not known would let everything through.
    let unknown = ORCA.replace("ByExecutionTypeServiceSelector", "ByMoonServiceSelector");
    let toml = import(&abide, &unknown, "");
    assert!(
        !toml.contains("url = \"https://clouddriver-readonly-orca-1"),
        "{toml}"
    );
    assert!(toml.contains("ByMoonServiceSelector"), "{toml}");
}

#[test]
fn what_is_hardly_meant_is_a_warning() {
    let world = World::new(&[]);
    let config = world.config("").replace(
        "[issuers.test]\n",
        "[issuers.test]\nendpoints = [\n\
         { url = \"http://127.0.0.1:1/a\", priority = 9, selector = { account = \".*\" } },\n\
         { url = \"http://127.0.0.1:1/b\", priority = 2, selector = { account = \"prod\" } },\n\
         { url = \"http://127.0.0.1:1/c\", selector = { application = \"a^b\" } },\n]\n",
    );
    let server = config
        .lines()
        .find(|line| line.starts_with("server = "))
        .expect("a server");
    let config = config.replace(&format!("{server}\n"), "");
    fs::write(world.abide.path("abide.toml"), &config).expect("a file");
    let ended = run(&world.abide, &["config", "check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for place in [
        "issuers.test.endpoints[1]",
        "issuers.test.endpoints[2]",
        "without a selector",
    ] {
        assert!(ended.stdout.contains(place), "{place}: {lines:#?}");
    }
    // What cannot be is a mistake.
    let wrong = config.replace("\"prod\"", "\"prod(\"");
    fs::write(world.abide.path("abide.toml"), wrong).expect("a file");
    let ended = run(&world.abide, &["config", "check"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stdout.contains("issuers.test.endpoints[1]"),
        "{ended:?}"
    );
}

/// A second CA under the same root as the first: another process with its files.
fn second_ca(world: &World, options: &[&str]) -> (tempfile::TempDir, MockCa) {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("ca")).expect("a folder");
    for entry in fs::read_dir(world.abide.path("ca")).expect("the CA's files") {
        let entry = entry.expect("a file");
        fs::copy(entry.path(), dir.path().join("ca").join(entry.file_name())).expect("a copy");
    }
    let ca = MockCa::start(dir.path(), options);
    (dir, ca)
}

fn endpoints(world: &World, urls: &[(&str, u32, &str)]) -> String {
    let config = world.config("[scheduler]\nschedule_period_seconds = 1\n");
    let lines = urls.iter().map(|(url, priority, selector)| {
        format!("{{ url = \"{url}\", priority = {priority}{selector} }},\n")
    });
    let server = format!("server = \"{}\"\n", world.ca.url());
    let list = format!("endpoints = [\n{}]\n", lines.collect::<String>());
    config.replace(&server, &list)
}

#[test]
fn an_order_goes_to_the_endpoint_of_its_account_and_stays_there() {
    let world = World::new(&[]);
    let (_dir, heavy) = second_ca(&world, &["--poll-count", "2", "--check-after", "3"]);
    let pattern = ", selector = { account = \"heavyUsageAccount.*\" }";
    let config = endpoints(
        &world,
        &[(world.ca.url(), 1, ""), (heavy.url(), 30, pattern)],
    );
    let service = Service::start(&world.abide, &config);
    let light = order(&service, &wish("light"));
    service.until_state(&light, "ACTIVE");
    assert_eq!(world.issued(), 1);
    let mut wish = wish("heavy");
    wish["account"] = json!("heavyUsageAccount7");
    let id = order(&service, &wish);
    let running = service.until_state(&id, "RUNNING");
    let history = running["history"].to_string();
    for part in [heavy.url(), "endpoints[1]", "heavyUsageAccount7"] {
        assert!(history.contains(part), "{part}: {running:#}");
    }
    let explained = service.get(&format!("/v1/orders/{id}/explain")).json();
    let first = &explained["endpoints"][0];
    assert_eq!(
        (&first["url"], &first["matches"]),
        (&json!(heavy.url()), &json!(true))
    );
    let mut command = world.abide.command(["policy", "explain", "--order", &id]);
    command.env("ABIDE_URL", service.url());
    let shown = abide_tests::process::Process::start(&mut command).end();
    assert!(shown.stdout.contains(heavy.url()), "{shown:?}");
    service.stop();

    // Another endpoint would be chosen now; the transaction under way stays where it is.
    let config = endpoints(
        &world,
        &[(world.ca.url(), 99, ""), (heavy.url(), 30, pattern)],
    );
    let service = Service::start(&world.abide, &config);
    service.until_state(&id, "ACTIVE");
    assert_eq!(world.issued(), 1, "the first CA has issued nothing more");
    let books = heavy.books();
    let issued = books.iter().filter(|line| line["event"] == "issued");
    assert_eq!(issued.count(), 1);
}

#[test]
fn an_order_that_no_endpoint_is_for_stops_and_says_so() {
    let world = World::new(&[]);
    let only = ", selector = { account = \"prod\" }";
    let service = Service::start(
        &world.abide,
        &endpoints(&world, &[(world.ca.url(), 1, only)]),
    );
    let id = order(&service, &wish("device"));
    let stopped = service.until_state(&id, "ERROR");
    let reason = stopped["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("no endpoint of the issuer test is for it"),
        "{reason}"
    );
    assert_eq!(world.issued(), 0);
}
