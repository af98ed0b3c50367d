use abide_cmp::path::{self, PathError};
use abide_cmp::protection::Policy;
use abide_cmp::{Certificate, limits, oid};

use crate::certificates::*;

/// Seeks a path from the first certificate over the second to the third; its subjects.
fn build(
    leaf: &Template,
    candidates: &[Template],
    anchors: &[Template],
) -> Result<Vec<String>, PathError> {
    counted(leaf, candidates, anchors).0
}

/// The same, and how many signatures were looked at.
fn counted(
    leaf: &Template,
    candidates: &[Template],
    anchors: &[Template],
) -> (Result<Vec<String>, PathError>, usize) {
    let ders = |templates: &[Template]| templates.iter().map(Template::der).collect::<Vec<_>>();
    let (leaf, candidates, anchors) = (leaf.der(), ders(candidates), ders(anchors));
    fn read(ders: &[Vec<u8>]) -> Vec<Certificate<'_>> {
        let read = |der: &Vec<u8>| Certificate::from_der(der.as_slice().to_owned().leak());
        ders.iter()
            .map(|der| read(der).expect("a certificate"))
            .collect()
    }
    let tally = Tally::default();
    let path = path::build(
        &Certificate::from_der(&leaf).expect("a certificate"),
        &read(&candidates),
        &read(&anchors),
        now(),
        Policy::default(),
        &tally,
    );
    let names = path.map(|path| path.iter().map(|c| c.subject.to_string()).collect());
    (names, tally.0.get())
}

/// The rule that makes a path over a sub CA fail.
fn broken(leaf: &Template, sub: &Template, root: &Template) -> String {
    let found = build(leaf, std::slice::from_ref(sub), std::slice::from_ref(root));
    found.expect_err("a broken rule").to_string()
}

fn three() -> (Template, Template, Template) {
    (end("leaf", "sub"), ca("sub", "root"), ca("root", "root"))
}

#[test]
fn candidates_come_in_any_order_and_with_others() {
    let leaf = end("leaf", "c");
    let chain = [
        ca("a", "root"),
        ca("x", "y"),
        ca("c", "b"),
        ca("b", "a"),
        ca("root", "root"),
    ];
    let expected = ["CN=leaf", "CN=c", "CN=b", "CN=a", "CN=root"];
    for turn in 0..chain.len() {
        let mut candidates = chain.to_vec();
        candidates.rotate_left(turn);
        assert_eq!(
            build(&leaf, &candidates, &[ca("root", "root")]).as_deref(),
            Ok(&expected.map(str::to_owned)[..])
        );
    }
    // A leaf that is trusted is its own path.
    assert_eq!(
        build(&leaf, &[], std::slice::from_ref(&leaf)).map(|p| p.len()),
        Ok(1)
    );
}

#[test]
fn a_root_that_is_sent_along_is_not_trusted() {
    let (leaf, sub, root) = three();
    assert!(matches!(
        build(&leaf, &[sub.clone(), root.clone()], &[ca("other", "other")]),
        Err(PathError::NoIssuer { .. })
    ));
    assert_eq!(build(&leaf, &[sub, root], &[]), Err(PathError::NoAnchors));
}

#[test]
fn every_certificate_is_valid_now_the_first_and_the_last_second_included() {
    // NOW is 2026-06-01T00:00:00Z.
    let good = [
        ("260601000000Z", "260601000000Z"),
        ("260101000000Z", "260601000000Z"),
    ];
    let bad = [
        ("260601000001Z", "261231235959Z"),
        ("260101000000Z", "260531235959Z"),
    ];
    for position in 0..3 {
        let with = |(not_before, not_after)| {
            let (mut leaf, mut sub, mut root) = three();
            let changed = [&mut leaf, &mut sub, &mut root].into_iter().nth(position);
            let changed = changed.expect("one of three");
            (changed.not_before, changed.not_after) = (not_before, not_after);
            build(&leaf, &[sub], &[root])
        };
        for span in good {
            assert!(with(span).is_ok(), "{position} {span:?}");
        }
        for span in bad {
            let error = with(span).expect_err("a certificate out of time");
            assert!(matches!(error, PathError::Validity { .. }), "{error}");
        }
    }
}

