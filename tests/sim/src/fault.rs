//! Everything that can go wrong, by name.

/// Where a fault can strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At any import.
    Import,
    /// When a record is loaded.
    Load,
    /// When records are committed.
    Commit,
    /// When a message is exchanged.
    Exchange,
    /// When the clock is read.
    Clock,
    /// When a key is used.
    Key,
    /// Before a call of the machine.
    Call,
}

macro_rules! faults {
    ($($variant:ident $name:literal $place:ident $doc:literal)*) => {
        /// One fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $(#[doc = $doc] $variant,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line on what happens.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }

            /// Where it strikes.
            pub fn place(self) -> Place {
                match self { $(Self::$variant => Place::$place,)* }
            }
        }
    };
}

faults! {
    CrashBefore "crash-before" Import "The process dies before the import has done anything."
    CrashAfter "crash-after" Import "The process dies after the import has done its work, before it returns."
    Stall "stall" Import "The process stands still for ten minutes, others do not."
    AnotherMachine "another-machine" Import "Another machine goes through a whole call for the same order meanwhile."

    RequestLost "request-lost" Exchange "The request never arrives; the client waits in vain."
    Unreachable "unreachable" Exchange "There is no connection; the request certainly never arrives."
    ResponseLost "response-lost" Exchange "The CA answers; the client waits in vain."
    Interrupted "interrupted" Exchange "The connection is cut after the CA has answered."
    RequestDuplicated "request-duplicated" Exchange "The request arrives twice; the second answer comes back."
    RequestLate "request-late" Exchange "The client waits in vain; the request arrives minutes later."
    RequestsReordered "requests-reordered" Exchange "The client waits in vain; the request arrives after the next one."
    ResponseLate "response-late" Exchange "The client waits in vain; the answer comes in place of the next one."
    RequestFlipped "request-flipped" Exchange "One bit of the request is turned over on the way."
    ResponseFlipped "response-flipped" Exchange "One bit of the answer is turned over on the way."
    ResponseTruncated "response-truncated" Exchange "The answer ends early."
    ResponseNoisy "response-noisy" Exchange "Somebody fills extraCerts, which nothing protects, with certificates that lead nowhere."
    ResponseUnprotected "response-unprotected" Exchange "The answer has lost its protection."
    ResponseForged "response-forged" Exchange "Somebody else grants a certificate in place of the CA."
    ErrorForged "error-forged" Exchange "Somebody else refuses, under another secret or key."
    ErrorUnprotected "error-unprotected" Exchange "Somebody else refuses, without protection."
    ErrorMisaddressed "error-misaddressed" Exchange "The CA's refusal of another transaction comes back."
    NoncesMixedUp "nonces-mixed-up" Exchange "The CA refuses, in answer to another message."
    Http404 "http-404" Exchange "The server knows no such path."
    Http429 "http-429" Exchange "Too many requests, Retry-After two minutes."
    Http500 "http-500" Exchange "The server fails before the CA has seen the request."
    Http502 "http-502" Exchange "A gateway fails after the CA has answered."
    Http503 "http-503" Exchange "A page in HTML, Retry-After twenty minutes."
    Http503ForAnAge "http-503-for-an-age" Exchange "A page in HTML, and Retry-After as large as can be written."
    Html "html" Exchange "Status 200 and a page in HTML."
    Redirect "redirect" Exchange "The server points elsewhere."
    Empty "empty" Exchange "Status 200 without a body, after the CA has answered."
    TooLarge "too-large" Exchange "The answer is longer than the client reads."
    SlowAnswer "slow-answer" Exchange "The answer takes almost as long as the client waits."

    CaSystemUnavail "ca-system-unavail" Exchange "The CA refuses for systemUnavail."
    CaSystemFailure "ca-system-failure" Exchange "The CA refuses for systemFailure."
    CaTransactionIdInUse "ca-transaction-id-in-use" Exchange "The CA refuses for transactionIdInUse."
    CaBadRequest "ca-bad-request" Exchange "The CA refuses for badRequest."
    CaCertConfirmed "ca-cert-confirmed" Exchange "The CA answers certConf with certConfirmed."
    CaErrorWaiting "ca-error-waiting" Exchange "The CA answers with an error of status waiting."
    CaWaitsForEver "ca-waits-for-ever" Exchange "The CA says waiting from now on."
    CaCheckAfter "ca-check-after" Exchange "The CA asks for a wait of nothing, less than nothing, or an age."
    CaExpiredCertificate "ca-expired-certificate" Exchange "The CA's certificate is over when it comes."
    CaWrongKey "ca-wrong-key" Exchange "The CA's certificate is for another key."
    CaWrongIssuer "ca-wrong-issuer" Exchange "The CA's certificate is signed by nobody one trusts."
    CaUnreadableCertificate "ca-unreadable-certificate" Exchange "The CA grants octets that are no certificate."
    CaTwoResponses "ca-two-responses" Exchange "The CA's answer is two: CertResponses, statuses of an rp or values of a genp."
    CaAnotherMatter "ca-another-matter" Exchange "The CA's answer is about another certReqId, certificate or question."
    CaTwoPollReps "ca-two-poll-reps" Exchange "The CA's pollRep has two entries."
    CaNoPollRep "ca-no-poll-rep" Exchange "The CA's pollRep has no entry."
    CaOutOfTurn "ca-out-of-turn" Exchange "The CA answers with a message that answers something else."
    CaPvno1 "ca-pvno-1" Exchange "The CA refuses in pvno 1."

    LoadFails "load-fails" Load "The store cannot be read."
    StoreFails "store-fails" Commit "The store is unavailable; nothing is written."
    StoreUnsure "store-unsure" Commit "The store writes and then says that it is unavailable."
    StoreConflict "store-conflict" Commit "The store speaks of a conflict; nothing is written."
    StoreSlow "store-slow" Commit "The commit takes a minute."
    TornHead "torn-head" Commit "The store breaks its promise: the machine dies with the first record written alone."
    TornTail "torn-tail" Commit "The store breaks its promise: the machine dies with the last record written alone."

    KeyFails "key-fails" Key "The key or secret cannot be used now."

    ClockBack "clock-back" Clock "This machine's clock is set back by a day."
    ClockForth "clock-forth" Clock "This machine's clock is set forward by an hour."

    CredentialRotated "credential-rotated" Call "The secret or key changes, at the CA too."
    ServerEdited "server-edited" Call "The issuer gets another URL."
    AnchorEdited "anchor-edited" Call "The issuer gets a further trust anchor."
}

