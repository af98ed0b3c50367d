//! Quality of service: thresholds, votes and who is let out, against the seed's rules.

use std::collections::BTreeMap;

use abide_policy::mistake::Check;
use abide_policy::qos::{
    Arrival, BufferPolicy, Candidate, Criticality, Decided, Promotion, PromotionPolicy,
    PromotionState, Qos, Supplier, Verdict,
};

const NOW: u64 = 1_800_000_000_000;

fn enforcing(buffer: Vec<BufferPolicy>) -> Qos {
    Qos {
        enabled: true,
        learning_mode: false,
        buffer,
        ..Qos::default()
    }
}

fn naive() -> Qos {
    enforcing(vec![BufferPolicy::Naive])
}

#[test]
fn a_threshold_of_one_hundred_is_passed_by_one_hundred_and_one() {
    let at = |active| naive().admit(&Arrival::default(), active, NOW);
    let hundred = at(100);
    assert_eq!(hundred.decided, Decided::Enqueued);
    assert_eq!(hundred.reason, "100 active orders are not above 100");
    // Nobody is asked.
    assert_eq!(hundred.votes, []);
    let more = at(101);
    assert_eq!(more.decided, Decided::Buffered);
    assert_eq!(
        more.reason,
        "101 active orders are more than 100; naive: everything is buffered while buffering is on"
    );
}

#[test]
fn the_kill_switch_decides_alone() {
    for enabled in [true, false] {
        let qos = Qos {
            supplier: Supplier::KillSwitch { enabled },
            ..naive()
        };
        let expected = if enabled {
            Decided::Buffered
        } else {
            Decided::Enqueued
        };
        for active in [0, 1_000_000] {
            let admission = qos.admit(&Arrival::default(), active, NOW);
            assert_eq!(admission.decided, expected);
        }
    }
}

#[test]
fn off_and_learning_buffer_nothing() {
    let off = Qos {
        enabled: false,
        ..naive()
    };
    let admission = off.admit(&Arrival::default(), 1000, NOW);
    assert_eq!(admission.would_be, Decided::Enqueued);
    let learning = Qos {
        learning_mode: true,
        ..naive()
    };
    let admission = learning.admit(&Arrival::default(), 1000, NOW);
    assert_eq!(admission.decided, Decided::Enqueued);
    assert_eq!(admission.would_be, Decided::Buffered);
    assert!(admission.learning);
    assert_eq!(admission.votes.len(), 1);
    assert!(Qos::default().learning_mode && !Qos::default().enabled);
}

#[test]
fn force_wins_then_one_vote_for_buffering_then_abstentions_enqueue() {
    let interactive = || BufferPolicy::Interactive {
        origins: vec!["deck".to_owned()],
    };
    let by_hand = Arrival {
        origin: "Deck",
        by_hand: true,
        ..Arrival::default()
    };
    let expiring = || BufferPolicy::Expiring {
        within_ms: 3_600_000,
    };
    let critical = || BufferPolicy::ByCriticality {
        least: Criticality::High,
    };
    let high = Arrival {
        criticality: Criticality::High,
        ..Arrival::default()
    };
    let decide = |buffer, arrival: &Arrival<'_>| enforcing(buffer).admit(arrival, 101, NOW).decided;
    use Decided::{Buffered, Enqueued};
    // Force, wherever it stands.
    assert_eq!(
        decide(vec![BufferPolicy::Naive, interactive()], &by_hand),
        Enqueued
    );
    assert_eq!(
        decide(vec![interactive(), BufferPolicy::Naive], &by_hand),
        Enqueued
    );
    // One for buffering against one for starting.
    assert_eq!(
        decide(vec![critical(), BufferPolicy::Naive], &high),
        Buffered
    );
    assert_eq!(decide(vec![critical()], &high), Enqueued);
    assert_eq!(decide(vec![critical()], &Arrival::default()), Buffered);
    // All abstain, or nobody is there.
    assert_eq!(
        decide(vec![interactive(), expiring()], &Arrival::default()),
        Enqueued
    );
    assert_eq!(decide(vec![], &Arrival::default()), Enqueued);
    let elsewhere = Arrival {
        origin: "api",
        ..by_hand
    };
    assert_eq!(
        decide(vec![interactive(), BufferPolicy::Naive], &elsewhere),
        Buffered
    );
}

