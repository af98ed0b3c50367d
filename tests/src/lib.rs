//! What the tests share: keys and certificates of another implementation, and the
//! programs of all as processes that end with their test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

pub mod abide;
pub mod bouncy_castle;
pub mod canned;
pub mod gateway;
pub mod openssl;
pub mod pki;
pub mod postgres;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod seed;
pub mod service;
pub mod weather;

/// Threads of [`each`].
const AT_A_TIME: usize = 6;

/// Does something for each of many things, on a few threads: most of the time is waited for a
/// peer or for a clock.
///
/// # Panics
///
/// When it panics for one of them; the others are done first.
pub fn each<T: Sync>(things: &[T], deed: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..things.len().min(AT_A_TIME) {
            scope.spawn(|| {
                while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
                    deed(thing);
                }
            });
        }
    });
}

/// The first certificate or key of a PEM text, as DER.
pub fn pem_to_der(pem: &str) -> Vec<u8> {
    let body: String = pem
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"))
        .skip(1)
        .take_while(|line| !line.starts_with("-----END"))
        .collect();
    base64(&body)
}

fn base64(text: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0u32;
    let mut count = 0;
    let mut out = Vec::new();
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        bits = (bits << 6) | alphabet.find(c).expect("base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    out
}