impl Fault {
    /// The fault of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    /// The single fault that keeps a store from its promise to write all or nothing.
    pub(crate) fn tears(self) -> bool {
        matches!(self, Self::TornHead | Self::TornTail)
    }
}

/// Which faults strike when. Opportunities are numbered through a world: every call and
/// every import is one.
#[derive(Clone, Debug)]
pub enum Plan {
    /// These, each at the opportunity of its number.
    Script(Vec<(u64, Fault)>),
    /// Any of these, at about so many of 1024 opportunities, and no more than `left`.
    Random {
        /// The faults of this world.
        faults: Vec<Fault>,
        /// Of 1024 opportunities.
        rate: u32,
        /// How many more.
        left: u32,
    },
}

impl Plan {
    /// The fault that strikes at this opportunity.
    pub(crate) fn strike(
        &mut self,
        opportunity: u64,
        places: &[Place],
        rng: &mut fastrand::Rng,
    ) -> Option<Fault> {
        match self {
            Self::Script(script) => {
                let index = script.iter().position(|&(at, _)| at == opportunity)?;
                let (_, fault) = script.remove(index);
                places.contains(&fault.place()).then_some(fault)
            }
            Self::Random { faults, rate, left } => {
                if *left == 0 || rng.u32(..1024) >= *rate {
                    return None;
                }
                // One draw whatever the place, so that faults of rare places stay likely.
                let from = rng.usize(..faults.len());
                let fault = (0..faults.len())
                    .map(|offset| faults[(from + offset) % faults.len()])
                    .find(|fault| places.contains(&fault.place()))?;
                *left -= 1;
                Some(fault)
            }
        }
    }

    /// Whether no fault can strike any more.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Script(script) => script.is_empty(),
            Self::Random { left, .. } => *left == 0,
        }
    }

    /// No fault strikes from now on.
    pub(crate) fn end(&mut self) {
        *self = Self::Script(Vec::new());
    }
}