#[test]
fn a_certificate_that_ends_soon_does_not_wait() {
    let qos = enforcing(vec![
        BufferPolicy::Expiring {
            within_ms: 3_600_000,
        },
        BufferPolicy::Naive,
    ]);
    let decide = |not_after_ms| {
        let arrival = Arrival {
            not_after_ms,
            ..Arrival::default()
        };
        qos.admit(&arrival, 101, NOW)
    };
    assert_eq!(decide(Some(NOW + 3_600_001)).decided, Decided::Buffered);
    assert_eq!(decide(None).decided, Decided::Buffered);
    let soon = decide(Some(NOW + 3_600_000));
    assert_eq!(soon.decided, Decided::Enqueued);
    assert_eq!(
        soon.reason,
        "101 active orders are more than 100; expiring, forced: its certificate ends in 1 h"
    );
    assert_eq!(decide(Some(0)).decided, Decided::Enqueued);
    assert!(soon.votes[0].force);
    assert_eq!(soon.votes[1].verdict, Verdict::Buffer);
}

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("order-{n:03}")).collect()
}

/// The ids of those chosen, in order.
fn promote<'a>(
    promotion: &Promotion,
    candidates: &'a [Candidate<'a>],
    active: u64,
) -> Vec<&'a str> {
    promotion
        .promote(
            PromotionState::default(),
            candidates,
            &BTreeMap::new(),
            active,
            NOW,
        )
        .1
        .chosen
        .into_iter()
        .map(|index| candidates[index].id)
        .collect()
}

fn with(policies: Vec<PromotionPolicy>) -> Promotion {
    Promotion {
        policies,
        ..Promotion::default()
    }
}

/// A hundred wait and one more comes with each look: they leave oldest first.
#[test]
fn the_oldest_leaves_first() {
    let ids = ids(200);
    let mut waiting: Vec<Candidate<'_>> = (0..100)
        .rev()
        .map(|n| Candidate {
            id: &ids[n],
            account: "prod",
            since_ms: NOW + n as u64,
        })
        .collect();
    for (look, next) in (100..200).enumerate() {
        let promoted = promote(&Promotion::default(), &waiting, 101);
        assert_eq!(promoted, [&ids[look]]);
        waiting.retain(|candidate| candidate.id != ids[look]);
        waiting.insert(
            look % waiting.len(),
            Candidate {
                id: &ids[next],
                account: "prod",
                since_ms: NOW + next as u64,
            },
        );
    }
}

#[test]
fn switched_off_it_releases_nobody() {
    let ids = ids(10);
    let waiting: Vec<Candidate<'_>> = ids
        .iter()
        .map(|id| Candidate {
            id,
            account: "prod",
            since_ms: NOW,
        })
        .collect();
    let off = Promotion {
        enabled: false,
        ..Promotion::default()
    };
    for promotion in [
        off,
        with(vec![]),
        with(vec![PromotionPolicy::Naive { size: 0 }]),
        with(vec![PromotionPolicy::FairShare]),
    ] {
        assert_eq!(promote(&promotion, &waiting, 0), [""; 0], "{promotion:?}");
    }
    // At the same age the id decides.
    let three = with(vec![PromotionPolicy::Naive { size: 3 }]);
    assert_eq!(
        promote(&three, &waiting, 0),
        ["order-000", "order-001", "order-002"]
    );
    let many = with(vec![PromotionPolicy::Naive { size: u32::MAX }]);
    assert_eq!(promote(&many, &waiting, 0).len(), 10);
    assert_eq!(promote(&many, &[], 0), [""; 0]);
}

#[test]
fn a_closed_loop_fills_up_and_waits_for_room() {
    let ids = ids(50);
    let waiting: Vec<Candidate<'_>> = ids
        .iter()
        .map(|id| Candidate {
            id,
            account: "prod",
            since_ms: NOW,
        })
        .collect();
    let promotion = with(vec![PromotionPolicy::ClosedLoop {
        threshold: 100,
        resume_at: 80,
    }]);
    let mut state = PromotionState::default();
    let mut chosen = Vec::new();
    for active in [95, 100, 99, 81, 80, 90, 100, 85, 79] {
        let (after, promoted) = promotion.promote(state, &waiting, &BTreeMap::new(), active, NOW);
        state = after;
        chosen.push(promoted.chosen.len());
    }
    assert_eq!(chosen, [5, 0, 0, 0, 20, 10, 0, 0, 21]);
}

