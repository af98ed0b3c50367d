//! Powers modulo an odd number, all of them public.
//!
//! Signatures are verified with numbers that everybody may know, so nothing here takes the same
//! time for all of them. Numbers are limbs of 64 bits, the lowest first. Products are reduced as
//! Montgomery found (1985): with R = 2^64 to the power of the modulus' limbs, what is added is the
//! multiple of the modulus that clears the lower half, instead of subtracting one that clears the
//! upper half, and the result is the product divided by R.
//!
//! A sandbox has its price in each turn of a loop: there it looks whether its time is over. That
//! is why the innermost loops take eight limbs in a turn, and two rows of the reduction at once.

use alloc::vec;
use alloc::vec::Vec;

use crypto_bigint::{BoxedUint, NonZero};

/// Octets of a limb.
const LIMB: usize = 8;

/// Limbs in a turn of the innermost loops: with more, they no longer fit the registers.
const TURN: usize = 8;

/// An odd modulus of two limbs at least.
pub(super) struct Modulus {
    limbs: Vec<u64>,
    /// The same, for divisions.
    number: NonZero<BoxedUint>,
    /// What the lowest limb times it is -1, modulo 2^64.
    negative_inverse: u64,
}

impl Modulus {
    /// From octets, the highest first and not zero; or nothing if it is even or too short.
    pub(super) fn new(octets: &[u8]) -> Option<Self> {
        let limbs = limbs(octets, octets.len().div_ceil(LIMB));
        if limbs.len() < 2 || limbs[0].is_multiple_of(2) {
            return None;
        }
        Some(Self {
            negative_inverse: inverse(limbs[0]).wrapping_neg(),
            number: NonZero::new(BoxedUint::from_be_slice_vartime(octets)).into_option()?,
            limbs,
        })
    }

    /// Its length in bits.
    pub(super) fn bits(&self) -> usize {
        let highest = self.limbs.iter().rposition(|limb| *limb != 0);
        highest.map_or(0, |at| {
            64 * at + 64 - self.limbs[at].leading_zeros() as usize
        })
    }

    /// Its length in octets.
    pub(super) fn octets(&self) -> usize {
        self.bits().div_ceil(8)
    }

    /// `base` to the power of the odd `exponent`, in as many octets as the modulus has; or nothing
    /// if the base is not below the modulus, or the exponent is even or 1.
    pub(super) fn power(&self, base: &[u8], exponent: u64) -> Option<Vec<u8>> {
        let length = self.limbs.len();
        if base.len() > length * LIMB || exponent.is_multiple_of(2) || exponent == 1 {
            return None;
        }
        let plain = limbs(base, length);
        if !is_below(&plain, &self.limbs) {
            return None;
        }
        let factor = self.times_r(base);
        let mut power = factor.clone();
        let mut wide = vec![0; 2 * length];
        // Whoever multiplies numbers that were multiplied with R gets one that is so again. At the
        // last bit, which is set, the other factor is without R, and so is the result.
        for bit in (0..exponent.ilog2()).rev() {
            square(&mut wide, &power);
            self.reduce(&mut wide, &mut power);
            if exponent >> bit & 1 == 1 {
                let factor = if bit == 0 { &plain } else { &factor };
                multiply(&mut wide, &power, factor);
                self.reduce(&mut wide, &mut power);
            }
        }
        let octets = power.iter().rev().flat_map(|limb| limb.to_be_bytes());
        Some(octets.skip(length * LIMB - self.octets()).collect())
    }

    /// A number times R.
    fn times_r(&self, base: &[u8]) -> Vec<u64> {
        let length = self.limbs.len();
        let mut octets = base.to_vec();
        octets.resize(base.len() + length * LIMB, 0);
        let rest = BoxedUint::from_be_slice_vartime(&octets).rem_vartime(&self.number);
        let mut limbs = rest.as_words().to_vec();
        limbs.resize(length, 0);
        limbs
    }

    /// Divides `wide` by R. It is below R times the modulus, so that the result, with one limb
    /// more, is below twice the modulus before the last step.
    fn reduce(&self, wide: &mut [u64], result: &mut [u64]) {
        let modulus = &self.limbs[..];
        let length = modulus.len();
        let mut over = false;
        let mut at = 0;
        while at + 2 <= length {
            let first = wide[at].wrapping_mul(self.negative_inverse);
            let (_, carry) = modulus[0].carrying_mul_add(first, wide[at], 0);
            let (next, _) = modulus[1].carrying_mul_add(first, wide[at + 1], carry);
            let second = next.wrapping_mul(self.negative_inverse);
            let carries = add_two_rows(&mut wide[at..at + length], modulus, first, second);
            let above = &mut wide[at + length..][..2];
            (above[0], over) = above[0].carrying_add(carries.0, over);
            (above[1], over) = above[1].carrying_add(carries.1, over);
            at += 2;
        }
        if at < length {
            let last = wide[at].wrapping_mul(self.negative_inverse);
            let carry = add_row(&mut wide[at..at + length], modulus, last);
            (wide[at + length], over) = wide[at + length].carrying_add(carry, over);
        }
        result.copy_from_slice(&wide[length..]);
        if over || !is_below(result, modulus) {
            let mut borrow = false;
            for (limb, modulus) in result.iter_mut().zip(modulus) {
                (*limb, borrow) = limb.borrowing_sub(*modulus, borrow);
            }
        }
    }
}

