//! Accounts and their workers: Java's hash, both placements against values computed by a program
//! of its own in Python, and never two owners while lists change.

use abide_policy::mistake::Check;
use abide_policy::shard::{
    Epoch, Heartbeat, Move, Placement, ShardError, Sharding, Standing, View, java_hash,
};

const NOW: u64 = 1_800_000_000_000;

fn workers(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("worker-{n:02}")).collect()
}

fn accounts() -> Vec<String> {
    (0..10_000).map(|n| format!("account-{n}")).collect()
}

#[test]
fn hashes_as_java_does() {
    for (text, hash) in [
        ("prod", 3_449_687),
        ("test", 3_556_498),
        ("tenant-a", -1_306_694_658),
        ("polygenelubricants", i32::MIN),
        ("", 0),
        ("é", 233),
        // A surrogate pair: 55357 × 31 + 56832.
        ("😀", 1_772_899),
        ("AaAa", 2_031_744),
        ("BBBB", 2_031_744),
    ] {
        assert_eq!(java_hash(text), hash, "{text}");
    }
}

#[test]
fn modulo_is_the_remainder_without_its_sign() {
    // abs(−2147483648 % 7) is 2, abs(−1306694658 % 10) is 8.
    let owner = |account, count| {
        let workers = workers(count);
        Placement::Modulo
            .owner(account, &workers)
            .map(str::to_owned)
    };
    assert_eq!(owner("polygenelubricants", 7).as_deref(), Some("worker-02"));
    assert_eq!(owner("tenant-a", 10).as_deref(), Some("worker-08"));
    assert_eq!(owner("prod", 3).as_deref(), Some("worker-02"));
    assert_eq!(owner("", 3).as_deref(), Some("worker-00"));
    assert_eq!(owner("polygenelubricants", 1).as_deref(), Some("worker-00"));
    assert_eq!(owner("prod", 0), None);
    // The list is sorted, whatever its order, and a worker counts once.
    let shuffled = ["c", "a", "b", "a"];
    assert_eq!(Placement::Modulo.owner("prod", &shuffled), Some("c"));
    // By UTF-16 units a surrogate pair comes before U+FF21; by code points it comes after.
    let wide = ["\u{ff21}", "😀"];
    assert_eq!(Placement::Modulo.owner("", &wide), Some("😀"));
}

#[test]
fn rendezvous_by_weight() {
    let three = workers(3);
    for (account, owner) in [
        ("prod", "worker-00"),
        ("test", "worker-01"),
        ("tenant-a", "worker-02"),
    ] {
        assert_eq!(Placement::Rendezvous.owner(account, &three), Some(owner));
        let explained = Placement::Rendezvous.explain(account, &three);
        assert_eq!(explained[0].0, owner);
        assert!(explained[0].1 > explained[1].1 && explained[1].1 > explained[2].1);
    }
    let prod = Placement::Rendezvous.explain("prod", &three);
    assert_eq!(
        prod,
        [
            ("worker-00", 0xc34a_69aa_c300_d3b2),
            ("worker-02", 0xaed7_2a81_3db8_e6ef),
            ("worker-01", 0x34a0_f5ea_b624_7c2b),
        ]
    );
    let none: [&str; 0] = [];
    assert_eq!(Placement::Rendezvous.owner("prod", &none), None);
    assert_eq!(
        Placement::Modulo.explain("prod", &three),
        [("worker-02", 2), ("worker-00", 0), ("worker-01", 1)]
    );
}

/// Ten thousand accounts, from ten workers to eleven.
#[test]
fn what_a_resize_moves() {
    let (accounts, ten, eleven) = (accounts(), workers(10), workers(11));
    let accounts: Vec<&str> = accounts.iter().map(String::as_str).collect();
    let joined = Placement::Rendezvous.moves(&accounts, &ten, &eleven);
    assert_eq!(joined.len(), 884);
    assert!(joined.iter().all(|moved| moved.to == Some("worker-10")));
    let left = Placement::Rendezvous.moves(&accounts, &eleven, &ten);
    assert_eq!(left.len(), 884);
    assert!(left.iter().all(|moved| moved.from == Some("worker-10")));
    assert_eq!(
        Placement::Modulo.moves(&accounts, &ten, &eleven).len(),
        9083
    );
    let none: [&str; 0] = [];
    assert_eq!(
        Placement::Modulo.moves(&["prod"], &none, &ten[..1]),
        [Move {
            account: "prod",
            from: None,
            to: Some("worker-00")
        }]
    );
}

