//! Rules about the code itself: which crate may know which, what the guest may be made
//! of, and how long a file may get.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Files longer than this want splitting along a concept.
const LONGEST_FILE: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The workspace's own packages and which of each other they depend on, tests left out.
fn dependencies() -> Vec<(String, Vec<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    packages
        .iter()
        .map(|package| {
            let needed = package["dependencies"].as_array().expect("dependencies");
            let ours = needed
                .iter()
                .filter(|dependency| dependency["path"].is_string() && dependency["kind"] != "dev")
                .map(|dependency| text(&dependency["name"]))
                .collect();
            (text(&package["name"]), ours)
        })
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let allowed: &[(&str, &[&str])] = &[
        ("abide-cmp", &[]),
        ("abide-policy", &[]),
        ("abide-enroll", &["abide-cmp", "abide-policy"]),
        (
            "abide-component",
            &["abide-cmp", "abide-enroll", "abide-policy"],
        ),
        // The host knows the component through its WIT alone.
        ("abide-host", &[]),
        // A CA for trials: the other side of the protocol, so it speaks it natively.
        ("abide-mock-ca", &["abide-cmp"]),
        ("abide-service", &["abide-host"]),
        ("abide-gateway", &["abide-host", "abide-service"]),
        (
            "abide",
            &[
                "abide-gateway",
                "abide-host",
                "abide-mock-ca",
                "abide-service",
            ],
        ),
        ("abide-tests", &["abide-cmp", "abide-host", "abide-policy"]),
        (
            "abide-bench",
            &["abide-cmp", "abide-host", "abide-policy", "abide-tests"],
        ),
        ("example-tower", &["abide-host", "abide-tests"]),
        ("example-wasmtime-host", &[]),
        // It judges the machine from outside, and is no way into a build of it.
        ("abide-sim", &["abide-cmp", "abide-enroll"]),
        ("xtask", &[]),
    ];
    let found = dependencies();
    assert_eq!(
        found.len(),
        allowed.len(),
        "a package is missing from the table or from the disk"
    );
    for (package, needed) in found {
        let (_, most) = allowed
            .iter()
            .find(|(name, _)| *name == package)
            .unwrap_or_else(|| panic!("{package} is not in the table"));
        for dependency in needed {
            assert!(
                most.contains(&dependency.as_str()),
                "{package} must not know {dependency}"
            );
        }
    }
}

/// Faults that are put into the machine on purpose stay in the tests of the checker.
#[test]
fn nothing_but_a_test_turns_mutations_on() {
    let output = Command::new("git")
        .args(["grep", "-l", "mutations", "--", "*Cargo.toml"])
        .current_dir(root())
        .output()
        .expect("git");
    let files = String::from_utf8(output.stdout).expect("UTF-8");
    let named: Vec<&str> = files.lines().collect();
    assert_eq!(named, ["guest/enroll/Cargo.toml", "tests/sim/Cargo.toml"]);
    let simulator = fs::read_to_string(root().join("tests/sim/Cargo.toml")).expect("a manifest");
    let (_, for_tests) = simulator
        .split_once("[dev-dependencies]")
        .expect("dependencies of tests");
    assert_eq!(simulator.matches("mutations").count(), 1);
    assert!(for_tests.contains("\"mutations\""));
}

#[test]
fn guest_crates_are_no_std_without_unsafe() {
    for package in ["cmp", "policy", "enroll"] {
        let file = root().join("guest").join(package).join("src/lib.rs");
        let text = fs::read_to_string(&file).expect("a guest crate");
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            assert!(
                text.contains(attribute),
                "{}: {attribute} is missing",
                file.display()
            );
        }
    }
}

#[test]
fn files_stay_readable() {
    let output = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.rs",
            "*.wit",
        ])
        .current_dir(root())
        .output()
        .expect("git");
    let files = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(files.lines().count() > 50, "git lists too few files");
    for file in files.lines() {
        let Ok(text) = fs::read_to_string(root().join(file)) else {
            continue;
        };
        let lines = text.lines().count();
        assert!(
            lines <= LONGEST_FILE,
            "{file} has {lines} lines: split it along a concept"
        );
    }
}
