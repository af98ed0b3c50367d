//! The component: WIT types to and from the crates, effects to imports, and nothing
//! else. The feature `enroller`, `verifier` or `gate` chooses the world.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

#[cfg(not(any(feature = "enroller", feature = "verifier", feature = "gate")))]
compile_error!("choose a world: --no-default-features --features enroller, verifier or gate");

mod bindings {
    #[cfg(feature = "enroller")]
    wit_bindgen::generate!({ path: "../../wit", world: "enroller", generate_all });
    #[cfg(all(feature = "verifier", not(feature = "enroller")))]
    wit_bindgen::generate!({ path: "../../wit", world: "verifier", generate_all });
    #[cfg(not(any(feature = "enroller", feature = "verifier")))]
    wit_bindgen::generate!({ path: "../../wit", world: "gate", generate_all });
}

mod admission;
mod backoff;
#[cfg(feature = "enroller")]
mod host;
#[cfg(any(feature = "enroller", feature = "verifier"))]
mod keys;
#[cfg(not(feature = "enroller"))]
mod message;
#[cfg(feature = "enroller")]
mod orders;
mod placement;
mod policy;
#[cfg(feature = "enroller")]
mod schedule;
#[cfg(feature = "enroller")]
mod transactions;
#[cfg(all(feature = "verifier", not(feature = "enroller")))]
#[path = "verifier/keys.rs"]
mod verifier;
#[cfg(not(any(feature = "enroller", feature = "verifier")))]
#[path = "verifier/alone.rs"]
mod verifier;
#[cfg(feature = "enroller")]
mod zombies;

/// Implements the world.
struct Component;

bindings::export!(Component with_types_in bindings);

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// Traps: the host drops the instance, makes a new one, and goes on from the store.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
