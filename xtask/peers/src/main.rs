//! Prints each OpenSSL that is to be built, as its version, a tab, and the folder of its sources.

fn main() {
    for (version, folder) in [
        (openssl_3_5::version(), openssl_3_5::source_dir()),
        (openssl_4_0::version(), openssl_4_0::source_dir()),
    ] {
        // The crate's own version and, after the plus sign, the one of what is in it.
        let version = version.rsplit('+').next().unwrap_or(version);
        println!("{version}\t{}", folder.display());
    }
}
