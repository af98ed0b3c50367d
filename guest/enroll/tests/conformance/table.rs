//! `docs/conformance.md` names every test here, and only tests that there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Files in a folder and those in it.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// Tests in a folder as `file::name`, without its ending.
fn tests(folder: &str) -> BTreeSet<String> {
    let mut found = Vec::new();
    files(&here().join(folder), &mut found);
    let mut tests = BTreeSet::new();
    for path in found {
        let text = fs::read_to_string(&path).expect("source");
        let file = path.file_stem().and_then(|stem| stem.to_str());
        let file = file.expect("a name");
        let parts = text.split("#[test]\nfn ").skip(1);
        tests.extend(parts.filter_map(|part| {
            let (name, _) = part.split_once('(')?;
            Some(format!("{file}::{name}"))
        }));
    }
    tests
}

#[test]
fn the_table_names_every_test_and_only_such_as_there_are() {
    let document = here().join("../../../docs/conformance.md");
    let table = fs::read_to_string(document).expect("the table");
    let mut named = BTreeSet::new();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let columns: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, section, verdict, test] = columns[..] else {
            continue;
        };
        if test == "test" {
            continue;
        }
        assert!(!rule.is_empty() && !verdict.is_empty(), "{line}");
        assert!(section.contains(|c: char| c.is_ascii_digit()), "{line}");
        // A rule that has no test says why in its verdict.
        if test != "–" {
            let tests = test.split(", ").map(|test| test.trim_matches('`'));
            named.extend(tests.map(String::from));
        }
    }
    let conformance = tests("conformance");
    let mut all = tests("transaction");
    all.extend(conformance.iter().cloned());
    let absent: Vec<_> = named.difference(&all).collect();
    assert!(absent.is_empty(), "named and not there: {absent:#?}");
    let own = "table::the_table_names_every_test_and_only_such_as_there_are";
    let untold: Vec<_> = conformance
        .difference(&named)
        .filter(|test| *test != own)
        .collect();
    assert!(untold.is_empty(), "there and not named: {untold:#?}");
}
