//! What every store promises about claims, leases and their fencing tokens.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Store, envelope, put};
use crate::limits;
use crate::wit::storage::{
    Change, Claim, Claimed, Claims, Envelope, Holding, Lease, Put, Removal, StorageError,
};

const MINUTE: u64 = 60_000;

fn due(id: &str, due_ms: u64, expected: Option<u64>) -> Change {
    Change::Put(Put {
        envelope: Envelope {
            due_ms: Some(due_ms),
            ..envelope("thing", id)
        },
        expected,
        body: id.as_bytes().to_vec(),
    })
}

fn guard(lease: &Lease) -> Change {
    Change::Guard(lease.clone())
}

fn lease(claimed: &Claimed) -> Lease {
    Lease {
        kind: claimed.entry.envelope.kind.clone(),
        id: claimed.entry.envelope.id.clone(),
        token: claimed.token,
    }
}

fn fenced(id: &str) -> StorageError {
    StorageError::Fenced(format!("thing {id}"))
}

fn conflict(id: &str) -> StorageError {
    StorageError::Conflict(format!("thing {id}"))
}

/// Claims for a minute from `now_ms` on.
async fn claim(store: &Store, holder: &str, now_ms: u64, limit: u32) -> Claims {
    let claim = Claim {
        kind: "thing".to_owned(),
        holder: holder.to_owned(),
        now_ms,
        until_ms: now_ms + MINUTE,
        limit,
        excluded: Vec::new(),
    };
    store.claim_due(claim).await.unwrap()
}

fn ids(claims: &Claims) -> Vec<&str> {
    claims
        .claimed
        .iter()
        .map(|claimed| claimed.entry.envelope.id.as_str())
        .collect()
}

async fn version(store: &Store, id: &str) -> u64 {
    store.get("thing", id).await.unwrap().unwrap().version
}

pub(crate) async fn a_claim_takes_what_is_due_longest_first(store: Store) {
    let changes = [("b", 10), ("a", 10), ("c", 5), ("d", 11), ("e", 4000)];
    let changes = changes.map(|(id, at)| due(id, at, None)).to_vec();
    store.commit(changes).await.unwrap();
    store.commit(vec![put("never", None, b"")]).await.unwrap();
    let first = claim(&store, "w1", 10, 2).await;
    assert_eq!(ids(&first), ["c", "a"]);
    assert_eq!(first.next_due_ms, Some(10), "there is more than the limit");
    let entry = &first.claimed[0].entry;
    assert_eq!(entry.body, b"c");
    assert_eq!(
        entry.version,
        version(&store, "c").await,
        "a claim is no write"
    );
    let held = Holding {
        holder: "w1".to_owned(),
        token: first.claimed[0].token,
        until_ms: 10 + MINUTE,
    };
    assert_eq!(entry.lease, Some(held.clone()));
    let stored = store.get("thing", "c").await.unwrap().unwrap();
    assert_eq!(
        (stored.lease, stored.envelope.due_ms),
        (Some(held), Some(5))
    );
    let second = claim(&store, "w2", 10, 100).await;
    assert_eq!(ids(&second), ["b"]);
    assert_eq!(second.next_due_ms, Some(11));
    assert_eq!(ids(&claim(&store, "w2", 10, 100).await), [""; 0]);
    let rest = claim(&store, "w2", 11, 100).await;
    assert_eq!((ids(&rest), rest.next_due_ms), (vec!["d"], Some(4000)));
}

pub(crate) async fn a_claim_has_room_for_one_and_not_for_all(store: Store) {
    // 10 MiB in bodies of the largest size: more than the 8 MiB that are handed over at once.
    for n in 0..10 {
        let mut change = due(&format!("{n}"), n, None);
        if let Change::Put(put) = &mut change {
            put.body = vec![7; limits::RECORD_BODY];
        }
        store.commit(vec![change]).await.unwrap();
    }
    let first = claim(&store, "w", 100, 10).await;
    assert_eq!((first.claimed.len(), first.next_due_ms), (8, Some(8)));
    let rest = claim(&store, "w", 100, 10).await;
    assert_eq!(
        (ids(&rest), rest.next_due_ms),
        (vec!["8", "9"], Some(100 + MINUTE))
    );
}

pub(crate) async fn tokens_grow_and_never_come_back(store: Store) {
    let mut last = 0;
    for round in 0..3 {
        store
            .commit(vec![due("a", 1, None), due("b", 1, None)])
            .await
            .unwrap();
        let claims = claim(&store, "w", 1 + round, 10).await;
        for claimed in &claims.claimed {
            assert!(claimed.token > last);
            last = claimed.token;
        }
        for claimed in &claims.claimed {
            let entry = &claimed.entry;
            let gone = Change::Delete(Removal {
                kind: "thing".to_owned(),
                id: entry.envelope.id.clone(),
                expected: entry.version,
            });
            store
                .commit(vec![guard(&lease(claimed)), gone])
                .await
                .unwrap();
        }
    }
}