#[test]
fn accounts_take_turns() {
    let waiting = [
        ("a1", "a", 1),
        ("a2", "a", 2),
        ("a3", "a", 3),
        ("b1", "b", 4),
        ("c1", "c", 5),
        ("b2", "b", 6),
    ]
    .map(|(id, account, since)| Candidate {
        id,
        account,
        since_ms: NOW + since,
    });
    let promotion = with(vec![
        PromotionPolicy::FairShare,
        PromotionPolicy::Naive { size: 5 },
    ]);
    let chosen = |active: &[(&'static str, u64)]| {
        let active = active.iter().copied().collect();
        let (_, promoted) = promotion.promote(PromotionState::default(), &waiting, &active, 0, NOW);
        promoted
            .chosen
            .into_iter()
            .map(|index| waiting[index].id)
            .collect::<Vec<_>>()
    };
    assert_eq!(chosen(&[]), ["a1", "b1", "c1", "a2", "b2"]);
    // a has two running, b one.
    assert_eq!(
        chosen(&[("a", 2), ("b", 1)]),
        ["c1", "b1", "a1", "b2", "a2"]
    );
}

#[test]
fn no_wait_is_endless() {
    let waiting =
        [("old", 7_200_000), ("older", 9_000_000), ("new", 10)].map(|(id, ago)| Candidate {
            id,
            account: "prod",
            since_ms: NOW - ago,
        });
    let promotion = |size| {
        with(vec![
            PromotionPolicy::LongestWait {
                most_ms: 7_200_000,
                size,
            },
            PromotionPolicy::ClosedLoop {
                threshold: 10,
                resume_at: 5,
            },
        ])
    };
    assert_eq!(promote(&promotion(5), &waiting, 10), ["older", "old"]);
    assert_eq!(promote(&promotion(1), &waiting, 10), ["older"]);
    // With room for two nobody is chosen twice.
    assert_eq!(promote(&promotion(1), &waiting, 8), ["older", "old"]);
}

#[test]
fn every_policy_says_why() {
    let waiting = [Candidate {
        id: "x",
        account: "prod",
        since_ms: NOW,
    }];
    let promotion = with(vec![
        PromotionPolicy::FairShare,
        PromotionPolicy::ClosedLoop {
            threshold: 3,
            resume_at: 1,
        },
        PromotionPolicy::Naive { size: 2 },
    ]);
    let (_, promoted) = promotion.promote(
        PromotionState::default(),
        &waiting,
        &BTreeMap::new(),
        1,
        NOW,
    );
    let said: Vec<_> = promoted
        .rulings
        .iter()
        .map(|ruling| (ruling.policy.as_str(), ruling.left, ruling.reason.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            ("fair-share", None, "1 accounts take turns"),
            ("closed-loop", Some(1), "1 active orders leave room for 2"),
            ("naive", Some(1), "at most 2 in one look"),
        ]
    );
}

#[test]
fn nothing_may_stay_buffered_for_ever() {
    let no_promoter = Promotion {
        enabled: false,
        ..Promotion::default()
    };
    let stuck = Qos {
        promotion: no_promoter.clone(),
        ..naive()
    };
    assert!(stuck.stuck(0).is_some());
    assert_eq!(stuck.mistakes()[0].path, "promotion.enabled");
    let abstaining = Qos {
        promotion: with(vec![PromotionPolicy::FairShare]),
        ..naive()
    };
    assert!(abstaining.stuck(0).is_some());
    // Nothing new is buffered in these, but what is there has to get out.
    let off = Qos {
        enabled: false,
        ..stuck.clone()
    };
    let learning = Qos {
        learning_mode: true,
        ..stuck.clone()
    };
    let switched_off = Qos {
        supplier: Supplier::KillSwitch { enabled: false },
        ..stuck.clone()
    };
    let only_enqueues = Qos {
        buffer: vec![BufferPolicy::Expiring { within_ms: 1 }],
        ..stuck
    };
    for qos in [off, learning, switched_off, only_enqueues] {
        assert_eq!(qos.stuck(0), None, "{qos:?}");
        assert!(qos.stuck(1).is_some(), "{qos:?}");
    }
    assert_eq!(naive().stuck(1000), None);
    assert_eq!(Qos::default().mistakes(), []);
}

#[test]
fn mistakes_have_their_path() {
    let wrong = Qos {
        buffer: vec![
            BufferPolicy::Naive,
            BufferPolicy::Interactive { origins: vec![] },
            BufferPolicy::Expiring { within_ms: 0 },
        ],
        promotion: Promotion {
            promote_interval_ms: 0,
            policies: vec![PromotionPolicy::ClosedLoop {
                threshold: 5,
                resume_at: 5,
            }],
            ..Promotion::default()
        },
        ..Qos::default()
    };
    let paths: Vec<String> = wrong.mistakes().into_iter().map(|m| m.path).collect();
    assert_eq!(
        paths,
        [
            "buffer[1].interactive.origins",
            "buffer[2].expiring.within_ms",
            "promotion.promote_interval_ms",
            "promotion.policies[0].closed-loop.resume_at",
        ]
    );
}
