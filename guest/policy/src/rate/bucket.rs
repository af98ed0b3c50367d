//! How many requests fit: the two algorithms, and their state as a few octets.

use alloc::vec::Vec;
use core::fmt;

use crate::limits::{MAX_CAPACITY, MAX_RATE_SECONDS};
use crate::time::SECOND_MS;

/// How requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Algorithm {
    /// A window opens with the first request and lasts for the span; it admits the capacity.
    /// Around its end, almost twice the capacity can pass within one span.
    Window,
    /// The capacity is a number of cells. A request takes free ones and each is free again one
    /// span later: the generic cell rate algorithm with one cell per unit of capacity instead of
    /// one for all. Never more than the capacity passes within any one span, and an idle
    /// principal may use all of it at once.
    ///
    /// The times of the cells are kept in sixteenths of a span, rounded up, so that the state is
    /// small: a cell is free at most one sixteenth of a span later than it could be.
    Gcra,
}

/// How many requests are allowed in which span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    /// How they are counted.
    pub algorithm: Algorithm,
    /// How many.
    pub capacity: u32,
    /// In which span, in milliseconds.
    pub rate_ms: u64,
}

/// What was used of a limit, as it is stored. No bucket is a full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bucket {
    /// Of [`Algorithm::Window`].
    Window {
        /// When it opened, in milliseconds since the epoch.
        opened_ms: u64,
        /// What was used since.
        used: u32,
    },
    /// Of [`Algorithm::Gcra`].
    Cells {
        /// Milliseconds in a slot.
        width_ms: u64,
        /// The newest slot, counted from the epoch.
        newest: u64,
        /// Cells taken in the newest slot, in the one before it, and so on.
        taken: [u32; LIVE],
    },
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Whether there was room.
    pub admitted: bool,
    /// The room that is left.
    pub remaining: u32,
    /// When the bucket is full again, in milliseconds since the epoch, after now.
    pub reset_ms: u64,
    /// When there will be room, if there was none.
    pub retry_at_ms: Option<u64>,
}

/// Octets that are no bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadableBucket;

/// Slots in a span.
const SLOTS: u64 = 16;

/// Slots that still count: those of a span and the one that is under way. A cell taken at the
/// end of a slot must not be free before a whole span has passed.
const LIVE: usize = SLOTS as usize + 1;

impl Bucket {
    /// Takes `cost` if there is room, and nothing if there is none.
    ///
    /// A cost of zero counts as one. A cost above the capacity needs the whole of it, or it could
    /// never be met. A bucket made under another limit is carried over, with what it holds.
    pub fn take(bucket: Option<Self>, limit: Limit, cost: u32, now_ms: u64) -> (Self, Taken) {
        let limit = limit.bounded();
        let cost = cost.max(1).min(limit.capacity.max(1));
        match limit.algorithm {
            Algorithm::Window => take_window(bucket, limit, cost, now_ms),
            Algorithm::Gcra => take_cells(bucket, limit, cost, now_ms),
        }
    }

    /// When nothing of it counts any longer and it can be forgotten, in milliseconds since the
    /// epoch, under the span it was made for.
    pub fn forget_at(&self, rate_ms: u64) -> u64 {
        match self {
            Self::Window { opened_ms, .. } => opened_ms.saturating_add(rate_ms),
            Self::Cells {
                width_ms, newest, ..
            } => free_at(*newest, *width_ms),
        }
    }