pub(crate) async fn a_lease_that_is_over_goes_to_the_next_one(store: Store) {
    store.commit(vec![due("a", 5, None)]).await.unwrap();
    let first = claim(&store, "w1", 5, 10).await;
    assert_eq!(first.claimed[0].lost, 0);
    let early = claim(&store, "w2", 5 + MINUTE - 1, 10).await;
    assert_eq!((ids(&early), early.next_due_ms), (vec![], Some(5 + MINUTE)));
    let second = claim(&store, "w2", 5 + MINUTE, 10).await;
    assert_eq!(second.claimed[0].lost, 1);
    assert!(second.claimed[0].token > first.claimed[0].token);
    let third = claim(&store, "w3", 5 + 2 * MINUTE, 10).await;
    assert_eq!(third.claimed[0].lost, 2);

    let (old, new) = (lease(&second.claimed[0]), lease(&third.claimed[0]));
    let before = version(&store, "a").await;
    let write = |lease: &Lease| vec![guard(lease), due("a", 9, Some(before)), put("b", None, b"")];
    assert_eq!(store.commit(write(&old)).await, Err(fenced("a")));
    assert_eq!(
        store.get("thing", "b").await.unwrap(),
        None,
        "nothing of it was written"
    );
    assert_eq!(
        store.commit(write(&new)).await.map(|versions| versions[0]),
        Ok(0)
    );
    assert_eq!(
        store.commit(vec![guard(&new)]).await,
        Err(fenced("a")),
        "a write ends it"
    );
    let again = claim(&store, "w1", 5 + 3 * MINUTE, 10).await;
    assert_eq!(again.claimed[0].lost, 0, "somebody came to an end");
}

pub(crate) async fn a_lease_that_is_over_still_guards_while_nobody_claims(store: Store) {
    store.commit(vec![due("a", 5, None)]).await.unwrap();
    let claims = claim(&store, "w1", 5, 10).await;
    // Its minute is long over, but the record is still its.
    let mine = lease(&claims.claimed[0]);
    let before = claims.claimed[0].entry.version;
    let versions = store
        .commit(vec![guard(&mine), due("a", MINUTE * 9, Some(before))])
        .await;
    assert!(versions.is_ok(), "{versions:?}");
}

pub(crate) async fn a_leased_record_is_written_under_its_guard_only(store: Store) {
    store.commit(vec![due("a", 5, None)]).await.unwrap();
    let claims = claim(&store, "w1", 5, 10).await;
    let before = claims.claimed[0].entry.version;
    let mine = lease(&claims.claimed[0]);
    let unguarded = store.commit(vec![due("a", 9, Some(before))]).await;
    assert_eq!(unguarded, Err(conflict("a")));
    let gone = Change::Delete(Removal {
        kind: "thing".to_owned(),
        id: "a".to_owned(),
        expected: before,
    });
    assert_eq!(store.commit(vec![gone.clone()]).await, Err(conflict("a")));
    let absent = Lease {
        id: "z".to_owned(),
        ..mine.clone()
    };
    assert_eq!(store.commit(vec![guard(&absent)]).await, Err(fenced("z")));
    assert_eq!(store.commit(vec![gone, guard(&mine)]).await, Ok(vec![0, 0]));
    assert_eq!(store.get("thing", "a").await.unwrap(), None);
}

pub(crate) async fn leases_are_prolonged_and_released(store: Store) {
    store
        .commit(vec![due("a", 5, None), due("b", 5, None)])
        .await
        .unwrap();
    let claims = claim(&store, "w1", 5, 10).await;
    let leases: Vec<_> = claims.claimed.iter().map(lease).collect();
    assert_eq!(
        store.renew(leases.clone(), 5 + 3 * MINUTE).await,
        Ok(vec![])
    );
    assert_eq!(ids(&claim(&store, "w2", 5 + 2 * MINUTE, 10).await), [""; 0]);
    store.release(vec![leases[0].clone()]).await.unwrap();
    let theirs = claim(&store, "w2", 6, 10).await;
    assert_eq!(ids(&theirs), ["a"], "due at the time it was");
    assert_eq!(theirs.claimed[0].lost, 0);
    let lost = store.renew(leases.clone(), 5 + 4 * MINUTE).await;
    assert_eq!(lost, Ok(vec![leases[0].clone()]));
    store.release(leases.clone()).await.unwrap();
    assert_eq!(
        store.commit(vec![guard(&leases[0])]).await,
        Err(fenced("a"))
    );
    let held = store.commit(vec![guard(&lease(&theirs.claimed[0]))]).await;
    assert_eq!(held, Ok(vec![0]), "a release of what is lost harms nobody");
}