#[test]
fn only_a_ca_issues() {
    let (leaf, sub, root) = three();
    for sub in [
        sub.clone().without(oid::BASIC_CONSTRAINTS),
        sub.clone().with(basic_constraints(false, None)),
        sub.clone()
            .with((oid::BASIC_CONSTRAINTS, true, vec![0x05, 0x00])),
    ] {
        assert!(broken(&leaf, &sub, &root).contains("basicConstraints"));
    }
    let root = root.without(oid::BASIC_CONSTRAINTS);
    assert!(broken(&leaf, &sub, &root).contains("basicConstraints"));
    // An anchor of version 1 has no extensions; it is trusted by configuration.
    let root = root.without(oid::KEY_USAGE);
    assert!(build(&leaf, &[sub], &[root]).is_ok());
}

#[test]
fn a_ca_whose_key_usage_is_told_has_key_cert_sign() {
    let (leaf, sub, root) = three();
    for usage in [key_usage(0x80), (oid::KEY_USAGE, true, vec![0x04, 0x00])] {
        let sub = sub.clone().with(usage.clone());
        assert!(broken(&leaf, &sub, &root).contains("keyCertSign"));
        assert!(broken(&leaf, &three().1, &root.clone().with(usage)).contains("keyCertSign"));
    }
    let sub = sub.without(oid::KEY_USAGE);
    assert!(build(&leaf, &[sub], &[root]).is_ok());
}

#[test]
fn the_path_length_is_kept_and_self_issued_certificates_do_not_count() {
    let (leaf, sub, root) = three();
    let root = |most| root.clone().with(basic_constraints(true, Some(most)));
    assert!(broken(&leaf, &sub, &root(0)).contains("pathLenConstraint"));
    assert!(broken(&leaf, &sub, &root(-1)).contains("basicConstraints"));
    assert!(build(&leaf, &[sub], &[root(1)]).is_ok());
    assert!(build(&end("leaf", "root"), &[], &[root(0)]).is_ok());
    // A new key of the root, certified by the old one (RFC 5280, 6.1.4 (l)).
    let mut renewed = ca("root", "root");
    "new root".clone_into(&mut renewed.key);
    let mut leaf = end("leaf", "root");
    "new root".clone_into(&mut leaf.signed_by);
    assert_eq!(
        build(&leaf, &[renewed], &[root(0)]).map(|path| path.len()),
        Ok(3)
    );
}

#[test]
fn a_critical_extension_that_is_not_understood_stops_the_path() {
    let (leaf, sub, root) = three();
    let unknown = |critical| (oid::EXTENSION_REQUEST, critical, vec![0x05, 0x00]);
    let text = broken(&leaf.clone().with(unknown(true)), &sub, &root);
    assert!(text.contains("critical"), "{text}");
    let text = broken(&leaf, &sub.clone().with(unknown(true)), &root);
    assert!(text.contains("critical"), "{text}");
    let harmless = leaf.with(unknown(false));
    assert!(build(&harmless, &[sub.with(unknown(false))], &[root]).is_ok());
}

