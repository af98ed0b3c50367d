//! The configuration of a gateway, right and wrong.

use std::fs;

use super::World;

#[test]
fn every_mistake_is_named_with_its_place() {
    let world = World::new();
    let text = "\
[gateway]
listen = \"nowhere\"
allowed = [\"ir\", \"irr\"]
trusted_hop = [\"10.0.0.0/8\"]
[limits]
body_bytes = 9999999
[[upstreams]]
url = 7
";
    let told = mistakes(&world, text);
    for (place, words) in [
        ("gateway.toml:3:18: gateway.allowed[1]", "did you mean `ir`"),
        (
            "gateway.toml:4:1: gateway.trusted_hop",
            "did you mean `trusted_hops`",
        ),
        ("gateway.toml:6:14: limits.body_bytes", "too large"),
        ("gateway.toml:8:7: upstreams[0].url", "is a number"),
    ] {
        let line = told.lines().find(|line| line.starts_with(place));
        let line = line.unwrap_or_else(|| panic!("{place}: nothing in {told}"));
        assert!(line.contains(words), "{line}");
    }
    // What no schema can say.
    let text = "\
[gateway]
listen = \"nowhere\"
protection = \"verified\"
trusted_hops = [\"10.0.0.0/8\", \"10.0.0.0/99\"]
[rate_limit]
enabled = true
capacity = 5000000
[[upstreams]]
url = \"ftp://ca/\"
[[upstreams]]
url = \"https://ca/\"
tls_trusted = [\"absent.pem\"]
";
    let told = mistakes(&world, text);
    for place in [
        "gateway.toml:2:10: gateway.listen",
        "gateway.toml:3:14: gateway.protection",
        "gateway.toml:4:31: gateway.trusted_hops[1]",
        "gateway.toml:7:12: rate_limit.capacity",
        "gateway.toml:9:7: upstreams[0].url",
        "gateway.toml:12:16: upstreams[1].tls_trusted[0]",
    ] {
        assert!(
            told.lines().any(|line| line.starts_with(place)),
            "{place}: {told}"
        );
    }
    // A pattern that is none.
    let text = "\
[[upstreams]]
url = \"http://ca/\"
selector = { account = \"(\" }
";
    let told = mistakes(&world, text);
    assert!(told.contains("gateway.toml:3:"), "{told}");
    assert!(told.contains("upstreams[0].selector.account"), "{told}");
}

/// What is said on the standard error, of a gateway that does not start.
fn mistakes(world: &World, text: &str) -> String {
    fs::write(world.abide.path("gateway.toml"), text).expect("a configuration");
    let ended = world.abide.run(["gateway", "--config", "gateway.toml"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    ended.stderr
}

#[test]
fn options_are_judged_like_a_file() {
    let world = World::new();
    let ended = world.abide.run([
        "gateway",
        "--upstream",
        "http://ca/",
        "--listen",
        "nowhere",
        "--allow",
        "irr",
    ]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let place = "the options: gateway.allowed[0]: \"irr\" is none of";
    assert!(ended.stderr.contains(place), "{ended:?}");
}

#[test]
fn the_schema_is_what_is_published() {
    let world = World::new();
    let ended = world.abide.run(["gateway", "--schema"]);
    let published = include_str!("../../../docs/gateway.schema.json");
    assert_eq!(ended.stdout, published);
}

#[test]
fn a_port_that_is_taken_is_the_hosts_fault() {
    let world = World::new();
    let taken = world.ca.url();
    let address = taken
        .trim_start_matches("http://")
        .trim_end_matches("/pkix/");
    let ended = world
        .abide
        .run(["gateway", "--upstream", &taken, "--listen", address]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("cannot be bound"), "{ended:?}");
}
