//! What is enrolled, and at what kind of CA.

use abide_enroll::{Limits, Operation};

use crate::fault::{Fault, Plan};

pub(crate) const SECOND: u64 = 1000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

macro_rules! choices {
    ($(#[$meta:meta])* $type:ident { $($(#[$about:meta])* $variant:ident $name:literal)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$about])* $variant,)*
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its word in a scenario's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

choices! {
    /// What is asked of the CA.
    Kind {
        /// ir.
        Ir "ir"
        /// cr.
        Cr "cr"
        /// p10cr.
        P10cr "p10cr"
        /// kur, signed by the certificate that is updated.
        Kur "kur"
        /// rr.
        Rr "rr"
        /// rr for a certificate that is on hold, with the reason removeFromCRL.
        Revive "revive"
        /// genm for caCerts.
        Genm "genm"
    }
}

choices! {
    /// How requests are protected.
    Protection {
        /// By a MAC.
        Secret "secret"
        /// By a signature.
        Certificate "certificate"
    }
}

choices! {
    /// How a certificate is confirmed.
    Confirming {
        /// By certConf and pkiConf.
        Explicit "explicit"
        /// Implicit confirmation is asked for and granted.
        Implicit "implicit"
        /// Implicit confirmation is asked for and not granted.
        NotImplicit "not-implicit"
        /// certConf is first answered with an error of status waiting.
        Delayed "delayed-conf"
        /// There is no certificate to it.
        Never "no-conf"
    }
}

choices! {
    /// When the certificate comes.
    Delay {
        /// In answer to the request.
        None "at-once"
        /// After a response of status waiting.
        Response "response-waiting"
        /// After an error of status waiting.
        Error "error-waiting"
    }
}

choices! {
    /// What the CA says to a message that it has seen.
    Repeats {
        /// The same as before.
        Answered "repeats"
        /// transactionIdInUse and certConfirmed.
        Refused "no-repeats"
    }
}

/// One kind of enrollment at one kind of CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "documented by their types")]
pub struct Scenario {
    pub kind: Kind,
    pub protection: Protection,
    pub confirming: Confirming,
    pub delay: Delay,
    pub repeats: Repeats,
}

impl Scenario {
    /// The five commonest: device certificates by secret, at once and approved by hand;
    /// renewals, by kur and by cr; and a CA that refuses what it has seen.
    pub const COMMONEST: [Self; 5] = {
        let base = Self {
            kind: Kind::P10cr,
            protection: Protection::Secret,
            confirming: Confirming::Explicit,
            delay: Delay::None,
            repeats: Repeats::Answered,
        };
        [
            base,
            Self {
                delay: Delay::Response,
                ..base
            },
            Self {
                kind: Kind::Kur,
                protection: Protection::Certificate,
                ..base
            },
            Self {
                kind: Kind::Cr,
                protection: Protection::Certificate,
                confirming: Confirming::Implicit,
                ..base
            },
            Self {
                kind: Kind::Ir,
                repeats: Repeats::Refused,
                ..base
            },
        ]
    };

    /// Every scenario there is.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for &kind in Kind::ALL {
            for &protection in kind.protections() {
                for &confirming in kind.confirmings() {
                    for &delay in kind.delays() {
                        all.extend(Repeats::ALL.iter().map(|&repeats| Self {
                            kind,
                            protection,
                            confirming,
                            delay,
                            repeats,
                        }));
                    }
                }
            }
        }
        all
    }

    /// Its five words.
    pub fn name(&self) -> String {
        [
            self.kind.name(),
            self.protection.name(),
            self.confirming.name(),
            self.delay.name(),
            self.repeats.name(),
        ]
        .join("/")
    }

    /// The scenario of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|one| one.name() == name)
    }

    fn random(rng: &mut fastrand::Rng) -> Self {
        fn one<T: Copy>(rng: &mut fastrand::Rng, all: &[T]) -> T {
            all[rng.usize(..all.len())]
        }
        let kind = one(rng, Kind::ALL);
        Self {
            kind,
            protection: one(rng, kind.protections()),
            confirming: one(rng, kind.confirmings()),
            delay: one(rng, kind.delays()),
            repeats: one(rng, Repeats::ALL),
        }
    }
}

impl Kind {
    pub(crate) fn operation(self) -> Operation {
        match self {
            Self::Ir => Operation::Ir,
            Self::Cr => Operation::Cr,
            Self::P10cr => Operation::P10cr,
            Self::Kur => Operation::Kur,
            Self::Rr | Self::Revive => Operation::Rr,
            Self::Genm => Operation::Genm,
        }
    }

