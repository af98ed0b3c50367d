//! Orders that nobody works on: which they are, and what brings them back.

use abide_policy::mistake::Check;
use abide_policy::order::OrderState;
use abide_policy::zombie::{
    Found, Health, Message, Position, Refusal, Request, Suspect, TaskKind, ZombieCheck, in_range,
};

const NOW: u64 = 1_800_000_000_000;
const CUTOFF: u64 = 600_000;

fn suspect(state: OrderState) -> Suspect {
    Suspect {
        state,
        last_progress_ms: NOW - CUTOFF,
        has_task: false,
        leased_until_ms: None,
        is_awaited: false,
        is_promoted: true,
    }
}

fn judge(order: &Suspect) -> Health {
    ZombieCheck::default().judge(order, NOW)
}

/// States in the order of the table: without and with a stored time, without and with a promoter.
#[test]
fn which_states_need_a_task() {
    let needs = |state: OrderState| {
        [(false, true), (true, true), (false, false)]
            .map(|(awaited, promoted)| state.needs_task(awaited, promoted))
    };
    assert_eq!(needs(OrderState::NotStarted), [true, true, true]);
    assert_eq!(needs(OrderState::Buffered), [false, false, true]);
    assert_eq!(needs(OrderState::Running), [true, true, true]);
    assert_eq!(needs(OrderState::Active), [false, true, false]);
    assert_eq!(needs(OrderState::Error), [false, true, false]);
    assert_eq!(needs(OrderState::Canceled), [false, false, false]);
}

#[test]
fn running_and_not_started_without_a_task_are_zombies() {
    for state in [OrderState::Running, OrderState::NotStarted] {
        let order = suspect(state);
        assert_eq!(judge(&order), Health::Zombie(CUTOFF));
        let younger = Suspect {
            last_progress_ms: NOW - CUTOFF + 1,
            ..order
        };
        assert_eq!(judge(&younger), Health::Young(CUTOFF - 1));
        let from_the_future = Suspect {
            last_progress_ms: NOW + 1,
            ..order
        };
        assert_eq!(judge(&from_the_future), Health::Young(0));
    }
}

#[test]
fn a_task_or_a_live_lease_is_life_however_quiet() {
    let quiet = Suspect {
        last_progress_ms: 0,
        ..suspect(OrderState::Running)
    };
    let with_task = Suspect {
        has_task: true,
        ..quiet
    };
    assert_eq!(judge(&with_task), Health::HasTask);
    let held = Suspect {
        leased_until_ms: Some(NOW + 1),
        ..quiet
    };
    assert_eq!(judge(&held), Health::Held(NOW + 1));
    let no_longer_held = Suspect {
        leased_until_ms: Some(NOW),
        ..quiet
    };
    assert_eq!(judge(&no_longer_held), Health::Zombie(NOW));
}

#[test]
fn buffered_orders_are_zombies_without_a_promoter() {
    let order = suspect(OrderState::Buffered);
    assert_eq!(judge(&order), Health::AtRest);
    let forgotten = Suspect {
        is_promoted: false,
        ..order
    };
    assert_eq!(judge(&forgotten), Health::Zombie(CUTOFF));
}

#[test]
fn a_renewal_without_a_task_would_never_come() {
    for state in [OrderState::Active, OrderState::Error] {
        assert_eq!(judge(&suspect(state)), Health::AtRest);
        let awaited = Suspect {
            is_awaited: true,
            ..suspect(state)
        };
        assert_eq!(judge(&awaited), Health::Zombie(CUTOFF));
    }
    assert_eq!(judge(&suspect(OrderState::Canceled)), Health::AtRest);
}

