//! Period, batches, leases and dead letters of the scheduler, against arithmetic by hand.

use abide_policy::mistake::Check;
use abide_policy::schedule::{Claim, Death, Fate, Fenced, Lease, Look, Scheduler, TaskState};

const NOW: u64 = 1_800_000_000_000;
const LOWEST: [u8; 8] = [0; 8];
const MIDDLE: [u8; 8] = [0x80, 0, 0, 0, 0, 0, 0, 0];
const HIGHEST: [u8; 8] = [0xff; 8];

fn scheduler() -> Scheduler {
    Scheduler::default()
}

fn claim(task: TaskState, now: u64) -> (TaskState, Lease) {
    match scheduler().claim(task, now) {
        (task, Claim::Yours(lease)) => (task, lease),
        (_, other) => panic!("{other:?}"),
    }
}

#[test]
fn the_period_is_dithered_on_both_sides() {
    let look = |random| scheduler().next_look(0, 100, None, NOW, random);
    assert_eq!(look(LOWEST), Look::At(NOW + 12_000));
    assert_eq!(look(MIDDLE), Look::At(NOW + 15_000));
    assert_eq!(look(HIGHEST), Look::At(NOW + 18_000));
}

#[test]
fn it_looks_early_when_something_is_due_early() {
    let look = |due| scheduler().next_look(3, 100, Some(due), NOW, MIDDLE);
    assert_eq!(look(NOW + 4000), Look::At(NOW + 4000));
    assert_eq!(look(NOW + 15_001), Look::At(NOW + 15_000));
    assert_eq!(look(u64::MAX), Look::At(NOW + 15_000));
    // Due, and yet it was not claimed: no busy loop.
    assert_eq!(look(NOW), Look::At(NOW + 15_000));
    assert_eq!(look(0), Look::At(NOW + 15_000));
}

#[test]
fn a_full_batch_is_followed_by_the_next() {
    let look = |claimed, asked| scheduler().next_look(claimed, asked, None, NOW, MIDDLE);
    assert_eq!(look(100, 100), Look::AtOnce);
    assert_eq!(look(99, 100), Look::At(NOW + 15_000));
    // No place was free.
    assert_eq!(look(0, 0), Look::At(NOW + 15_000));
    assert_eq!(scheduler().ask(250), 100);
    assert_eq!(scheduler().ask(7), 7);
    assert_eq!(scheduler().ask(0), 0);
    // 5 000 due tasks take fifty batches, and no period between them.
    let mut due = 5000_u32;
    let mut looks = 0;
    loop {
        let claimed = scheduler().ask(u32::MAX).min(due);
        due -= claimed;
        looks += 1;
        if scheduler().next_look(claimed, 100, None, NOW, LOWEST) != Look::AtOnce {
            break;
        }
    }
    assert_eq!((due, looks), (0, 51));
}

#[test]
fn a_lease_keeps_others_away_until_it_runs_out() {
    let (task, lease) = claim(TaskState::at(NOW), NOW);
    assert_eq!((lease.token, lease.until_ms), (1, NOW + 60_000));
    let again = |now| scheduler().claim(task, now).1;
    assert_eq!(again(NOW), Claim::Held(NOW + 60_000));
    assert_eq!(again(NOW + 59_999), Claim::Held(NOW + 60_000));
    let next = Lease {
        token: 2,
        until_ms: NOW + 120_000,
    };
    assert_eq!(again(NOW + 60_000), Claim::Yours(next));
    // A worker whose clock is behind by almost a lease still respects it.
    assert_eq!(again(NOW - 50_000), Claim::Held(NOW + 60_000));
}

#[test]
fn whoever_slept_through_its_lease_is_fenced_out() {
    let (task, first) = claim(TaskState::at(NOW), NOW);
    let (task, second) = claim(task, NOW + 60_000);
    let fenced = Fenced {
        given: first.token,
        held: Some(second.token),
    };
    assert_eq!(task.check(first.token), Err(fenced));
    assert_eq!(scheduler().renew(task, first.token, NOW), Err(fenced));
    assert_eq!(scheduler().release(task, first.token), Err(fenced));
    assert_eq!(
        scheduler().failed(task, first.token, NOW, LOWEST),
        Err(fenced)
    );
    assert_eq!(task.check(second.token), Ok(()));
    assert_eq!(task.check(second.token + 1).unwrap_err().given, 3);
    let text = fenced.to_string();
    assert!(
        text.contains("token 2") && text.contains("token 1"),
        "{text}"
    );
}

#[test]
fn a_lease_can_be_renewed_and_handed_back() {
    let (task, lease) = claim(TaskState::at(NOW), NOW);
    let task = scheduler()
        .renew(task, lease.token, NOW + 30_000)
        .expect("its holder");
    assert_eq!(
        scheduler().claim(task, NOW + 60_000).1,
        Claim::Held(NOW + 90_000)
    );
    let released = scheduler().release(task, lease.token).expect("its holder");
    // It costs nothing to stop in good order, and the old token is of no use any more.
    assert_eq!(released.retry_count, 0);
    assert!(released.check(lease.token).is_err());
    let (_, next) = claim(released, NOW + 30_001);
    assert_eq!(next.token, 2);
    // It ran out, but nobody came: the work is not lost.
    assert!(
        scheduler()
            .renew(task, lease.token, NOW + 1_000_000)
            .is_ok()
    );
}