    fn protections(self) -> &'static [Protection] {
        match self {
            // RFC 9483, 4.1.3.
            Self::Kur => &[Protection::Certificate],
            _ => Protection::ALL,
        }
    }

    fn confirmings(self) -> &'static [Confirming] {
        let (never, others) = Confirming::ALL.split_last().expect("some");
        match self.operation().enrolls() {
            true => others,
            false => std::slice::from_ref(never),
        }
    }

    fn delays(self) -> &'static [Delay] {
        match self.operation().enrolls() {
            true => Delay::ALL,
            // Neither rp nor genp can wait (RFC 9483, 4.4).
            false => &[Delay::None, Delay::Error],
        }
    }
}

/// Habits of real CAs that are no faults: they last for the whole world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// An unreadable certificate lies among extraCerts.
    pub junk_certificates: bool,
    /// Answers come in pvno 3.
    pub pvno_3: bool,
    /// A p10cr is answered with certReqId 0 in place of −1.
    pub zero_id: bool,
    /// Certificates are granted with modifications.
    pub mods: bool,
    /// Requests that are protected by a MAC are answered with a signature.
    pub signs_always: bool,
    /// Refusals come as a response where they can, not as an error.
    pub refuses_in_response: bool,
    /// The last answer to a poll carries the nonce of the request that it delayed.
    pub first_nonce: bool,
    /// Errors about a wrong protection are protected.
    pub protects_errors: bool,
    /// A delayed certificate is made when it is asked for, not when it is handed out.
    pub makes_early: bool,
    /// Certificates come from a CA below the root, whose certificate is among extraCerts.
    pub intermediate: bool,
    /// rp names the certificate.
    pub names_revoked: bool,
}

impl Habits {
    fn random(rng: &mut fastrand::Rng) -> Self {
        let mut some = || rng.u8(..4) == 0;
        Self {
            junk_certificates: some(),
            pvno_3: some(),
            zero_id: some(),
            mods: some(),
            signs_always: some(),
            refuses_in_response: some(),
            first_nonce: some(),
            protects_errors: some(),
            makes_early: some(),
            intermediate: some(),
            names_revoked: some(),
        }
    }
}

/// Everything that is fixed before a world begins.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What is enrolled.
    pub scenario: Scenario,
    /// How the CA is besides.
    pub habits: Habits,
    /// How many certificates are wanted.
    pub orders: usize,
    /// How many machines work on them.
    pub workers: usize,
    /// Whether whoever begins says what it decided upon.
    pub conditional: bool,
    /// Polls before the certificate, where it is delayed.
    pub patience: u32,
    /// What the CA asks for in pollRep, in seconds.
    pub check_after: i64,
    /// The bounds of each transaction.
    pub limits: Limits,
}

impl Setting {
    /// One machine, one order, no habits.
    pub fn plain(scenario: Scenario) -> Self {
        Self {
            scenario,
            habits: Habits::default(),
            orders: 1,
            // The second one only comes in when a fault calls it.
            workers: 2,
            conditional: true,
            patience: 2,
            check_after: 7,
            limits: AMPLE,
        }
    }

    /// Anything, and the faults to go with it.
    pub fn random(rng: &mut fastrand::Rng) -> (Self, Plan) {
        let scenario = Scenario::random(rng);
        let setting = Self {
            scenario,
            habits: Habits::random(rng),
            orders: [1, 1, 1, 2][rng.usize(..4)],
            workers: [1, 1, 2, 3][rng.usize(..4)],
            conditional: rng.bool(),
            patience: rng.u32(1..4),
            check_after: [0, 7, 30, 300][rng.usize(..4)],
            limits: if rng.u8(..4) == 0 { TIGHT } else { AMPLE },
        };
        // Few kinds of fault in one world, so that each meets itself and the others often.
        let tears = rng.u8(..16) == 0;
        let mut faults: Vec<Fault> = Fault::ALL
            .iter()
            .copied()
            .filter(|fault| tears || !fault.tears())
            .collect();
        rng.shuffle(&mut faults);
        faults.truncate(rng.usize(2..16));
        let plan = Plan::Random {
            faults,
            rate: [8, 24, 64, 160][rng.usize(..4)],
            left: rng.u32(0..12),
        };
        (setting, plan)
    }
}

const AMPLE: Limits = Limits {
    maximum_duration_ms: 14 * DAY,
    minimum_poll_interval_ms: 10 * SECOND,
    maximum_poll_interval_ms: 4 * MINUTE,
    maximum_polls: 40,
    request_timeout_ms: 30 * SECOND,
};

/// Bounds that are met before long.
const TIGHT: Limits = Limits {
    maximum_duration_ms: 20 * MINUTE,
    maximum_polls: 3,
    ..AMPLE
};
