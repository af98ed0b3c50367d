//! What every store promises about records, their versions and their listing.

use super::{Store, envelope, put};
use crate::limits;
use crate::wit::storage::{Change, Entry, Envelope, Filter, Put, Removal, StorageError};

fn delete(id: &str, expected: u64) -> Change {
    Change::Delete(Removal {
        kind: "thing".to_owned(),
        id: id.to_owned(),
        expected,
    })
}

fn everything() -> Filter {
    Filter {
        kind: "thing".to_owned(),
        owner: None,
        account: None,
        state: None,
    }
}

async fn body(store: &Store, id: &str) -> Option<Vec<u8>> {
    let entry = store.get("thing", id).await.unwrap();
    entry.map(|entry| entry.body)
}

async fn ids(store: &Store, filter: Filter) -> Vec<String> {
    let page = store.list(filter, None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.entries.into_iter().map(|e| e.envelope.id).collect()
}

fn conflict(id: &str) -> StorageError {
    StorageError::Conflict(format!("thing {id}"))
}

pub(crate) async fn what_is_put_is_got(store: Store) {
    assert_eq!(store.get("thing", "a").await.unwrap(), None);
    let envelope = Envelope {
        kind: "thing".to_owned(),
        id: "Käse\u{0}🧀".to_owned(),
        owner: "o'wner".to_owned(),
        account: "account".to_owned(),
        state: "state".to_owned(),
        due_ms: Some(i64::MAX as u64),
        updated_ms: 1_700_000_000_000,
    };
    let change = Change::Put(Put {
        envelope: envelope.clone(),
        expected: None,
        body: vec![0, 255, 0],
    });
    let versions = store.commit(vec![change]).await.unwrap();
    let [version] = versions[..] else {
        panic!("{versions:?}")
    };
    assert_ne!(version, 0);
    let expected = Entry {
        envelope,
        version,
        body: vec![0, 255, 0],
        lease: None,
    };
    let got = store.get("thing", "Käse\u{0}🧀").await.unwrap();
    assert_eq!(got, Some(expected));
    assert_eq!(store.commit(Vec::new()).await.unwrap(), [0; 0]);
}

pub(crate) async fn the_expected_version_decides(store: Store) {
    let first = store.commit(vec![put("a", None, b"1")]).await.unwrap()[0];
    for wrong in [None, Some(0), Some(first + 1), Some(u64::MAX)] {
        let error = store.commit(vec![put("a", wrong, b"x")]).await;
        assert_eq!(error, Err(conflict("a")), "{wrong:?}");
    }
    let error = store.commit(vec![put("b", Some(first), b"x")]).await;
    assert_eq!(error, Err(conflict("b")));
    assert_eq!(body(&store, "a").await.unwrap(), b"1");

    let second = store.commit(vec![put("a", Some(first), b"2")]).await;
    let second = second.unwrap()[0];
    assert_eq!(body(&store, "a").await.unwrap(), b"2");
    for (id, wrong) in [("a", first), ("a", 0), ("b", second)] {
        let error = store.commit(vec![delete(id, wrong)]).await;
        assert_eq!(error, Err(conflict(id)));
    }
    let deleted = store.commit(vec![delete("a", second)]).await.unwrap();
    assert_eq!(deleted, [0]);
    assert_eq!(body(&store, "a").await, None);
}

pub(crate) async fn versions_grow_and_never_come_back(store: Store) {
    let mut last = store.commit(vec![put("a", None, b"")]).await.unwrap()[0];
    let stale = last;
    for _ in 0..3 {
        let next = store.commit(vec![put("a", Some(last), b"")]).await.unwrap()[0];
        assert!(next > last);
        last = next;
    }
    store.commit(vec![delete("a", last)]).await.unwrap();
    // Whoever still holds a version of the deleted record must not hit the new one.
    let reborn = store.commit(vec![put("a", None, b"")]).await.unwrap()[0];
    assert!(reborn > last);
    for held in [stale, last] {
        let error = store.commit(vec![put("a", Some(held), b"x")]).await;
        assert_eq!(error, Err(conflict("a")));
    }
}

pub(crate) async fn a_commit_is_all_or_nothing(store: Store) {
    let version = store.commit(vec![put("a", None, b"1")]).await.unwrap()[0];
    let changes = vec![
        put("a", Some(version), b"2"),
        put("b", None, b"2"),
        put("c", Some(99), b"2"),
    ];
    assert_eq!(store.commit(changes).await, Err(conflict("c")));
    assert_eq!(body(&store, "a").await.unwrap(), b"1");
    assert_eq!(body(&store, "b").await, None);
    // A version that was given out and then taken back is still good for nobody else.
    let changes = vec![put("b", None, b"3"), put("b", None, b"4")];
    assert_eq!(store.commit(changes).await, Err(conflict("b")));
    let changes = vec![put("b", None, b"5"), delete("a", version)];
    let versions = store.commit(changes).await.unwrap();
    assert!(versions[0] > version);
    assert_eq!(versions[1], 0);
    assert_eq!(ids(&store, everything()).await, ["b"]);
}

pub(crate) async fn kinds_are_apart(store: Store) {
    let other = Change::Put(Put {
        envelope: envelope("thing2", "a"),
        expected: None,
        body: b"other".to_vec(),
    });
    let changes = vec![put("a", None, b"one"), other];
    store.commit(changes).await.unwrap();
    assert_eq!(body(&store, "a").await.unwrap(), b"one");
    let entry = store.get("thing2", "a").await.unwrap().unwrap();
    assert_eq!(entry.body, b"other");
    assert_eq!(ids(&store, everything()).await, ["a"]);
}

pub(crate) async fn listing_filters_and_pages(store: Store) {
    // 12 records, more than one commit may need; ids out of order on purpose.
    let mut changes = Vec::new();
    for n in [7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 4, 6] {
        let mut envelope = envelope("thing", &format!("id{n:02}"));
        envelope.owner = format!("owner{}", n % 2);
        envelope.account = format!("account{}", n % 3);
        envelope.state = format!("state{}", n % 4);
        changes.push(Change::Put(Put {
            envelope,
            expected: None,
            body: Vec::new(),
        }));
    }
    store.commit(changes).await.unwrap();
    let all: Vec<String> = (0..12).map(|n| format!("id{n:02}")).collect();
    assert_eq!(ids(&store, everything()).await, all);

    let with = |owner: Option<&str>, account: Option<&str>, state: Option<&str>| Filter {
        kind: "thing".to_owned(),
        owner: owner.map(str::to_owned),
        account: account.map(str::to_owned),
        state: state.map(str::to_owned),
    };
    let found = ids(&store, with(Some("owner1"), None, None)).await;
    assert_eq!(found, ["id01", "id03", "id05", "id07", "id09", "id11"]);
    let found = ids(&store, with(None, Some("account0"), None)).await;
    assert_eq!(found, ["id00", "id03", "id06", "id09"]);
    let found = ids(&store, with(None, None, Some("state3"))).await;
    assert_eq!(found, ["id03", "id07", "id11"]);
    let found = ids(
        &store,
        with(Some("owner1"), Some("account0"), Some("state1")),
    )
    .await;
    assert_eq!(found, ["id09"]);
    let found = ids(&store, with(Some("owner"), None, None)).await;
    assert_eq!(found, [""; 0]);

    let mut cursor = None;
    let mut pages = Vec::new();
    loop {
        let page = store.list(everything(), cursor, 5).await.unwrap();
        pages.push(page.entries.len());
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, [5, 5, 2]);
    // A full last page is the last page.
    let page = store.list(everything(), None, 12).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (12, None));
    // A cursor need not be a record, it may have been deleted.
    let page = store.list(everything(), Some("id095".to_owned()), 12).await;
    let found: Vec<_> = page
        .unwrap()
        .entries
        .into_iter()
        .map(|e| e.envelope.id)
        .collect();
    assert_eq!(found, ["id10", "id11"]);
    let page = store.list(everything(), None, 0).await.unwrap();
    assert_eq!(page.entries, []);
}

