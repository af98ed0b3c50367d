//! The component: WIT types to and from the crates, effects to imports, and nothing
//! else. The feature `enroller` or `gate` chooses the world.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

#[cfg(not(any(feature = "enroller", feature = "gate")))]
compile_error!("choose a world: --features enroller, or --no-default-features --features gate");

mod bindings {
    #[cfg(feature = "enroller")]
    wit_bindgen::generate!({ path: "../../wit", world: "enroller", generate_all });
    #[cfg(all(feature = "gate", not(feature = "enroller")))]
    wit_bindgen::generate!({ path: "../../wit", world: "gate", generate_all });
}

mod backoff;
#[cfg(feature = "enroller")]
mod host;
#[cfg(all(feature = "gate", not(feature = "enroller")))]
mod message;
#[cfg(feature = "enroller")]
mod transactions;

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
