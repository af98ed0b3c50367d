//! When a certificate is renewed.

use abide_policy::mistake::Check;
use abide_policy::renewal::{Renewal, Validity, Window};
use abide_policy::time::{DAY_MS, HOUR_MS};

const FROM: u64 = 1_800_000_000_000;
const LOWEST: [u8; 8] = [0; 8];
const MIDDLE: [u8; 8] = [0x80, 0, 0, 0, 0, 0, 0, 0];
const HIGHEST: [u8; 8] = [0xff; 8];

fn lasting(ms: u64) -> Validity {
    Validity {
        not_before_ms: FROM,
        not_after_ms: FROM + ms,
    }
}

#[test]
fn two_thirds_of_the_lifetime() {
    for random in [LOWEST, HIGHEST] {
        let at = |validity| Renewal::default().at(validity, None, random);
        assert_eq!(at(lasting(90 * DAY_MS)), FROM + 60 * DAY_MS);
        assert_eq!(at(lasting(3_600_000)), FROM + 2_400_000);
        assert_eq!(at(lasting(100)), FROM + 66);
        assert_eq!(at(lasting(0)), FROM);
    }
    let ever = Validity {
        not_before_ms: 0,
        not_after_ms: u64::MAX,
    };
    // Two thirds of 2⁶⁴ − 1, which three divides.
    assert_eq!(
        Renewal::default().at(ever, None, HIGHEST),
        12_297_829_382_473_034_410
    );
    let backwards = Validity {
        not_before_ms: FROM,
        not_after_ms: 0,
    };
    assert_eq!(Renewal::default().at(backwards, None, HIGHEST), FROM);
}

#[test]
fn a_time_before_its_end_if_it_lives_longer() {
    let renewal = Renewal {
        before_ms: Some(10 * DAY_MS),
        ..Renewal::default()
    };
    let days = |lifetime| (renewal.at(lasting(lifetime * DAY_MS), None, LOWEST) - FROM) / DAY_MS;
    assert_eq!(days(90), 80);
    assert_eq!(days(11), 1);
    // As long as the lifetime or longer would be at once, and again at once.
    assert_eq!(days(10), 6);
    assert_eq!(days(3), 2);
}

#[test]
fn a_spread_makes_it_earlier_only() {
    let renewal = Renewal {
        spread_percent: 10,
        ..Renewal::default()
    };
    let hours = |random| (renewal.at(lasting(30 * HOUR_MS), None, random) - FROM) / HOUR_MS;
    assert_eq!(hours(LOWEST), 17);
    assert_eq!(hours(HIGHEST), 20);
}

#[test]
fn the_window_of_a_ca_decides() {
    let at = |start, end, random| {
        let window = Window {
            start_ms: FROM + start * DAY_MS,
            end_ms: FROM + end * DAY_MS,
        };
        (Renewal::default().at(lasting(90 * DAY_MS), Some(window), random) - FROM) / HOUR_MS
    };
    assert_eq!(at(50, 52, LOWEST), 1200);
    assert_eq!(at(50, 52, MIDDLE), 1224);
    assert_eq!(at(50, 52, HIGHEST), 1248);
    // At once, for a certificate that will be revoked: the window lies in the past.
    assert_eq!(at(0, 0, HIGHEST), 0);
    // What lies beyond the end is cut off, and nonsense is not followed.
    assert_eq!(at(80, 200, HIGHEST), 2160);
    assert_eq!(at(52, 50, MIDDLE), 1440);
    assert_eq!(at(90, 91, MIDDLE), 1440);
}

#[test]
fn a_fraction_is_below_one() {
    for after in [(0, 3), (3, 3), (4, 3), (1, 0)] {
        let renewal = Renewal {
            after,
            ..Renewal::default()
        };
        assert!(!renewal.mistakes().is_empty(), "{after:?}");
        // Whatever it says, the answer lies within the lifetime.
        let at = renewal.at(lasting(1000), None, HIGHEST);
        assert!((FROM..=FROM + 1000).contains(&at));
    }
    assert_eq!(Renewal::default().mistakes(), []);
}
