//! Who may do what.

use std::fs;

use abide_tests::process::Process;
use abide_tests::service::Service;
use serde_json::json;

use crate::{World, wish};

fn tokens(world: &World) -> String {
    fs::write(world.abide.path("token.txt"), "writer-token\n").expect("a token");
    let reader = abide_tests::process::succeed(
        std::process::Command::new("sh").args(["-c", "printf reader-token | sha256sum"]),
    );
    let reader = &reader[..64];
    format!(
        "[[tokens]]\nname = \"ci\"\nfile = \"token.txt\"\nrights = [\"read\", \"write\"]\n\
         [[tokens]]\nname = \"dashboard\"\nsha256 = \"{reader}\"\nrights = [\"read\"]\n"
    )
}

#[test]
fn a_token_is_a_principal_with_rights() {
    let world = World::new(&[]);
    let service = world.serve(&tokens(&world));
    for path in ["/v1/orders", "/v1/tasks", "/v1/transactions"] {
        let answer = service.get(path);
        assert_eq!(answer.status, 401, "{answer:?}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    for wrong in [
        "Bearer nonsense",
        "Bearer ",
        "Basic cmVhZGVyLXRva2Vu",
        "reader-token",
    ] {
        let answer = service.call("GET", "/v1/orders", &[("Authorization", wrong)], b"");
        assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
    }
    // Probes name nobody.
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }

    let service = service.with_token("reader-token");
    assert_eq!(service.get("/v1/orders").status, 200);
    let answer = service.post("/v1/orders", &wish("device"));
    assert_eq!(answer.status, 403, "{answer:?}");
    assert_eq!(answer.json()["type"], "urn:abide:problem:forbidden");

    let service = service.with_token("writer-token");
    let answer = service.post("/v1/orders", &wish("device"));
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["principal"], "ci");
    let replay = service.post("/v1/dead-letters/0190/replay", &json!({}));
    assert_eq!(replay.status, 403, "{replay:?}");
}

/// One key for two principals is two keys.
#[test]
fn a_key_belongs_to_its_principal() {
    let world = World::new(&[]);
    fs::write(world.abide.path("a.txt"), "token-a").expect("a token");
    fs::write(world.abide.path("b.txt"), "token-b").expect("a token");
    let service = world.serve(
        "[[tokens]]\nname = \"a\"\nfile = \"a.txt\"\nrights = [\"write\"]\n\
         [[tokens]]\nname = \"b\"\nfile = \"b.txt\"\nrights = [\"write\"]\n",
    );
    let mut wish = wish("device");
    wish["key"] = json!("k");
    let service = service.with_token("token-a");
    assert_eq!(service.post("/v1/orders", &wish).status, 201);
    assert_eq!(service.post("/v1/orders", &wish).status, 200);
    let service: Service = service.with_token("token-b");
    assert_eq!(service.post("/v1/orders", &wish).status, 201);
}

#[test]
fn without_tokens_only_this_machine_is_served() {
    let world = World::new(&[]);
    let config = world.config("").replace("127.0.0.1:0", "0.0.0.0:0");
    fs::write(world.abide.path("abide.toml"), config).expect("a configuration");
    let ended = Process::start(&mut world.abide.command(["serve"])).end();
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("abide.toml:2:10: service.listen:"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("[[tokens]]"), "{ended:?}");

    // A page in a browser on this machine that leads its own name here.
    let service = world.serve("");
    let foreign = [("Host", "evil.example")];
    let answer = service.call("GET", "/v1/orders", &foreign, b"");
    assert_eq!(answer.status, 403, "{answer:?}");

    // A page from elsewhere that sends what needs no leave; our own page may.
    let hydrate = "/v1/admin/queue/hydrate?from=0&to=1&dryRun=false";
    let elsewhere = [("Origin", "https://evil.example")];
    let answer = service.call("POST", hydrate, &elsewhere, b"");
    assert_eq!(answer.status, 403, "{answer:?}");
    let own = service.url();
    let answer = service.call("POST", hydrate, &[("Origin", &*own)], b"");
    assert_eq!(answer.status, 200, "{answer:?}");
}
