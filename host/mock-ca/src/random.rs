//! Random octets of the operating system.

use anyhow::anyhow;

/// `N` octets that nobody can guess.
pub(crate) fn octets<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut octets = [0; N];
    aws_lc_rs::rand::fill(&mut octets)
        .map_err(|_| anyhow!("this machine gives no random octets"))?;
    Ok(octets)
}
