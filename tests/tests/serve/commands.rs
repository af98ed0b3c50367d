//! The commands that talk to a running service.

use std::fs;

use abide_tests::openssl::verify_chain;
use abide_tests::process::Ended;
use serde_json::Value;

use crate::World;

#[test]
fn an_order_from_the_command_line_to_its_end() {
    let world = World::new(&[]);
    fs::write(world.abide.path("token.txt"), "a-token").expect("a token");
    let service = world.serve(
        "[[tokens]]\nname = \"ops\"\nfile = \"token.txt\"\nrights = [\"read\", \"write\"]\n",
    );
    let run = |words: &[&str]| -> Ended {
        let mut command = world.abide.command(words);
        command.env("ABIDE_URL", service.url());
        command.env("ABIDE_TOKEN", "a-token");
        abide_tests::process::Process::start(&mut command).end()
    };
    let json = |words: &[&str]| -> Value {
        let ended = run(&[words, &["--output", "json"]].concat());
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e} in {ended:?}"))
    };
    let made = json(&[
        "orders",
        "create",
        "--subject",
        "/CN=device",
        "--sans",
        "device.example",
        "--key",
        "k",
        "--wait",
    ]);
    assert_eq!(made["state"], "ACTIVE");
    assert_eq!(made["principal"], "ops");
    let id = made["id"].as_str().expect("an id");
    assert_eq!(json(&["orders", "list", "--state", "ACTIVE"])[0]["id"], id);
    let table = run(&["orders", "list"]);
    assert!(table.stdout.starts_with("ORDER "), "{table:?}");
    assert!(
        table.stdout.contains(id) && table.stdout.contains("in "),
        "{table:?}"
    );
    let shown = run(&["orders", "show", id]);
    assert!(
        shown.stdout.contains("renewal_at") && shown.stdout.contains(" (in "),
        "{shown:?}"
    );

    let saved = run(&["orders", "certificate", id, "--chainout", "chain.pem"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    verify_chain(&world.abide.path("chain.pem"), world.ca.root());
    let tasks = json(&["tasks", "list"]);
    assert_eq!(tasks[0]["kind"], "renew");
    assert_eq!(json(&["tasks", "dead"]), Value::Array(Vec::new()));

    let explained = run(&["policy", "explain", "--order", id]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert!(explained.stdout.contains("because"), "{explained:?}");
    let plot = run(&["policy", "plot", "--order", id, "--svg", "plot.svg"]);
    assert_eq!(plot.code, Some(0), "{plot:?}");
    assert!(world.abide.read("plot.svg").starts_with("<svg "));
    assert!(
        run(&["policy", "plot", "--order", id])
            .stdout
            .contains("+48 h")
    );

    let canceled = json(&["orders", "cancel", id, "--why", "done with it"]);
    assert_eq!(canceled["state"], "CANCELED");

    // Refusals say what to do, and end with a code of their own.
    let unknown = run(&["orders", "show", "0190"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let replay = run(&["tasks", "replay", "0190"]);
    assert_eq!(replay.code, Some(5), "{replay:?}");
    let mut nobody = world
        .abide
        .command(["orders", "list", "--url", "127.0.0.1:1"]);
    let nobody = abide_tests::process::Process::start(&mut nobody).end();
    assert_eq!(nobody.code, Some(4), "{nobody:?}");
    assert!(nobody.stderr.contains("abide serve"), "{nobody:?}");
}
