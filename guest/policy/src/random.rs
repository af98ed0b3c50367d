//! Choices from random octets that the caller brings.

/// Eight random octets, for one choice. The same octets make the same choice everywhere.
pub type Octets = [u8; 8];

/// A number from `low` to `high`, both included; `low` if they are the wrong way round.
///
/// The octets are read as a fraction of 2⁶⁴, most significant first: all zero gives `low`, all
/// ones give `high`, `80 00 …` the middle. The bias is below one part in 2⁶⁴ of the range.
pub fn between(octets: Octets, low: u64, high: u64) -> u64 {
    let span = u128::from(high.saturating_sub(low)) + 1;
    let fraction = u128::from(u64::from_be_bytes(octets));
    // span is at most 2⁶⁴ and the fraction below it, so that the product fits; shifted, it is
    // below the span.
    low + ((fraction * span) >> 64) as u64
}