#[test]
fn a_clock_set_back_does_not_hold_a_task_for_ever() {
    let task = TaskState {
        lease: Some(Lease {
            token: 7,
            until_ms: NOW + 120_001,
        }),
        last_token: 7,
        ..TaskState::default()
    };
    let (after, lease) = claim(task, NOW);
    assert_eq!(lease.token, 8);
    assert!(after.check(7).is_err());
    assert_eq!(
        scheduler().claim(task, NOW + 1).1,
        Claim::Held(NOW + 120_001)
    );
}

#[test]
fn nothing_is_claimed_before_its_time() {
    let task = TaskState::at(NOW);
    assert_eq!(scheduler().claim(task, NOW - 1).1, Claim::NotDue(NOW));
    assert_eq!(claim(task, NOW).1.token, 1);
}

#[test]
fn failures_count_and_end_in_a_dead_letter() {
    let three = Scheduler {
        retries: 3,
        ..scheduler()
    };
    let mut task = TaskState::at(NOW);
    let mut now = NOW;
    let mut waits = Vec::new();
    let last = loop {
        let (claimed, Claim::Yours(lease)) = three.claim(task, now) else {
            panic!("not claimed");
        };
        let (failed, fate) = three
            .failed(claimed, lease.token, now, MIDDLE)
            .expect("its holder");
        task = failed;
        waits.push(task.retry_at_ms - now);
        if fate != Fate::Again {
            break fate;
        }
        now = task.retry_at_ms;
    };
    // Jitter never falls below the base: the middle of 15 to 18 s.
    assert_eq!(waits, [16_500, 30_000, 60_000, 120_000]);
    assert_eq!(last, Fate::Dead(Death::Failed(4)));
    let replayed = three.replay(task, now);
    assert_eq!((replayed.retry_count, replayed.retry_at_ms), (0, now));
    let (_, Claim::Yours(lease)) = three.claim(replayed, now) else {
        panic!("not claimed");
    };
    assert_eq!(lease.token, 5);
}

/// A task that kills its worker each time, and never reports a failure.
#[test]
fn a_task_whose_worker_never_comes_back_dies_too() {
    let mut task = TaskState::at(NOW);
    let mut now = NOW;
    let mut claims = 0;
    loop {
        let (after, answer) = scheduler().claim(task, now);
        match answer {
            Claim::Yours(_) => claims += 1,
            Claim::Dead(death) => {
                assert_eq!(death, Death::WorkerLost(11));
                break;
            }
            other => panic!("{other:?}"),
        }
        task = after;
        now += 60_000;
    }
    assert_eq!(claims, 11);
}

#[test]
fn the_next_task_has_a_clean_count_and_greater_tokens() {
    let (task, lease) = claim(
        TaskState {
            retry_count: 7,
            last_token: 41,
            ..TaskState::at(NOW)
        },
        NOW,
    );
    assert!(task.followed_by(41, NOW).is_err());
    let next = task.followed_by(lease.token, NOW + 5).expect("its holder");
    assert_eq!((next.retry_count, next.lease), (0, None));
    assert_eq!(claim(next, NOW + 5).1.token, 43);
}

#[test]
fn tokens_do_not_wrap() {
    let task = TaskState {
        last_token: u64::MAX,
        ..TaskState::default()
    };
    assert_eq!(
        scheduler().claim(task, NOW).1,
        Claim::Dead(Death::TokensUsedUp)
    );
    for now in [0, u64::MAX] {
        scheduler().claim(TaskState::default(), now);
        scheduler().next_look(0, 1, Some(u64::MAX), now, HIGHEST);
    }
}

/// Four workers with one list, some of which stop without a word or sleep. Each write that is
/// accepted is that of the newest token, and every task is done once.
#[test]
fn several_workers_do_everything_once() {
    for seed in 0..50 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut tasks: Vec<Option<TaskState>> = (0..40).map(|n| Some(TaskState::at(n))).collect();
        let mut done = vec![0; tasks.len()];
        // What each worker believes to hold.
        let mut holds: Vec<Vec<(usize, u64)>> = vec![Vec::new(); 4];
        let mut now = NOW;
        while tasks.iter().any(Option::is_some) {
            now += random.u64(0..40_000);
            let worker = random.usize(0..4);
            for (index, token) in std::mem::take(&mut holds[worker]) {
                // It sleeps on, dies or finishes.
                match random.u8(0..4) {
                    0 => holds[worker].push((index, token)),
                    1 => {}
                    _ => {
                        if let Some(task) = tasks[index]
                            && task.check(token).is_ok()
                        {
                            assert_eq!(task.last_token, token);
                            done[index] += 1;
                            tasks[index] = None;
                        }
                    }
                }
            }
            for (index, slot) in tasks.iter_mut().enumerate() {
                let Some(task) = *slot else { continue };
                let (after, answer) = Scheduler {
                    retries: 1000,
                    ..scheduler()
                }
                .claim(task, now);
                *slot = Some(after);
                if let Claim::Yours(lease) = answer {
                    assert!(lease.token > task.last_token, "seed {seed}");
                    holds[worker].push((index, lease.token));
                }
            }
        }
        assert_eq!(done, vec![1; 40], "seed {seed}");
    }
}

#[test]
fn mistakes_are_named() {
    let wrong = Scheduler {
        schedule_period_seconds: 0,
        dither_percent: 91,
        retry_lock_timeout_seconds: 86_401,
        batch: 0,
        retries: 0,
        ..scheduler()
    };
    let paths: Vec<String> = wrong.mistakes().into_iter().map(|m| m.path).collect();
    assert_eq!(
        paths,
        [
            "schedule_period_seconds",
            "dither_percent",
            "retry_lock_timeout_seconds",
            "batch",
            "retries"
        ]
    );
    assert_eq!(scheduler().mistakes(), []);
}