#[test]
fn whoever_is_silent_for_the_ttl_is_gone() {
    let sharding = Sharding::default();
    let beat = |worker, ago| Heartbeat {
        worker,
        at_ms: NOW - ago,
    };
    let beats = [
        beat("c", 0),
        beat("a", 59_999),
        beat("b", 60_000),
        Heartbeat {
            worker: "d",
            at_ms: NOW + 5,
        },
    ];
    let live = sharding.live(&beats, NOW);
    assert_eq!(live, ["a", "c", "d"]);
    let current = Epoch {
        number: 7,
        workers: vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
    };
    let next = sharding.next_epoch(&current, &live).expect("it changed");
    assert_eq!(next.number, 8);
    assert_eq!(next.workers, ["a", "c", "d"]);
    assert_eq!(sharding.next_epoch(&next, &live), None);
}

fn epoch(number: u64, workers: &[&str]) -> Epoch {
    Epoch {
        number,
        workers: workers.iter().map(|&worker| worker.to_owned()).collect(),
    }
}

/// `prod` is worker-00's among three, and worker-02's among the other two (see its weights).
#[test]
fn an_account_that_changes_hands() {
    let policy = Sharding::default();
    let three = ["worker-00", "worker-01", "worker-02"];
    let standing = |view: &View, own, now| view.standing(&policy, own, "prod", now);
    // Fresh workers know nothing about others: they wait one and a half heartbeats.
    let fresh = View::first(epoch(1, &three[1..]), NOW, NOW);
    assert_eq!(
        standing(&fresh, "worker-02", NOW),
        Ok(Standing::Waiting(NOW + 45_000))
    );
    assert_eq!(standing(&fresh, "worker-01", NOW), Ok(Standing::NotOwner));
    let settled = fresh
        .read(&policy, epoch(1, &three[1..]), NOW + 30_000, NOW + 30_000)
        .read(&policy, epoch(1, &three[1..]), NOW + 60_000, NOW + 60_000);
    assert_eq!(
        standing(&settled, "worker-02", NOW + 60_000),
        Ok(Standing::Owner)
    );
    // It acts until its view is stale, and no longer.
    assert_eq!(
        standing(&settled, "worker-02", NOW + 104_999),
        Ok(Standing::Owner)
    );
    assert_eq!(
        standing(&settled, "worker-02", NOW + 105_000),
        Err(ShardError::StaleView)
    );
    // worker-00 joins: the owner gives up when it reads, and the new one waits.
    let joined = epoch(2, &three);
    let old = settled
        .clone()
        .read(&policy, joined.clone(), NOW + 90_000, NOW + 90_000);
    assert_eq!(
        standing(&old, "worker-02", NOW + 90_000),
        Ok(Standing::NotOwner)
    );
    let new = View::first(joined, NOW + 70_000, NOW + 70_000);
    assert_eq!(
        standing(&new, "worker-00", NOW + 90_000),
        Ok(Standing::Waiting(NOW + 115_000))
    );
    // worker-00 is given up: the next owner has nobody to wait for.
    let after = old.read(&policy, epoch(3, &three[1..]), NOW + 200_000, NOW + 200_000);
    assert_eq!(
        standing(&after, "worker-02", NOW + 200_000),
        Ok(Standing::Owner)
    );
    // A list in between that it never saw could have had any owner.
    let jumped = settled.read(&policy, epoch(9, &three[1..]), NOW + 70_000, NOW + 70_000);
    assert_eq!(
        standing(&jumped, "worker-02", NOW + 70_000),
        Ok(Standing::Waiting(NOW + 115_000))
    );
    // An old list changes nothing.
    let same = jumped
        .clone()
        .read(&policy, epoch(8, &three), NOW + 71_000, NOW + 71_000);
    assert_eq!(same, jumped);
}

#[test]
fn states_that_are_reported() {
    let policy = Sharding::default();
    let empty = View::first(epoch(1, &[]), NOW, NOW);
    assert_eq!(
        empty.standing(&policy, "a", "prod", NOW),
        Err(ShardError::NoWorkers)
    );
    let others = View::first(epoch(1, &["b"]), NOW, NOW);
    assert_eq!(
        others.standing(&policy, "a", "prod", NOW),
        Err(ShardError::UnknownWorker)
    );
    assert_eq!(
        others.standing(&policy, "b", "prod", NOW - 45_000),
        Err(ShardError::StaleView)
    );
}

/// A worker of the simulation, with a clock of its own.
struct Worker {
    id: String,
    clock_ahead: i64,
    view: Option<View>,
    next_beat: u64,
    /// Crashed, or cut off from the store, until this time.
    away_until: u64,
    crashed: bool,
}

impl Worker {
    fn clock(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.clock_ahead)
    }
}

