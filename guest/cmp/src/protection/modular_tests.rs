//! Powers against the general arithmetic of crypto-bigint, which is another way to the same
//! number, and against numbers that can be worked out by hand.

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};

use super::{Modulus, Vec, vec};

/// Xorshift64 (Marsaglia 2003, 3): the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn octets(&mut self, length: usize) -> Vec<u8> {
        let mut octets = Vec::new();
        while octets.len() < length {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            octets.extend_from_slice(&self.0.to_be_bytes());
        }
        octets.truncate(length);
        octets
    }
}

fn expected(modulus: &[u8], base: &[u8], exponent: u64) -> Vec<u8> {
    let number = BoxedUint::from_be_slice_vartime(modulus);
    let bits = number.bits_precision();
    let params = BoxedMontyParams::new(Odd::new(number).unwrap());
    let base = BoxedUint::from_be_slice(base, bits).unwrap();
    let power = BoxedMontyForm::new(base, &params).pow(&BoxedUint::from(exponent));
    let octets = power.retrieve().to_be_bytes().to_vec();
    octets[octets.len() - modulus.len()..].to_vec()
}

#[test]
fn powers_are_those_of_another_arithmetic() {
    let mut numbers = Numbers(0x0123_4567_89ab_cdef);
    // Even and odd numbers of limbs, whole and broken turns of the loops, broken limbs.
    for length in [
        9, 16, 23, 24, 25, 64, 65, 72, 120, 129, 136, 256, 260, 384, 512, 1024,
    ] {
        for exponent in [3, 5, 17, 65537, (1 << 33) - 1] {
            for top in [0x01, 0x80, 0xff] {
                let mut modulus = numbers.octets(length);
                modulus[0] = top;
                modulus[length - 1] |= 1;
                let mut base = numbers.octets(length);
                base[0] = 0;
                let power = Modulus::new(&modulus).unwrap().power(&base, exponent);
                assert_eq!(
                    power,
                    Some(expected(&modulus, &base, exponent)),
                    "{length} {exponent}"
                );
            }
        }
    }
}

#[test]
fn carries_run_through_all_limbs() {
    // All ones, and all but none: the largest sums in every column.
    for length in [16, 24, 64, 72, 256, 384] {
        let mut sparse = vec![0; length];
        (sparse[0], sparse[length - 1]) = (0x80, 1);
        for modulus in [vec![0xff; length], sparse] {
            let mut below = modulus.clone();
            below[length - 1] -= 1;
            let modulus = Modulus::new(&modulus).unwrap();
            // n - 1 is -1, and stays so under odd powers; 0 and 1 stay as they are.
            for exponent in [3, 65537] {
                assert_eq!(modulus.power(&below, exponent).unwrap(), below);
                assert_eq!(modulus.power(&[0], exponent).unwrap(), vec![0; length]);
                let one = modulus.power(&[1], exponent).unwrap();
                assert_eq!((one[length - 1], one.iter().max()), (1, Some(&1)));
            }
        }
    }
}

#[test]
fn a_base_must_be_below_the_modulus() {
    let mut modulus = vec![0xc5; 256];
    let n = Modulus::new(&modulus).unwrap();
    assert_eq!(n.power(&modulus, 3), None);
    modulus[255] += 1;
    assert_eq!(n.power(&modulus, 3), None);
    assert_eq!(n.power(&[0xff; 256], 3), None);
    assert_eq!(n.power(&[1; 257], 3), None);
    modulus[255] -= 2;
    assert!(n.power(&modulus, 3).is_some());
}

#[test]
fn what_is_even_or_short_is_refused() {
    assert!(Modulus::new(&[0xc4; 256]).is_none());
    assert!(Modulus::new(&[0xc5; 8]).is_none());
    assert!(Modulus::new(&[]).is_none());
    let modulus = Modulus::new(&[0xc5; 256]).unwrap();
    assert_eq!(modulus.power(&[2], 2), None);
    assert_eq!(modulus.power(&[2], 0), None);
    assert_eq!(modulus.power(&[2], 1), None);
}

#[test]
fn the_length_is_that_of_the_number() {
    let modulus = |octets: &[u8]| {
        let modulus = Modulus::new(octets).unwrap();
        (modulus.bits(), modulus.octets())
    };
    assert_eq!(modulus(&[0xff; 256]), (2048, 256));
    let mut octets = vec![0xff; 257];
    octets[0] = 1;
    assert_eq!(modulus(&octets), (2049, 257));
}