    /// The bucket in a few octets: a tag, then numbers in groups of seven bits, least significant
    /// first, with the top bit set on all but the last.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(32);
        match self {
            Self::Window { opened_ms, used } => {
                octets.push(TAG_WINDOW);
                push_number(&mut octets, *opened_ms);
                push_number(&mut octets, (*used).into());
            }
            Self::Cells {
                width_ms,
                newest,
                taken,
            } => {
                octets.push(TAG_CELLS);
                push_number(&mut octets, *width_ms);
                push_number(&mut octets, *newest);
                for count in taken {
                    push_number(&mut octets, (*count).into());
                }
            }
        }
        octets
    }

    /// Reads what [`Bucket::encode`] wrote.
    pub fn decode(octets: &[u8]) -> Result<Self, UnreadableBucket> {
        let (tag, mut rest) = octets.split_first().ok_or(UnreadableBucket)?;
        let bucket = match *tag {
            TAG_WINDOW => Self::Window {
                opened_ms: pull_number(&mut rest)?,
                used: pull_count(&mut rest)?,
            },
            TAG_CELLS => {
                let width_ms = pull_number(&mut rest)?;
                let newest = pull_number(&mut rest)?;
                let mut taken = [0; LIVE];
                for count in &mut taken {
                    *count = pull_count(&mut rest)?;
                }
                if width_ms == 0 {
                    return Err(UnreadableBucket);
                }
                Self::Cells {
                    width_ms,
                    newest,
                    taken,
                }
            }
            _ => return Err(UnreadableBucket),
        };
        if rest.is_empty() {
            Ok(bucket)
        } else {
            Err(UnreadableBucket)
        }
    }
}

impl Limit {
    /// The limit within the bounds of the arithmetic, whatever the data says.
    fn bounded(self) -> Self {
        let longest = u64::from(MAX_RATE_SECONDS) * SECOND_MS;
        Self {
            capacity: self.capacity.min(MAX_CAPACITY),
            rate_ms: self.rate_ms.clamp(1, longest),
            ..self
        }
    }

    fn width_ms(&self) -> u64 {
        self.rate_ms.div_ceil(SLOTS)
    }
}

fn take_window(bucket: Option<Bucket>, limit: Limit, cost: u32, now_ms: u64) -> (Bucket, Taken) {
    let (opened_ms, used) = match bucket {
        Some(Bucket::Window { opened_ms, used }) => (opened_ms, used),
        Some(cells @ Bucket::Cells { .. }) => {
            let (_, taken) = live_cells(Some(cells), limit, now_ms);
            (now_ms, total(&taken).min(u64::from(u32::MAX)) as u32)
        }
        None => (now_ms, 0),
    };
    // A window from a future that this clock cannot have seen is not believed.
    let is_open = opened_ms.saturating_add(limit.rate_ms) > now_ms
        && opened_ms <= now_ms.saturating_add(limit.rate_ms);
    let (opened_ms, used) = if is_open {
        (opened_ms, used)
    } else {
        (now_ms, 0)
    };
    let left = limit.capacity.saturating_sub(used);
    let admitted = cost <= left;
    // The cost is at most what is left.
    let used = if admitted { used + cost } else { used };
    let reset_ms = opened_ms
        .saturating_add(limit.rate_ms)
        .max(now_ms.saturating_add(1));
    let taken = Taken {
        admitted,
        remaining: limit.capacity.saturating_sub(used),
        reset_ms,
        retry_at_ms: (!admitted).then_some(reset_ms),
    };
    (Bucket::Window { opened_ms, used }, taken)
}

fn take_cells(bucket: Option<Bucket>, limit: Limit, cost: u32, now_ms: u64) -> (Bucket, Taken) {
    let width_ms = limit.width_ms();
    let (newest, mut taken) = live_cells(bucket, limit, now_ms);
    let used = total(&taken);
    let left = u64::from(limit.capacity).saturating_sub(used);
    let admitted = u64::from(cost) <= left;
    let after_now = now_ms.saturating_add(1);
    let mut retry_at_ms = None;
    if admitted {
        taken[0] = taken[0].saturating_add(cost);
    } else {
        // The oldest cells are free first.
        let mut needed = used + u64::from(cost) - u64::from(limit.capacity);
        for (age, count) in taken.iter().enumerate().rev() {
            needed = needed.saturating_sub((*count).into());
            if needed == 0 {
                let slot = newest.saturating_sub(age as u64);
                retry_at_ms = Some(free_at(slot, width_ms));
                break;
            }
        }
        // Without any capacity there never is room.
        let at = retry_at_ms.unwrap_or(now_ms.saturating_add(limit.rate_ms));
        retry_at_ms = Some(at.max(after_now));
    }
    let youngest = taken.iter().position(|count| *count > 0);
    let reset_ms = youngest.map_or(now_ms.saturating_add(limit.rate_ms), |age| {
        free_at(newest.saturating_sub(age as u64), width_ms)
    });
    let left = u64::from(limit.capacity).saturating_sub(total(&taken));
    let bucket = Bucket::Cells {
        width_ms,
        newest,
        taken,
    };
    let taken = Taken {
        admitted,
        // At most the capacity, which is a u32.
        remaining: left as u32,
        reset_ms: reset_ms.max(after_now),
        retry_at_ms,
    };
    (bucket, taken)
}

