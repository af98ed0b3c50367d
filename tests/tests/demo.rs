//! `abide demo` as a person runs it.

use std::collections::BTreeSet;

use abide_tests::abide::Abide;

/// What is called a transaction in the text: 16 octets in hexadecimal.
fn transaction_ids(text: &str) -> BTreeSet<&str> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words
        .windows(2)
        .filter(|pair| matches!(pair[0], "transaction" | "transactionID"))
        .map(|pair| pair[1])
        .filter(|id| id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()))
        .collect()
}

#[test]
fn the_demo_survives_a_kill_and_shows_it() {
    let folder = tempfile::tempdir().expect("a folder for the demo");
    let abide = Abide::new(folder.path());
    let ended = abide.run(["demo", "--dir", "stage"]);
    let told = &ended.stdout;
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let (before, after) = told.split_once("kill -9").expect("the kill");
    let id = transaction_ids(before);
    assert_eq!(id.len(), 1, "one transaction before the kill: {told}");
    assert_eq!(transaction_ids(after), id, "and the same one after: {told}");

    assert!(before.contains("the CA says waiting"), "{told}");
    for side in [before, after] {
        assert!(side.contains("next poll at "), "{told}");
    }
    let (_, chain) = after
        .split_once("-----BEGIN CERTIFICATE-----")
        .expect("the chain");
    let (_, history) = chain.split_once("history\n").expect("the history");
    assert!(history.contains("waiting"), "{told}");
    assert!(history.contains("issued and confirmed"), "{told}");

    let books = abide.read("stage/ca/books.jsonl");
    let issued = books.matches("\"event\":\"issued\"").count();
    assert_eq!(issued, 1, "{books}");
    assert!(abide.read("stage/cert.pem").contains("BEGIN CERTIFICATE"));
}