/// Limbs of octets, the highest first, that fit into so many.
fn limbs(octets: &[u8], length: usize) -> Vec<u64> {
    let mut limbs: Vec<u64> = octets
        .rchunks(LIMB)
        .map(|limb| {
            limb.iter()
                .fold(0, |sum, octet| sum << 8 | u64::from(*octet))
        })
        .collect();
    limbs.resize(length, 0);
    limbs
}

/// The inverse of an odd number modulo 2^64. Three bits of it are those of the number, and each
/// step of Newton's method doubles them.
fn inverse(odd: u64) -> u64 {
    let step = |inverse: u64| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    (0..5).fold(odd, |inverse, _| step(inverse))
}

/// Whether one number is less than another of as many limbs.
fn is_below(one: &[u64], other: &[u64]) -> bool {
    one.iter().rev().lt(other.iter().rev())
}

/// The product of two numbers of as many limbs.
fn multiply(wide: &mut [u64], one: &[u64], other: &[u64]) {
    let length = one.len();
    wide.fill(0);
    for (at, limb) in other.iter().enumerate() {
        wide[at + length] = add_row(&mut wide[at..at + length], one, *limb);
    }
}

/// The product of a number with itself: the products of different limbs once, doubled, and those
/// of each with itself.
fn square(wide: &mut [u64], number: &[u64]) {
    let length = number.len();
    wide.fill(0);
    for (at, limb) in number.iter().enumerate() {
        let row = &mut wide[2 * at + 1..at + length];
        wide[at + length] = add_row(row, &number[at + 1..], *limb);
    }
    let (pairs, _) = wide.as_chunks_mut::<2>();
    let (mut shifted, mut carry) = (0, 0);
    for ([low, high], limb) in pairs.iter_mut().zip(number) {
        let doubled = [*low << 1 | shifted, *high << 1 | *low >> 63];
        shifted = *high >> 63;
        (*low, carry) = limb.carrying_mul_add(*limb, doubled[0], carry);
        let (sum, over) = doubled[1].overflowing_add(carry);
        (*high, carry) = (sum, over.into());
    }
}

/// Adds `number` times `limb` to `sum` of as many limbs, and gives the limb above.
fn add_row(sum: &mut [u64], number: &[u64], limb: u64) -> u64 {
    let mut carry = 0;
    let mut add = |sum: &mut u64, number: u64| {
        (*sum, carry) = number.carrying_mul_add(limb, *sum, carry);
    };
    let (sums, last_sums) = sum.as_chunks_mut::<TURN>();
    let (numbers, last_numbers) = number.as_chunks::<TURN>();
    for (sums, numbers) in sums.iter_mut().zip(numbers) {
        for at in 0..TURN {
            add(&mut sums[at], numbers[at]);
        }
    }
    for (sum, number) in last_sums.iter_mut().zip(last_numbers) {
        add(sum, *number);
    }
    carry
}

/// Adds `number` times the number of two limbs to `sum` of as many limbs as `number`, and gives
/// the two limbs above.
fn add_two_rows(sum: &mut [u64], number: &[u64], low: u64, high: u64) -> (u64, u64) {
    let (mut carry, mut high_carry, mut before) = (0, 0, 0);
    let mut add = |sum: &mut u64, number: u64| {
        let row;
        (row, carry) = number.carrying_mul_add(low, *sum, carry);
        (*sum, high_carry) = high.carrying_mul_add(before, row, high_carry);
        before = number;
    };
    let (sums, last_sums) = sum.as_chunks_mut::<TURN>();
    let (numbers, last_numbers) = number.as_chunks::<TURN>();
    for (sums, numbers) in sums.iter_mut().zip(numbers) {
        for at in 0..TURN {
            add(&mut sums[at], numbers[at]);
        }
    }
    for (sum, number) in last_sums.iter_mut().zip(last_numbers) {
        add(sum, *number);
    }
    high.carrying_mul_add(before, carry, high_carry)
}

#[cfg(test)]
#[path = "modular_tests.rs"]
mod tests;
