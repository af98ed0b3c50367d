//! The way between a client and the CA, and everything that happens on it.

use abide_enroll::{NetworkError, Response};

use crate::ca::{Ca, FORGED_WORDS, Forgery, Made, Reply, Told};
use crate::checker::{Breach, Evidence, Weight};
use crate::fault::Fault;
use crate::scenario::{MINUTE, SECOND};

/// What came of one exchange.
pub(crate) struct Exchanged {
    pub(crate) response: Result<Response, NetworkError>,
    pub(crate) evidence: Evidence,
    /// How long it took.
    pub(crate) took_ms: u64,
}

/// Messages that are still on their way.
#[derive(Default)]
pub(crate) struct Network {
    /// Requests, and when they arrive.
    late: Vec<(u64, Vec<u8>)>,
    /// Requests that arrive after the next one.
    overtaken: Vec<Vec<u8>>,
    /// Answers that come in place of the next one.
    stale: Vec<Made>,
}

impl Network {
    /// Lets everything arrive that has been on its way until now.
    pub(crate) fn advance(&mut self, now_ms: u64, ca: &mut Ca) -> Result<(), Breach> {
        while let Some(index) = self.late.iter().position(|(due, _)| *due <= now_ms) {
            let (_, request) = self.late.remove(index);
            ca.receive(&request, None)?;
        }
        Ok(())
    }