#[test]
fn names_are_within_the_constraints_of_their_issuers() {
    let dns = |name: &str| (0x82, name.as_bytes().to_vec());
    let mail = |name: &str| (0x81, name.as_bytes().to_vec());
    let ip = |octets: &[u8]| (0x87, octets.to_vec());
    let uri = |name: &str| (0x86, name.as_bytes().to_vec());
    // Permitted, excluded, the leaf's subject and names, and whether that goes.
    type Case = (Vec<General>, Vec<General>, &'static str, Vec<General>, bool);
    let cases: Vec<Case> = vec![
        (vec![directory("/O=A")], vec![], "/O=A/CN=x", vec![], true),
        (vec![directory("/O=A")], vec![], "/O=B/CN=x", vec![], false),
        (
            vec![directory("/O=A"), directory("/O=B")],
            vec![],
            "/O=B/CN=x",
            vec![],
            true,
        ),
        (vec![], vec![directory("/O=A")], "/O=A/CN=x", vec![], false),
        (vec![], vec![directory("/O=A")], "/O=B/CN=x", vec![], true),
        (
            vec![dns("a.example")],
            vec![],
            "/CN=x",
            vec![dns("a.example")],
            true,
        ),
        (
            vec![dns("a.example")],
            vec![],
            "/CN=x",
            vec![dns("B.A.Example")],
            true,
        ),
        (
            vec![dns("a.example")],
            vec![],
            "/CN=x",
            vec![dns("ba.example")],
            false,
        ),
        (
            vec![dns("a.example")],
            vec![],
            "/CN=x",
            vec![dns("a.example"), dns("b")],
            false,
        ),
        (vec![dns("a.example")], vec![], "/CN=x", vec![], true),
        (
            vec![],
            vec![dns("a.example")],
            "/CN=x",
            vec![dns("b.a.example")],
            false,
        ),
        (
            vec![mail("a.example")],
            vec![],
            "/CN=x",
            vec![mail("me@a.example")],
            true,
        ),
        (
            vec![mail("a.example")],
            vec![],
            "/CN=x",
            vec![mail("me@b.a.example")],
            false,
        ),
        (
            vec![mail(".a.example")],
            vec![],
            "/CN=x",
            vec![mail("me@b.a.example")],
            true,
        ),
        (
            vec![mail("me@a.example")],
            vec![],
            "/CN=x",
            vec![mail("us@a.example")],
            false,
        ),
        (
            vec![ip(&[10, 0, 0, 0, 255, 0, 0, 0])],
            vec![],
            "/CN=x",
            vec![ip(&[10, 9, 8, 7])],
            true,
        ),
        (
            vec![ip(&[10, 0, 0, 0, 255, 0, 0, 0])],
            vec![],
            "/CN=x",
            vec![ip(&[11, 9, 8, 7])],
            false,
        ),
        (
            vec![],
            vec![ip(&[10, 0, 0, 0, 255, 0, 0, 0])],
            "/CN=x",
            vec![ip(&[10, 0, 0, 1])],
            false,
        ),
        // A kind that is not understood is not permitted, and not known not to be excluded.
        (
            vec![uri("a.example")],
            vec![],
            "/CN=x",
            vec![uri("http://a.example/")],
            false,
        ),
        (
            vec![],
            vec![uri("a.example")],
            "/CN=x",
            vec![uri("http://b.example/")],
            false,
        ),
        (
            vec![dns("a.example")],
            vec![],
            "/CN=x",
            vec![uri("http://b.example/")],
            true,
        ),
    ];
    for (permitted, excluded, subject, names, expected) in cases {
        let (mut leaf, sub, root) = three();
        subject.clone_into(&mut leaf.subject);
        if !names.is_empty() {
            leaf = leaf.with(alt_names(&names));
        }
        let constraints = name_constraints(&permitted, &excluded);
        // Those of the sub CA bind the leaf, and so do those of the root, which the sub CA
        // itself must fit as well: here it has a name of another kind or a fitting one.
        let constrained = sub.clone().with(constraints.clone());
        let found = build(&leaf, &[constrained], std::slice::from_ref(&root));
        assert_eq!(
            found.is_ok(),
            expected,
            "{permitted:?} {excluded:?} {subject} {names:?}"
        );
        if let Err(error) = found {
            assert!(error.to_string().contains("nameConstraints"), "{error}");
        }
    }
    // The constraints of the root bind the sub CA too.
    let (leaf, sub, root) = three();
    let root = root.with(name_constraints(&[directory("/CN=leaf")], &[]));
    assert!(broken(&leaf, &sub, &root).contains("nameConstraints"));
    // Ones that cannot be read permit nothing.
    let damaged = sub.with((oid::NAME_CONSTRAINTS, true, vec![0x05, 0x00]));
    assert!(broken(&leaf, &damaged, &three().2).contains("nameConstraints"));
}

#[test]
fn a_self_issued_ca_is_free_of_constraints_on_names() {
    // RFC 5280, 6.1.3 (b): a change of the root's own key must remain possible.
    let root = ca("root", "root").with(name_constraints(&[directory("/CN=leaf")], &[]));
    let mut renewed = ca("root", "root");
    "new root".clone_into(&mut renewed.key);
    let mut leaf = end("leaf", "root");
    "new root".clone_into(&mut leaf.signed_by);
    assert_eq!(
        build(&leaf, &[renewed], &[root]).map(|path| path.len()),
        Ok(3)
    );
}

#[test]
fn a_signature_fits_its_issuer() {
    let (leaf, mut sub, root) = three();
    "somebody".clone_into(&mut sub.signed_by);
    assert!(broken(&leaf, &sub, &root).contains("does not fit its issuer's key"));
}

#[test]
fn key_identifiers_choose_among_issuers_of_one_name() {
    let (leaf, sub, root) = three();
    let leaf = leaf.with(authority_key(&[2]));
    let mut other = sub.clone();
    "other".clone_into(&mut other.key);
    let candidates = [other.with(subject_key(&[1])), sub.with(subject_key(&[2]))];
    let (path, signatures) = counted(&leaf, &candidates, &[root]);
    assert!(path.is_ok());
    assert_eq!(signatures, 2, "the other one was tried");
}

#[test]
fn an_algorithm_that_is_not_accepted_is_named() {
    let (leaf, mut sub, root) = three();
    sub.algorithm = oid::ECDSA_SHA1;
    assert!(broken(&leaf, &sub, &root).contains("SHA-1"));
    sub.algorithm = oid::KMAC128;
    assert!(broken(&leaf, &sub, &root).contains("id-KMAC128"));
}

#[test]
fn cross_certificates_lead_around_and_through() {
    // Each certified the other, and only b is certified by the root.
    let cross = [ca("a", "b"), ca("b", "a"), ca("b", "root")];
    let leaf = end("leaf", "a");
    assert_eq!(
        build(&leaf, &cross, &[ca("root", "root")]).map(|path| path.len()),
        Ok(4)
    );
    // Without that there is no way out of the circle, and the search ends.
    let (path, signatures) = counted(&leaf, &cross[..2], &[ca("root", "root")]);
    assert!(matches!(path, Err(PathError::NoIssuer { .. })), "{path:?}");
    assert!(signatures <= 4, "{signatures}");
    // A certificate that is signed by itself leads nowhere.
    let circle = [ca("a", "a")];
    assert!(build(&leaf, &circle, &[ca("root", "root")]).is_err());
}

#[test]
fn a_search_has_an_end() {
    // Eight CAs that all certified each other: some 10^4 ways without a goal.
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut maze = Vec::new();
    for subject in names {
        for issuer in names.iter().filter(|issuer| **issuer != subject) {
            maze.push(ca(subject, issuer));
        }
    }
    assert!(maze.len() <= limits::PATH_CANDIDATES);
    let (path, signatures) = counted(&end("leaf", "a"), &maze, &[ca("root", "root")]);
    assert!(matches!(path, Err(PathError::TooMuch(_))), "{path:?}");
    assert!(signatures <= limits::PATH_SIGNATURES, "{signatures}");

    let crowd = |count| vec![ca("a", "b"); count];
    let most = limits::PATH_CANDIDATES;
    let (leaf, root) = (end("leaf", "root"), ca("root", "root"));
    assert!(build(&leaf, &crowd(most), std::slice::from_ref(&root)).is_ok());
    assert_eq!(
        build(&leaf, &crowd(most + 1), &[root]),
        Err(PathError::TooMuch("candidates"))
    );
}

#[test]
fn a_path_has_an_end() {
    let chain = |length: usize| -> Vec<Template> {
        (1..length)
            .map(|n| ca(&format!("ca{n}"), &format!("ca{}", n + 1)))
            .collect()
    };
    let leaf = end("leaf", "ca1");
    for (length, expected) in [
        (limits::PATH_LENGTH - 1, true),
        (limits::PATH_LENGTH, false),
    ] {
        let anchor = ca(&format!("ca{length}"), "nobody");
        let found = build(&leaf, &chain(length), &[anchor]);
        assert_eq!(found.is_ok(), expected, "{length} {found:?}");
    }
}
