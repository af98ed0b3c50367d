//! What operators are given: alert rules, a dashboard, a unit for systemd, manual pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use abide_tests::abide::{Abide, MockCa};
use abide_tests::gateway::{Ca, Gateway};
use abide_tests::process::{Process, succeed};
use abide_tests::service::Service;
use serde_json::{Value, json};

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../packaging")
        .join(file)
}

fn promtool() -> Command {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let program = target
        .expect("the target folder")
        .join("elsewhere/prometheus/usr/bin/promtool");
    assert!(
        program.exists(),
        "{} is not there: `cargo xtask setup` fetches it",
        program.display()
    );
    Command::new(program)
}

/// The counters of a service and of a gateway that have both had something to do.
fn counters() -> (String, String) {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    let ca = MockCa::start(dir.path(), &[]);
    fs::write(abide.path("secret.txt"), MockCa::SECRET).expect("a secret");
    let config = format!(
        "[service]\nlisten = \"127.0.0.1:0\"\nstore = \"sqlite:abide.db\"\n\
         [issuers.test]\nserver = \"{}\"\nreference = \"{}\"\nsecret = \"file:secret.txt\"\n\
         trusted = [\"ca/root.pem\"]\n[rate_limit]\nenabled = true\n[qos]\nenabled = true\n\
         [delivery]\ndirectory = \"certificates\"\n",
        ca.url(),
        MockCa::REF
    );
    let service = Service::start(&abide, &config);
    let made = service.post("/v1/orders", &json!({ "subject": "/CN=device" }));
    let id = made.json()["id"].as_str().expect("an id").to_owned();
    service.until(&id, "delivery", |order| {
        order["delivery"]["state"] == "delivered"
    });
    let of_service = service.get("/metrics").body;

    let message = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = format!("../guest/cmp/tests/vectors/messages/{name}.der");
        fs::read(folder.join(file)).expect("a vector")
    };
    let ca = Ca::start(
        &message("openssl-3.0-ir-pbm-2-ip"),
        std::time::Duration::ZERO,
    );
    let gateway = Gateway::start(&abide, &["--upstream", &ca.url(), "--rate-limit", "1/60"]);
    for _ in 0..2 {
        gateway.post(&[], &message("openssl-3.0-ir-pbm-1-ir"));
    }
    gateway.post(&[], b"nonsense");
    let of_gateway = gateway.admin("/metrics");
    (
        of_service,
        String::from_utf8(of_gateway.body).expect("text"),
    )
}

/// The names of all samples.
fn names(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .map(str::to_owned)
        .collect()
}

/// What an expression of Prometheus asks for.
fn asked(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| {
            ["abide_", "ratelimit_", "qos_"]
                .iter()
                .any(|start| word.starts_with(start))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn prometheus_finds_nothing_wrong_with_metrics_and_rules() {
    let (service, gateway) = counters();
    for text in [&service, &gateway] {
        let mut command = promtool();
        command.args(["check", "metrics"]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("promtool");
        let mut input = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut input, text.as_bytes()).expect("a pipe");
        drop(input);
        let output = child.wait_with_output().expect("promtool");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
    }
    let rules = packaging("prometheus/abide.rules.yml");
    succeed(promtool().args(["check", "rules"]).arg(&rules));

    // No alert and no picture asks for what is not there, and every alert has its chapter.
    let there: BTreeSet<String> = names(&service).union(&names(&gateway)).cloned().collect();
    let rules = fs::read_to_string(rules).expect("rules");
    let expressions: String = rules.lines().filter(|l| !l.contains("runbook:")).collect();
    let dashboard = fs::read_to_string(packaging("grafana/abide.json")).expect("a dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    let mut wanted = asked(&expressions);
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            wanted.append(&mut asked(target["expr"].as_str().expect("an expression")));
        }
    }
    // These appear with the first of what they count.
    let seldom = [
        "abide_gateway_sandbox_failures_total",
        "qos_executions_buffered_total",
    ];
    let missing: Vec<_> = wanted
        .difference(&there)
        .filter(|name| !seldom.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not in {there:?}");

    let runbook = fs::read_to_string(packaging("../docs/operations.md")).expect("a runbook");
    let chapters: BTreeSet<String> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect();
    for line in rules
        .lines()
        .filter_map(|line| line.split_once("operations.md#"))
    {
        assert!(chapters.contains(line.1), "{} is no chapter", line.1);
    }
}

#[test]
fn systemd_takes_the_unit_and_finds_it_hardened() {
    // The program's path is that of the package; here it is somewhere else.
    let dir = tempfile::tempdir().expect("a folder");
    let unit = fs::read_to_string(packaging("systemd/abide.service")).expect("a unit");
    let program = Abide::new(dir.path()).command([""; 0]);
    let program = Path::new(program.get_program()).display().to_string();
    let unit = unit.replace("/usr/bin/abide", &program);
    let unit = unit.replace("Documentation=man:abide(1)\n", "");
    let file = dir.path().join("abide.service");
    fs::write(&file, unit).expect("a unit");
    succeed(Command::new("systemd-analyze").arg("verify").arg(&file));
    let said = succeed(
        Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(&file),
    );
    let exposure: f32 = said
        .lines()
        .find_map(|line| line.split("for abide.service: ").nth(1))
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("no exposure in {said}"));
    // OK is what systemd calls everything below two.
    assert!(exposure < 2.0, "{exposure}");
}

#[test]
fn every_command_has_its_manual_page_and_shells_can_complete_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let abide = Abide::new(dir.path());
    let manual = abide.path("man");
    fs::create_dir(&manual).expect("a folder");
    let mut command = abide.command(["manual", "--to", "man"]);
    let ended = Process::start(&mut command).end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for page in [
        "abide",
        "abide-serve",
        "abide-orders-list",
        "abide-zombies-hydrate",
    ] {
        let text = fs::read_to_string(manual.join(format!("{page}.1"))).expect(page);
        assert!(text.contains(".TH"), "{text}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let ended = Process::start(&mut abide.command(["completions", shell])).end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains("zombies"), "{shell}");
    }
}