pub(crate) async fn a_page_has_room_for_one_and_not_for_all(store: Store) {
    // 10 MiB in bodies of the largest size: more than a page of 8 MiB.
    let large = vec![7; limits::RECORD_BODY];
    for n in 0..10 {
        let change = put(&format!("{n}"), None, &large);
        store.commit(vec![change]).await.unwrap();
    }
    let page = store.list(everything(), None, 100).await.unwrap();
    assert_eq!(page.entries.len(), 8);
    assert_eq!(page.next.as_deref(), Some("7"));
    let page = store.list(everything(), page.next, 100).await.unwrap();
    assert_eq!((page.entries.len(), page.next), (2, None));
}

pub(crate) async fn too_much_is_refused(store: Store) {
    let change = put("a", None, &vec![0; limits::RECORD_BODY + 1]);
    let error = store.commit(vec![change]).await;
    assert_eq!(error, Err(StorageError::TooLarge(1_048_576)));
    let many = (0..=limits::CHANGES)
        .map(|n| put(&format!("{n}"), None, b""))
        .collect();
    let error = store.commit(many).await;
    assert!(matches!(error, Err(StorageError::Unavailable(_))));
    let mut odd = vec![envelope("thing", &"x".repeat(1025)), envelope("thing", "b")];
    odd[1].due_ms = Some(1 << 63);
    for envelope in odd {
        let change = Change::Put(Put {
            envelope,
            expected: None,
            body: Vec::new(),
        });
        let error = store.commit(vec![change]).await;
        assert!(matches!(error, Err(StorageError::Unavailable(_))));
    }
    assert_eq!(ids(&store, everything()).await, [""; 0]);
}

