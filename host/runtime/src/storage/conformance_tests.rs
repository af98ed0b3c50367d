//! The stores of one process keep what every store promises.

use std::sync::Arc;

use super::conformance::every_promise;
use super::sqlite_tests::Scratch;
use super::{MemoryStorage, SqliteStorage};

macro_rules! in_this_process {
    ($($group:ident :: $promise:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $promise() {
                let store = super::MemoryStorage::new();
                super::super::conformance::$group::$promise(super::Arc::new(store)).await
            })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $promise() {
                let scratch = super::Scratch::new();
                let store = super::SqliteStorage::open(&scratch.store()).unwrap();
                super::super::conformance::$group::$promise(super::Arc::new(store)).await
            })*
        }
    };
}

every_promise!(in_this_process);
