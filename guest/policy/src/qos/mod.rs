//! Quality of service: how many orders run at once, as Spinnaker's Orca has it.
//!
//! A new order passes [`Qos::admit`]: a supplier says whether there is too much going on, and if
//! so an ordered chain of policies votes whether the order is started or waits as BUFFERED. Every
//! few seconds [`Promotion::promote`] chooses among those that wait. What has started is outside
//! of all this.

mod buffer;
mod promote;

pub use buffer::{
    Admission, Arrival, BufferPolicy, Criticality, Decided, Qos, Supplier, Verdict, Vote,
};
pub use promote::{Candidate, Promoted, Promotion, PromotionPolicy, PromotionState, Ruling};
