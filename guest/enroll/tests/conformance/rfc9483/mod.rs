//! The Lightweight CMP Profile, and what of RFC 9810 it leans on.

mod section_3_1;
mod section_3_2;
mod section_3_3;
mod section_3_4;
mod section_3_5;
mod section_3_6;
mod section_4_1;
mod section_4_2;
mod section_4_3;
mod section_4_4;