pub(crate) async fn the_longest_names_are_kept(store: Store) {
    // Nothing that an index could compress.
    let mut noise = 1u32;
    let mut name = || -> String {
        let mut letter = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'!' + (noise >> 24) as u8 % 90)
        };
        (0..limits::ENVELOPE_TEXT).map(|_| letter()).collect()
    };
    let envelope = Envelope {
        kind: name(),
        id: name(),
        owner: name(),
        account: name(),
        state: name(),
        due_ms: Some(1),
        updated_ms: 1,
    };
    let change = Change::Put(Put {
        envelope: envelope.clone(),
        expected: None,
        body: Vec::new(),
    });
    store.commit(vec![change]).await.unwrap();
    let mut filter = Filter {
        kind: envelope.kind.clone(),
        owner: Some(envelope.owner.clone()),
        account: Some(envelope.account.clone()),
        state: Some(envelope.state.clone()),
    };
    let page = store.list(filter.clone(), None, 10).await.unwrap();
    assert_eq!(page.entries.len(), 1);
    assert_eq!(page.entries[0].envelope, envelope);
    // A name that differs at its end only is another one.
    let mut other = envelope.owner;
    other.pop();
    other.push('~');
    filter.owner = Some(other);
    let page = store.list(filter, None, 10).await.unwrap();
    assert_eq!(page.entries, []);
}

pub(crate) async fn of_many_writers_one_wins_each_round(store: Store) {
    let mut version = store.commit(vec![put("a", None, b"0")]).await.unwrap()[0];
    for _ in 0..20 {
        let writers: Vec<_> = (0..8u8)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    let change = put("a", Some(version), &[n]);
                    (n, store.commit(vec![change]).await)
                })
            })
            .collect();
        let mut winners = Vec::new();
        for writer in writers {
            match writer.await.unwrap() {
                (n, Ok(versions)) => winners.push((n, versions[0])),
                (_, Err(error)) => assert_eq!(error, conflict("a")),
            }
        }
        let [(winner, next)] = winners[..] else {
            panic!("{winners:?}")
        };
        assert_eq!(body(&store, "a").await.unwrap(), [winner]);
        version = next;
    }
}

pub(crate) async fn commits_that_cross_do_not_hang(store: Store) {
    // Each writes the same records, half of them in the opposite order, some of them new.
    let ids: Vec<String> = (0..6).map(|n| format!("id{n}")).collect();
    let old = ids.iter().take(3).map(|id| put(id, None, b"0")).collect();
    store.commit(old).await.unwrap();
    for round in 1..=10u8 {
        let mut writers = Vec::new();
        for n in 0..8 {
            let (store, mut ids) = (store.clone(), ids.clone());
            if n % 2 == 1 {
                ids.reverse();
            }
            writers.push(tokio::spawn(async move {
                let mut changes = Vec::new();
                for id in &ids {
                    let found = store.get("thing", id).await.unwrap();
                    changes.push(put(id, found.map(|found| found.version), &[round, n]));
                }
                store.commit(changes).await
            }));
        }
        let mut written = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Ok(_) => written += 1,
                Err(StorageError::Conflict(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(written > 0, "the first one always comes through");
        let first = body(&store, &ids[0]).await;
        for id in &ids {
            assert_eq!(body(&store, id).await, first, "from one commit all of it");
        }
    }
}
