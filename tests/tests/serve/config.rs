//! `abide config check` names everything that is wrong, with its place.

use std::fs;

use abide_tests::abide::Abide;
use boon::{Compiler, Schemas};
use serde_json::Value;

use crate::World;

fn check(abide: &Abide, text: &str) -> (Option<i32>, Vec<String>) {
    fs::write(abide.path("abide.toml"), text).expect("a configuration");
    let ended = abide.run(["config", "check"]);
    (
        ended.code,
        ended.stdout.lines().map(str::to_owned).collect(),
    )
}

/// Lines and columns were counted by hand.
#[test]
fn every_mistake_has_its_line() {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    let (code, lines) = check(
        &abide,
        "[service]\n\
         listn = \"127.0.0.1:0\"\n\
         concurrency = \"many\"\n\
         drain_seconds = -5\n\
         [issuers.a]\n\
         server = \"ftp://ca\"\n\
         trusted = [\"absent.pem\"]\n\
         reference = \"r\"\n\
         secret = \"file:absent.txt\"\n\
         mac = \"pbm1\"\n\
         [issuers.b]\n\
         reference = \"r\"\n\
         [[tokens]]\n\
         name = \"ci\"\n\
         rights = [\"reed\"]\n\
         [retry.issuance]\n\
         base_ms = 5000\n\
         cap_ms = 1000\n\
         [scheduler]\n\
         batsh = 5\n",
    );
    assert_eq!(code, Some(2), "{lines:?}");
    for expected in [
        "abide.toml:2:1: service.listn: there is no such field; did you mean `listen`?",
        "abide.toml:3:15: service.concurrency: is a text; give a whole number",
        "abide.toml:4:17: service.drain_seconds: -5 is negative; give 0 or more",
        "abide.toml:10:7: issuers.a.mac: \"pbm1\" is none of pbm, pbmac1; did you mean `pbm`?",
        "abide.toml:11:10: issuers.b: nothing says where it is: give `server`, or `endpoints`",
        "abide.toml:15:11: tokens[0].rights[0]: \"reed\" is none of read, write, admin; did you \
         mean `read`?",
        "abide.toml:18:10: retry.issuance.cap_ms: 1000 is below base_ms: give 5000 or more",
        "abide.toml:20:1: scheduler.batsh: there is no such field; did you mean `batch`?",
    ] {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected} is not in {lines:#?}"
        );
    }

    // What only shows when the form is right.
    let (code, lines) = check(
        &abide,
        "[issuers.a]\n\
         server = \"ftp://ca\"\n\
         trusted = [\"absent.pem\"]\n\
         reference = \"r\"\n\
         secret = \"file:absent.txt\"\n\
         [issuers.b]\n\
         server = \"http://ca/\"\n\
         [[tokens]]\n\
         name = \"ci\"\n\
         rights = [\"read\"]\n\
         [delivery]\n\
         hook_timeout_seconds = 5\n",
    );
    assert_eq!(code, Some(2), "{lines:?}");
    for expected in [
        "abide.toml:2:10: issuers.a.server: ftp:// is not spoken here",
        "abide.toml:3:12: issuers.a.trusted[0]: the file ",
        "abide.toml:5:10: issuers.a.secret: the secret file:",
        "abide.toml:6:10: issuers.b: nothing protects the requests",
        "abide.toml:8:1: tokens[0]: give either `sha256` or `file`",
        "abide.toml:12:24: delivery.hook_timeout_seconds: goes with `hook`",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(expected)),
            "{expected} is not in {lines:#?}"
        );
    }
}

#[test]
fn broken_toml_is_named_and_nothing_is_served() {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    let (code, lines) = check(&abide, "[issuers.a]\nserver = \n");
    assert_eq!(code, Some(2));
    assert!(lines[0].starts_with("abide.toml:2:"), "{lines:?}");
    let ended = abide.run(["serve"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("abide.toml:2:"), "{ended:?}");
    assert!(!abide.path("abide.db").exists());
}

#[test]
fn ten_lines_are_right_and_secrets_stay_where_they_are() {
    let world = World::new(&[]);
    let config = world
        .config("")
        .replace("file:secret.txt", "pass:hush-hush");
    assert!(config.lines().count() <= 10, "{config}");
    let (code, lines) = check(&world.abide, &config);
    assert_eq!(
        (code, lines),
        (Some(0), vec!["abide.toml: nothing is wrong".to_owned()])
    );
    let shown = world.abide.run(["config", "show"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!shown.stdout.contains("hush"), "{shown:?}");
}

/// What the program prints is the published file, it is a schema, and it knows each policy with
/// its default as the component has it.
#[test]
fn the_schema_is_published_and_complete() {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    let printed = abide.run(["config", "schema"]).stdout;
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/abide.schema.json");
    assert_eq!(printed, fs::read_to_string(published).expect("a file"));
    let schema: Value = serde_json::from_str(&printed).expect("JSON");
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler
        .add_resource("urn:x", schema.clone())
        .expect("a schema");
    let index = compiler.compile("urn:x", &mut schemas).expect("a schema");

    let policies = abide_policy::policies::Policies::default();
    let mut whole = serde_json::to_value(&policies).expect("JSON");
    strip_nulls(&mut whole);
    whole["issuers"] = serde_json::json!({ "a": { "server": "http://ca/" } });
    if let Err(error) = schemas.validate(&whole, index) {
        panic!("the component's defaults are no configuration: {error:#}");
    }
    for section in abide_policy_sections(&whole) {
        let known = schema["properties"][&section]["properties"]
            .as_object()
            .or_else(|| schema["$defs"]["rate"]["properties"].as_object())
            .expect("fields");
        for (field, value) in whole[&section].as_object().expect("a section") {
            let default = &known[field]["default"];
            assert!(
                default.is_null() || default == value,
                "{section}.{field}: {default} in the schema, {value} in the component"
            );
        }
    }
}

fn abide_policy_sections(whole: &Value) -> Vec<String> {
    let all = whole.as_object().expect("sections").keys();
    all.filter(|name| *name != "issuers").cloned().collect()
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}