fn hydrate(order: &Suspect, positions: &[Position<'_>], request: Request) -> Vec<Option<Message>> {
    let hydration = ZombieCheck::default().hydrate(order, positions, request, NOW);
    hydration
        .actions
        .iter()
        .map(|action| action.message)
        .collect()
}

#[test]
fn each_position_has_its_task_and_none_enrolls_anew() {
    let transaction_id = "94f5e46c9ebee4da366bc43149756391";
    let order = suspect(OrderState::Running);
    for (position, kind, retry_at_ms) in [
        (Position::NotBegun, TaskKind::Start, NOW),
        (
            Position::Enrolling { transaction_id },
            TaskKind::Resume,
            NOW,
        ),
        (
            Position::Polling {
                transaction_id,
                poll_at_ms: NOW + 5000,
            },
            TaskKind::Poll,
            NOW + 5000,
        ),
        (
            Position::Polling {
                transaction_id,
                poll_at_ms: NOW - 5000,
            },
            TaskKind::Poll,
            NOW,
        ),
        (
            Position::Confirming { transaction_id },
            TaskKind::Confirm,
            NOW,
        ),
        (Position::Ended { transaction_id }, TaskKind::Check, NOW),
        (
            Position::Awaiting { at_ms: NOW + 9 },
            TaskKind::Start,
            NOW + 9,
        ),
    ] {
        let expected = Message { kind, retry_at_ms };
        let made = hydrate(&order, &[position], Request::default());
        assert_eq!(made, [Some(expected)], "{position:?}");
    }
    let polling = Position::Polling {
        transaction_id,
        poll_at_ms: NOW,
    };
    let hydration = ZombieCheck::default().hydrate(&order, &[polling], Request::default(), NOW);
    let context = &hydration.actions[0].context;
    assert_eq!(context[0].1, transaction_id);
    assert_eq!(context[1].1, "2027-01-15T08:00:00Z");
}

#[test]
fn a_dry_run_is_the_default_and_changes_nothing() {
    let order = suspect(OrderState::NotStarted);
    let ask = |request| ZombieCheck::default().hydrate(&order, &[Position::NotBegun], request, NOW);
    let dry = ask(Request::default());
    assert!(dry.dry_run && dry.can_apply && !dry.applies());
    let wet = ask(Request {
        dry_run: false,
        force: false,
    });
    assert!(wet.applies());
    assert_eq!(wet.actions, dry.actions);
    // The second time it has a task.
    let again = Suspect {
        has_task: true,
        ..order
    };
    let twice = ZombieCheck::default().hydrate(
        &again,
        &[Position::NotBegun],
        Request {
            dry_run: false,
            force: false,
        },
        NOW,
    );
    assert_eq!(twice.refused, Some(Refusal::Alive));
    assert!(!twice.applies() && twice.actions.is_empty());
}

#[test]
fn one_part_that_cannot_be_read_leaves_the_whole_order_alone() {
    let order = suspect(OrderState::Running);
    let wet = Request {
        dry_run: false,
        force: false,
    };
    let parts = [Position::NotBegun, Position::Unreadable];
    let hydration = ZombieCheck::default().hydrate(&order, &parts, wet, NOW);
    assert_eq!(hydration.actions.len(), 2);
    assert!(!hydration.can_apply && !hydration.applies());
    assert!(hydration.actions[1].description.contains("cannot be read"));
    // Nothing to do is nothing that can be applied.
    assert!(
        !ZombieCheck::default()
            .hydrate(&order, &[], wet, NOW)
            .can_apply
    );
}

#[test]
fn a_live_order_is_refused_unless_forced() {
    let alive = Suspect {
        leased_until_ms: Some(NOW + 1000),
        ..suspect(OrderState::Running)
    };
    let ask = |order: &Suspect, force| {
        let request = Request {
            dry_run: false,
            force,
        };
        ZombieCheck::default().hydrate(order, &[Position::NotBegun], request, NOW)
    };
    assert_eq!(ask(&alive, false).refused, Some(Refusal::Alive));
    assert!(ask(&alive, true).applies());
    let young = Suspect {
        last_progress_ms: NOW,
        ..suspect(OrderState::Running)
    };
    assert_eq!(ask(&young, false).refused, Some(Refusal::Alive));
    // What needs nothing gets nothing, whoever insists.
    let canceled = suspect(OrderState::Canceled);
    assert_eq!(ask(&canceled, true).refused, Some(Refusal::AtRest));
}

#[test]
fn ranges_include_both_ends() {
    let hits = [99, 100, 150, 200, 201].map(|made| in_range(made, 100, 200));
    assert_eq!(hits, [false, true, true, true, false]);
    assert!(!in_range(150, 200, 100));
}

#[test]
fn words_of_states() {
    for state in OrderState::ALL {
        assert_eq!(OrderState::parse(state.as_str()), Some(state));
        let (after, changed) = state.cancel();
        assert_eq!(after, OrderState::Canceled);
        assert_eq!(changed, state != OrderState::Canceled);
    }
    assert_eq!(OrderState::NotStarted.to_string(), "NOT_STARTED");
    assert_eq!(OrderState::parse("not_started"), None);
}

#[test]
fn the_log_line() {
    let found = Found {
        id: "01CS",
        account: "prod",
        application: "shop",
        state: OrderState::Running,
        age_ms: 660_000,
    };
    assert_eq!(
        found.to_string(),
        "Found zombie id=01CS account=prod application=shop state=RUNNING: no task and no \
         progress for 11 min"
    );
    assert!(ZombieCheck::default().enabled);
    assert_eq!(ZombieCheck::default().mistakes(), []);
}