    /// When the next message arrives by itself.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.late.iter().map(|(due, _)| *due).min()
    }

    pub(crate) fn exchange(
        &mut self,
        ca: &mut Ca,
        request: &[u8],
        fault: Option<Fault>,
        now_ms: u64,
        timeout_ms: u64,
        rng: &mut fastrand::Rng,
    ) -> Result<Exchanged, Breach> {
        let mut exchanged = self.one(ca, request, fault, now_ms, timeout_ms, rng)?;
        if fault != Some(Fault::RequestsReordered) {
            for overtaken in std::mem::take(&mut self.overtaken) {
                ca.receive(&overtaken, None)?;
            }
        }
        if exchanged.took_ms == 0 {
            exchanged.took_ms = match exchanged.response {
                Err(NetworkError::Timeout(_)) => timeout_ms,
                _ => rng.u64(1..2 * SECOND),
            };
        }
        Ok(exchanged)
    }

    fn one(
        &mut self,
        ca: &mut Ca,
        request: &[u8],
        fault: Option<Fault>,
        now_ms: u64,
        timeout_ms: u64,
        rng: &mut fastrand::Rng,
    ) -> Result<Exchanged, Breach> {
        use NetworkError::{Interrupted, Timeout, Tls, TooLarge, Unreachable};
        let in_vain = || failed(Timeout("nothing came".into()));
        let page = |status, retry_after| {
            http(Response {
                status,
                content_type: Some("text/html".into()),
                retry_after,
                location: None,
                body: b"<html>try again</html>".to_vec(),
            })
        };
        let forged = |ca: &mut Ca, forgery| match ca.forge(request, forgery) {
            Some(octets) => {
                let mut exchanged = http(message(octets));
                if forgery != Forgery::ForeignGrant {
                    exchanged.evidence.words = &["unauthenticated", FORGED_WORDS];
                }
                exchanged
            }
            None => http(message(Vec::new())),
        };
        Ok(match fault {
            Some(Fault::RequestLost) => in_vain(),
            Some(Fault::Unreachable) if rng.bool() => failed(Unreachable("refused".into())),
            Some(Fault::Unreachable) => failed(Tls("no handshake".into())),
            Some(Fault::RequestLate) => {
                let due = now_ms + rng.u64(SECOND..40 * MINUTE);
                self.late.push((due, request.to_vec()));
                in_vain()
            }
            Some(Fault::RequestsReordered) => {
                self.overtaken.push(request.to_vec());
                in_vain()
            }
            Some(Fault::ResponseLost) => {
                ca.receive(request, None)?;
                in_vain()
            }
            Some(Fault::Interrupted) => {
                ca.receive(request, None)?;
                failed(Interrupted("reset by peer".into()))
            }
            Some(Fault::ResponseLate) => {
                if let Reply::Made(made) = ca.receive(request, None)? {
                    self.stale.push(*made);
                }
                in_vain()
            }
            Some(Fault::RequestFlipped) => {
                let mut flipped = request.to_vec();
                flip(&mut flipped, rng);
                // Where nothing protects the bit, the CA has the same message all the same.
                if Made::proves_the_same(request, &flipped) {
                    flipped = request.to_vec();
                }
                self.answer(ca, &flipped, request, None)?
            }
            Some(Fault::RequestDuplicated) => {
                ca.receive(request, None)?;
                self.answer(ca, request, request, None)?
            }
            Some(fault @ (Fault::ResponseFlipped | Fault::ResponseTruncated)) => {
                let Reply::Made(made) = ca.receive(request, None)? else {
                    return Ok(http(message(Vec::new())));
                };
                let mut octets = made.octets.clone();
                match fault {
                    Fault::ResponseFlipped => flip(&mut octets, rng),
                    _ => octets.truncate(rng.usize(..octets.len())),
                }
                let mut exchanged = http(message(octets.clone()));
                if Made::proves_the_same(&made.octets, &octets) {
                    ca.damage(&made.octets);
                    exchanged.evidence.weight = Weight::May;
                    exchanged.evidence.told = made.told;
                }
                exchanged
            }
            Some(Fault::ResponseNoisy) => match ca.receive(request, None)? {
                Reply::Made(made) => {
                    let octets = made.noisy(ca.noise(rng.bool())).unwrap_or_default();
                    let mut exchanged = http(message(octets));
                    // The crowd may be too large to find in it what belongs to the answer.
                    exchanged.evidence.weight = Weight::May;
                    exchanged.evidence.told = made.told;
                    exchanged
                }
                _ => http(message(Vec::new())),
            },
            Some(Fault::ResponseUnprotected) => match ca.receive(request, None)? {
                Reply::Made(made) => http(message(made.bare().unwrap_or_default())),
                _ => http(message(Vec::new())),
            },
            Some(Fault::ResponseForged) => {
                ca.receive(request, None)?;
                forged(ca, Forgery::ForeignGrant)
            }
            Some(Fault::ErrorForged) => forged(ca, Forgery::ForeignError),
            Some(Fault::ErrorUnprotected) => forged(ca, Forgery::UnprotectedError),
            Some(Fault::ErrorMisaddressed) => forged(ca, Forgery::MisaddressedError),
            Some(Fault::NoncesMixedUp) => forged(ca, Forgery::ErrorToAnotherMessage),
            Some(Fault::Http404) => page(404, None),
            Some(Fault::Http429) => page(429, Some(120)),
            Some(Fault::Http500) => page(500, None),
            Some(Fault::Http502) => {
                ca.receive(request, None)?;
                page(502, None)
            }
            Some(Fault::Http503) => page(503, Some(1200)),
            Some(Fault::Http503ForAnAge) => page(503, Some(u64::MAX)),
            Some(Fault::Html) => page(200, None),
            Some(Fault::Redirect) => http(Response {
                status: 302,
                location: Some("http://elsewhere.example/".into()),
                ..message(Vec::new())
            }),
            Some(Fault::Empty) => {
                ca.receive(request, None)?;
                http(message(Vec::new()))
            }
            Some(Fault::TooLarge) => {
                ca.receive(request, None)?;
                failed(TooLarge(1 << 20))
            }
            Some(Fault::SlowAnswer) => Exchanged {
                took_ms: timeout_ms - 1,
                ..self.answer(ca, request, request, None)?
            },
            whim => self.answer(ca, request, request, whim)?,
        })
    }

    /// The CA's answer to what arrived, given to who sent `request`; or an older one.
    fn answer(
        &mut self,
        ca: &mut Ca,
        arrived: &[u8],
        request: &[u8],
        whim: Option<Fault>,
    ) -> Result<Exchanged, Breach> {
        let reply = ca.receive(arrived, whim)?;
        if let Some(stale) = self.stale.pop() {
            let mut exchanged = http(message(stale.octets));
            if stale.told != Told::Nonsense {
                exchanged.evidence.weight = match stale.request == request {
                    true => Weight::Must,
                    false => Weight::May,
                };
            }
            exchanged.evidence.told = stale.told;
            return Ok(exchanged);
        }
        Ok(match reply {
            Reply::Made(made) => {
                let mut exchanged = http(message(made.octets));
                if made.told != Told::Nonsense && made.request == request {
                    exchanged.evidence.weight = Weight::Must;
                    exchanged.evidence.told = made.told;
                } else if whim == Some(Fault::CaPvno1) {
                    exchanged.evidence.words = &["pvno 1"];
                }
                exchanged
            }
            Reply::Unprotected(octets) => http(message(octets)),
            Reply::Nothing => http(Response {
                status: 400,
                ..message(Vec::new())
            }),
        })
    }
}

fn failed(error: NetworkError) -> Exchanged {
    let arrived = !matches!(error, NetworkError::Unreachable(_) | NetworkError::Tls(_));
    Exchanged {
        response: Err(error),
        evidence: Evidence {
            arrived,
            ..Evidence::nothing()
        },
        took_ms: 0,
    }
}

/// An answer that proves nothing, unless somebody says otherwise.
fn http(response: Response) -> Exchanged {
    Exchanged {
        evidence: Evidence {
            retry_after_s: response.retry_after,
            ..Evidence::nothing()
        },
        response: Ok(response),
        took_ms: 0,
    }
}

fn message(body: Vec<u8>) -> Response {
    Response {
        status: 200,
        content_type: Some("application/pkixcmp".into()),
        retry_after: None,
        location: None,
        body,
    }
}

fn flip(octets: &mut [u8], rng: &mut fastrand::Rng) {
    let at = rng.usize(..octets.len());
    octets[at] ^= 1 << rng.u8(..8);
}
