//! What the tests share: keys and certificates of another implementation, and the
//! programs of both as processes that end with their test.

pub mod abide;
pub mod bouncy_castle;
pub mod canned;
pub mod openssl;
pub mod pki;
pub mod process;
pub mod proxy;

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
