//! The page in Chromium: `tests/peers/page/check.mjs` looks at it, with and without a mouse, wide
//! and on a phone, in light and in dark. Its screenshots stay in `target/page`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use abide_tests::process::Process;
use abide_tests::service::Service;

use crate::{World, order, wish, zombies};

/// Where the browser's packages are, and where its pictures go.
fn folder(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target.expect("the target folder").join(name)
}

fn check(service: &Service, trial: &str, more: &str) {
    let packages = folder("elsewhere/page");
    assert!(
        packages.exists(),
        "{} is not there: `cargo xtask setup` makes it",
        packages.display()
    );
    // Modules are looked for beside the program.
    let program = packages.join("check.mjs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/page/check.mjs");
    let beside = packages.join(format!(".{trial}"));
    fs::copy(source, &beside).expect("a copy of the program");
    fs::rename(beside, &program).expect("a copy of the program");
    let pictures = folder("page");
    fs::create_dir_all(&pictures).expect("a folder for pictures");
    let mut command = Command::new("node");
    command
        .arg(program)
        .arg(pictures)
        .args([trial, &service.url(), more]);
    let ended = Process::start(&mut command).end();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", service.said());
    assert!(ended.stdout.contains(&format!("ok {trial}")), "{ended:?}");
}

#[test]
fn an_order_is_seen_from_its_beginning_to_its_certificate() {
    let world = World::new(&["--poll-count", "2", "--check-after", "6"]);
    let service = world.serve("");
    check(&service, "order", "");
    assert!(world.issued() >= 1);
}

#[test]
fn a_zombie_is_hydrated_from_the_page() {
    let world = World::new(&["--poll-count", "1", "--check-after", "3"]);
    let service = world.serve(zombies::CUTOFF);
    let id = order(&service, &wish("device"));
    zombies::until_polling(&world, &service, &id);
    zombies::lose_task(&world, &id);
    service.wait_for(&format!("Found zombie id={id}"));
    check(&service, "zombie", &id);
    service.until_state(&id, "ACTIVE");
    assert_eq!(world.issued(), 1);
}

#[test]
fn without_a_token_the_page_tells_nothing() {
    let world = World::new(&[]);
    fs::write(world.abide.path("token.txt"), "a-token").expect("a token");
    let service =
        world.serve("[[tokens]]\nname = \"ops\"\nfile = \"token.txt\"\nrights = [\"read\"]\n");
    check(&service, "token", "a-token");
    // What it is made of is the same for everybody.
    let page = service.get("/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
}
