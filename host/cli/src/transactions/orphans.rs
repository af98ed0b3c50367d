//! Certificates that may exist at a CA and that nobody has: how its operator finds them.

use std::fmt::Write as _;

use abide_host::wit::transactions::Transaction;
use serde_json::{Value, json};

use super::{SHORT_ID, SHORT_SERVER, cut};
use crate::text::printable;
use crate::{table as tables, when, words};

/// Whether the CA may have issued a certificate that never arrived.
pub(super) fn is_one(transaction: &Transaction) -> bool {
    let failure = transaction.failure.as_ref();
    failure.is_some_and(|failure| failure.orphan)
}

/// The orphans, oldest first.
pub(super) fn among(all: Vec<Transaction>) -> Vec<Transaction> {
    let mut orphans: Vec<_> = all.into_iter().filter(is_one).collect();
    orphans.sort_by_key(|one| one.started_ms);
    orphans
}

pub(super) fn count(orphans: usize) -> String {
    match orphans {
        0 => "no orphan".into(),
        1 => "1 orphan".into(),
        more => format!("{more} orphans"),
    }
}

/// The transactionID in full: it is what the operator looks for. Of the digest as much as tells
/// two requests apart.
pub(super) fn table(orphans: &[Transaction], total: usize) -> String {
    let all = match total {
        1 => "1 transaction".to_owned(),
        more => format!("{more} transactions"),
    };
    let mut summary = format!("{} in {all}", count(orphans.len()));
    if orphans.is_empty() {
        summary.push('\n');
        return summary;
    }
    let header = [
        "TRANSACTION",
        "CMD",
        "STARTED",
        "GIVEN UP",
        "CSRDIGEST",
        "SERVER",
    ];
    let mut rows = vec![header.map(String::from)];
    rows.extend(orphans.iter().map(|one| {
        [
            one.transaction_id.clone(),
            words::operation(one.operation).into(),
            when::utc(one.started_ms),
            when::utc(one.updated_ms),
            cut(&one.csr_digest, SHORT_ID),
            cut(&printable(&one.server), SHORT_SERVER),
        ]
    }));
    let mut out = String::new();
    for (index, line) in tables::lines(&rows, usize::MAX).iter().enumerate() {
        writeln!(out, "{line}").expect("a String takes all");
        let Some(orphan) = index.checked_sub(1).and_then(|index| orphans.get(index)) else {
            continue;
        };
        let reason = orphan.failure.as_ref().map(|failure| &failure.reason);
        writeln!(
            out,
            "    order {}: {}",
            printable(&orphan.order),
            printable(reason.map_or("", String::as_str))
        )
        .expect("a String takes all");
    }
    summary.push_str(
        "; for each the CA may have issued a certificate that never arrived: its operator finds \
         it by the transactionID, or by the SHA-256 of the request that is csrDigest, and \
         revokes it\n",
    );
    out.push_str(&summary);
    out
}

pub(super) fn to_json(one: &Transaction) -> Value {
    json!({
        "transactionID": one.transaction_id,
        "csrDigest": one.csr_digest,
        "issuerDigest": one.issuer_digest,
        "operation": words::operation(one.operation),
        "server": one.server,
        "order": one.order,
        "account": one.account,
        "started": when::utc(one.started_ms),
        "givenUp": when::utc(one.updated_ms),
        "failure": one.failure.as_ref().map(words::failure_json),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::transaction;
    use super::*;
    use abide_host::wit::transactions::{Failure, FailureClass, Fault};

    fn failed(id: &str, orphan: bool) -> Transaction {
        let mut failed = transaction(id);
        failed.failure = Some(Failure {
            class: FailureClass::Expired,
            fault: Fault::Peer,
            reason: "the deadline has passed\x1b[2J".into(),
            advice: String::new(),
            fail_info: Vec::new(),
            orphan,
            throttled: false,
        });
        failed
    }

    #[test]
    fn only_orphans_are_listed_and_all_are_counted() {
        let mut older = failed("0011", true);
        older.started_ms = 0;
        let all = vec![
            transaction("ee"),
            failed("ff", false),
            failed("2233", true),
            older,
        ];
        let orphans = among(all);
        let text = table(&orphans, 4);
        let expected = "\
TRANSACTION  CMD    STARTED               GIVEN UP              CSRDIGEST  SERVER
0011         p10cr  1970-01-01T00:00:00Z  1970-01-01T00:25:00Z  aa         http://127.0.0.1:8080/pkix/
    order o: the deadline has passed\\u{1b}[2J
2233         p10cr  1970-01-01T00:16:40Z  1970-01-01T00:25:00Z  aa         http://127.0.0.1:8080/pkix/
    order o: the deadline has passed\\u{1b}[2J
2 orphans in 4 transactions; ";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(table(&[], 3), "no orphan in 3 transactions\n");
        assert_eq!(to_json(&orphans[0])["csrDigest"], "aa");
    }
}