pub(crate) async fn records_are_counted(store: Store) {
    let changes = (0..20).map(|n| due(&format!("{n:02}"), n, None)).collect();
    store.commit(changes).await.unwrap();
    assert_eq!(store.count("thing", 9, 100).await, Ok((20, 10)));
    claim(&store, "w", 3, 100).await;
    assert_eq!(
        store.count("thing", 9, 100).await,
        Ok((20, 6)),
        "four are held"
    );
    assert_eq!(store.count("thing", 9, 5).await, Ok((5, 5)));
    assert_eq!(store.count("nothing", 9, 5).await, Ok((0, 0)));
}

pub(crate) async fn records_are_counted_by_state(store: Store) {
    // Longer than what an index holds of it, and alike until then.
    let long = |end: &str| format!("{}{end}", "s".repeat(200));
    let of = |id: &str, state: &str| {
        let mut change = due(id, 1, None);
        if let Change::Put(put) = &mut change {
            put.envelope.state = state.to_owned();
        }
        change
    };
    let (x, y) = (long("x"), long("y"));
    let changes = vec![of("a", "A"), of("b", "A"), of("c", "B"), of("d", &x)];
    store.commit(changes).await.unwrap();
    assert_eq!(store.count_state("thing", "A", 100).await, Ok(2));
    assert_eq!(store.count_state("thing", "A", 1).await, Ok(1));
    assert_eq!(store.count_state("thing", "C", 100).await, Ok(0));
    assert_eq!(store.count_state("nothing", "A", 100).await, Ok(0));
    assert_eq!(store.count_state("thing", &x, 100).await, Ok(1));
    assert_eq!(store.count_state("thing", &y, 100).await, Ok(0));
    claim(&store, "w", 1, 1).await;
    assert_eq!(
        store.count_state("thing", "A", 100).await,
        Ok(2),
        "held or not"
    );
}

pub(crate) async fn excluded_accounts_are_left_out(store: Store) {
    let of = |id: &str, account: &str, at: u64| {
        let mut change = due(id, at, None);
        if let Change::Put(put) = &mut change {
            put.envelope.account = account.to_owned();
        }
        change
    };
    let changes = vec![
        of("a", "theirs", 1),
        of("b", "mine", 2),
        of("c", "", 3),
        of("d", "others", 4),
        of("e", "mine", 5),
        of("f", "theirs", 90),
    ];
    store.commit(changes).await.unwrap();
    let claim = |excluded: &[&str], limit| {
        store.claim_due(Claim {
            kind: "thing".to_owned(),
            holder: "w".to_owned(),
            now_ms: 10,
            until_ms: 10 + MINUTE,
            limit,
            excluded: excluded.iter().map(|&account| account.to_owned()).collect(),
        })
    };
    let first = claim(&["theirs", "others"], 2).await.unwrap();
    assert_eq!(ids(&first), ["b", "c"], "the longest due of the others");
    assert_eq!(
        first.next_due_ms,
        Some(5),
        "what is due of excluded ones is not waited for"
    );
    let second = claim(&["theirs", "others", ""], 100).await.unwrap();
    assert_eq!(ids(&second), ["e"]);
    let entry = store.get("thing", "a").await.unwrap().unwrap();
    assert_eq!(entry.lease, None, "nobody touched it");
    let rest = claim(&[], 100).await.unwrap();
    assert_eq!((ids(&rest), rest.next_due_ms), (vec!["a", "d"], Some(90)));
}

pub(crate) async fn of_many_workers_each_record_has_one(store: Store) {
    let changes = (0..200).map(|n| due(&format!("{n:03}"), 1, None)).collect();
    store.commit(changes).await.unwrap();
    let workers: Vec<_> = (0..8)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    let claims = claim(&store, &format!("w{number}"), 1, 7).await;
                    if claims.claimed.is_empty() {
                        return mine;
                    }
                    let taken = claims.claimed.iter();
                    mine.extend(taken.map(|it| (it.entry.envelope.id.clone(), it.token)));
                }
            })
        })
        .collect();
    let (mut records, mut tokens) = (BTreeSet::new(), BTreeSet::new());
    let mut taken = 0;
    for worker in workers {
        for (id, token) in worker.await.unwrap() {
            taken += 1;
            records.insert(id);
            tokens.insert(token);
        }
    }
    assert_eq!((taken, records.len(), tokens.len()), (200, 200, 200));
}
