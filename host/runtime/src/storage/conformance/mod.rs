//! What every store promises, as tests that take a store. They know the host by its public names
//! only, so that the tests of a store with a server of its own can include them.

use std::sync::Arc;

use crate::Storage;
use crate::wit::storage::{Change, Envelope, Put};

pub(crate) mod leases;
pub(crate) mod records;

/// An empty store.
pub(crate) type Store = Arc<dyn Storage>;

/// Hands the name of every promise to a macro.
macro_rules! every_promise {
    ($to:ident) => {
        $to! {
            records::what_is_put_is_got
            records::the_expected_version_decides
            records::versions_grow_and_never_come_back
            records::a_commit_is_all_or_nothing
            records::kinds_are_apart
            records::listing_filters_and_pages
            records::a_page_has_room_for_one_and_not_for_all
            records::too_much_is_refused
            records::the_longest_names_are_kept
            records::of_many_writers_one_wins_each_round
            records::commits_that_cross_do_not_hang
            leases::a_claim_takes_what_is_due_longest_first
            leases::a_claim_has_room_for_one_and_not_for_all
            leases::tokens_grow_and_never_come_back
            leases::a_lease_that_is_over_goes_to_the_next_one
            leases::a_lease_that_is_over_still_guards_while_nobody_claims
            leases::a_leased_record_is_written_under_its_guard_only
            leases::leases_are_prolonged_and_released
            leases::records_are_counted
            leases::records_are_counted_by_state
            leases::excluded_accounts_are_left_out
            leases::of_many_workers_each_record_has_one
        }
    };
}
pub(crate) use every_promise;

pub(crate) fn envelope(kind: &str, id: &str) -> Envelope {
    Envelope {
        kind: kind.to_owned(),
        id: id.to_owned(),
        owner: String::new(),
        account: String::new(),
        state: "new".to_owned(),
        due_ms: None,
        updated_ms: 1,
    }
}

pub(crate) fn put(id: &str, expected: Option<u64>, body: &[u8]) -> Change {
    Change::Put(Put {
        envelope: envelope("thing", id),
        expected,
        body: body.to_vec(),
    })
}