/// The cells that are not free yet, with the slot of now as the newest.
///
/// A clock that was set back by less than a span stands still until it has caught up, and cells
/// from further in the future are not believed.
fn live_cells(bucket: Option<Bucket>, limit: Limit, now_ms: u64) -> (u64, [u32; LIVE]) {
    let width_ms = limit.width_ms();
    let current = now_ms / width_ms;
    let mut live = [0; LIVE];
    match bucket {
        Some(Bucket::Cells {
            width_ms: made_for,
            newest,
            taken,
        }) if made_for == width_ms => {
            if newest > current {
                let stands_still = newest - current <= SLOTS;
                return if stands_still {
                    (newest, taken)
                } else {
                    (current, live)
                };
            }
            let passed = usize::try_from(current - newest).unwrap_or(LIVE).min(LIVE);
            live[passed..].copy_from_slice(&taken[..LIVE - passed]);
        }
        Some(Bucket::Cells {
            width_ms: made_for,
            newest,
            taken,
        }) => {
            let made_for = made_for.max(1);
            for (age, count) in taken.into_iter().enumerate() {
                let slot = newest.saturating_sub(age as u64);
                // As late as they can have been taken, but not later than now.
                let end_ms = slot.saturating_add(1).saturating_mul(made_for) - 1;
                let age = current - (end_ms / width_ms).min(current);
                if let Some(place) = usize::try_from(age).ok().and_then(|age| live.get_mut(age)) {
                    *place = place.saturating_add(count);
                }
            }
        }
        Some(Bucket::Window { opened_ms, used }) => {
            let ends = opened_ms.saturating_add(limit.rate_ms);
            if ends > now_ms && opened_ms <= now_ms {
                live[0] = used;
            }
        }
        None => {}
    }
    (current, live)
}

fn total(taken: &[u32; LIVE]) -> u64 {
    taken.iter().map(|count| u64::from(*count)).sum()
}

/// When a cell taken in a slot is free: a whole span after the slot's end, at the start of a
/// slot.
fn free_at(slot: u64, width_ms: u64) -> u64 {
    slot.saturating_add(LIVE as u64).saturating_mul(width_ms)
}

const TAG_WINDOW: u8 = 1;
const TAG_CELLS: u8 = 2;

fn push_number(octets: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        octets.push(number as u8 | 0x80);
        number >>= 7;
    }
    octets.push(number as u8);
}

fn pull_number(rest: &mut &[u8]) -> Result<u64, UnreadableBucket> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (octet, tail) = rest.split_first().ok_or(UnreadableBucket)?;
        *rest = tail;
        let bits = u64::from(octet & 0x7f);
        let shifted = bits << shift;
        if shifted >> shift != bits {
            return Err(UnreadableBucket);
        }
        number |= shifted;
        if octet & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(UnreadableBucket)
}

/// A count, which no capacity exceeds; the sum of a bucket's counts cannot overflow then.
fn pull_count(rest: &mut &[u8]) -> Result<u32, UnreadableBucket> {
    let number = pull_number(rest)?;
    u32::try_from(number)
        .ok()
        .filter(|count| *count <= MAX_CAPACITY)
        .ok_or(UnreadableBucket)
}

impl fmt::Display for UnreadableBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the store holds no bucket under this key: it is learnt from only until the next \
             request replaces it"
        )
    }
}

impl core::error::Error for UnreadableBucket {}