/// Four workers whose clocks differ by up to hours, that crash, come back and lose sight of the
/// store. At no time do two of them own an account; and when all is quiet one of them does.
#[test]
fn never_two_owners() {
    let policy = Sharding::default();
    for (placement, seed) in [Placement::Rendezvous, Placement::Modulo]
        .into_iter()
        .flat_map(|placement| (0..60).map(move |seed| (placement, seed)))
    {
        let policy = Sharding {
            placement,
            ..policy
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut workers: Vec<Worker> = (0..4)
            .map(|n| Worker {
                id: format!("worker-{n}"),
                clock_ahead: random.i64(-7_200_000..7_200_000),
                view: None,
                next_beat: NOW + random.u64(0..60_000),
                away_until: 0,
                crashed: false,
            })
            .collect();
        let accounts = ["prod", "test", "tenant-a", "polygenelubricants", "x"];
        let mut beats: Vec<(String, u64)> = Vec::new();
        let mut shared = Epoch::default();
        let end = NOW + 3_600_000;
        let quiet = end - 400_000;
        let mut owned = 0;
        let mut now = NOW;
        while now < end {
            now += random.u64(1..3000);
            for worker in &mut workers {
                if now < quiet && now >= worker.away_until && random.u32(0..400) == 0 {
                    worker.away_until = now + random.u64(1000..200_000);
                    worker.crashed = random.bool();
                    if worker.crashed {
                        worker.view = None;
                    }
                }
                if now >= worker.away_until {
                    worker.crashed = false;
                }
                if now < worker.away_until || now < worker.next_beat {
                    continue;
                }
                worker.next_beat = now + 28_000 + random.u64(0..4000);
                // A slow store: the list is read some time after the heartbeat began.
                let started = worker.clock(now.saturating_sub(random.u64(0..2000)));
                beats.retain(|(id, _)| *id != worker.id);
                beats.push((worker.id.clone(), now));
                let known: Vec<Heartbeat<'_>> = beats
                    .iter()
                    .map(|(worker, at_ms)| Heartbeat {
                        worker,
                        at_ms: *at_ms,
                    })
                    .collect();
                let live = policy.live(&known, now);
                if let Some(next) = policy.next_epoch(&shared, &live) {
                    shared = next;
                }
                let clock = worker.clock(now);
                worker.view = Some(match worker.view.take() {
                    Some(view) => view.read(&policy, shared.clone(), started, clock),
                    None => View::first(shared.clone(), started, clock),
                });
            }
            for account in accounts {
                let owners: Vec<&str> = workers
                    .iter()
                    .filter(|worker| !worker.crashed)
                    .filter(|worker| {
                        worker.view.as_ref().is_some_and(|view| {
                            view.standing(&policy, &worker.id, account, worker.clock(now))
                                == Ok(Standing::Owner)
                        })
                    })
                    .map(|worker| worker.id.as_str())
                    .collect();
                assert!(owners.len() <= 1, "seed {seed}: {owners:?} own {account}");
                owned += owners.len();
                if now > end - 5000 {
                    assert_eq!(owners.len(), 1, "seed {seed}: nobody owns {account}");
                }
            }
        }
        assert!(owned > 0);
    }
}

/// All four settled, one crashes: whatever it owned has another owner after TTL and heartbeat.
#[test]
fn a_crash_leaves_nothing_ownerless_for_long() {
    let policy = Sharding::default();
    let all: Vec<String> = (0..4).map(|n| format!("worker-{n}")).collect();
    let accounts = accounts();
    let mut shared = Epoch {
        number: 1,
        workers: all.clone(),
    };
    // The others beat 0, 10 and 20 s after the crash and every 30 s from then on; the one that
    // crashed did so right after its own heartbeat.
    let crash = NOW + 600_000;
    let mut views: Vec<View> = (0..3)
        .map(|_| View::first(shared.clone(), NOW, NOW).read(&policy, shared.clone(), crash, crash))
        .collect();
    for step in 0..9 {
        let at = crash + step * 10_000;
        let survivor = (step % 3) as usize;
        let beats: Vec<Heartbeat<'_>> = (0..4)
            .map(|n| Heartbeat {
                worker: &all[n],
                at_ms: if n == 3 { crash } else { at },
            })
            .collect();
        if let Some(next) = policy.next_epoch(&shared, &policy.live(&beats, at)) {
            shared = next;
        }
        let view = views[survivor].clone();
        views[survivor] = view.read(&policy, shared.clone(), at, at);
    }
    let latest = crash + policy.ttl_ms + policy.heartbeat_ms;
    for account in &accounts {
        let owners = (0..3)
            .filter(|n| {
                views[*n].standing(&policy, &all[*n], account, latest) == Ok(Standing::Owner)
            })
            .count();
        assert_eq!(owners, 1, "{account}");
    }
}

#[test]
fn a_view_ends_before_its_worker_is_given_up() {
    assert_eq!(Sharding::default().mistakes(), []);
    let tight = Sharding {
        heartbeat_ms: 40_000,
        ttl_ms: 60_000,
        ..Sharding::default()
    };
    let text = tight.mistakes()[0].to_string();
    assert_eq!(
        text,
        "ttl_ms: 60000 is below one and a half heartbeat_ms: give 60001 or more"
    );
    let wrong = Epoch {
        number: 0,
        workers: vec![String::new()],
    };
    assert_eq!(wrong.mistakes()[0].path, "workers[0]");
}
