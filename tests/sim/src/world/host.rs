//! The host of the machine whose turn it is: every import, and what can go wrong with it.

use abide_cmp::protection::Verdict;
use abide_enroll::{KeyError, StorageError};

use super::{Work, World};
use crate::call::{Answer, Import};
use crate::checker::{Breach, When};
use crate::crypto;
use crate::fault::{Fault, Place};
use crate::scenario::{DAY, HOUR, MINUTE};

impl World {
    pub(super) fn clock(&self) -> u64 {
        self.now_ms
            .saturating_add_signed(self.workers[self.turn].offset_ms)
    }

    pub(super) fn when(&self) -> When {
        When {
            now_ms: self.clock(),
            generation: self.workers[self.turn].generation,
            worker: self.turn,
        }
    }

    pub(super) fn perform(&mut self, import: Import) -> Result<(), Breach> {
        let turn = self.turn;
        let places: &[Place] = match &import {
            Import::Load { .. } => &[Place::Import, Place::Load],
            Import::Commit(_) => &[Place::Import, Place::Commit],
            Import::Exchange { .. } => &[Place::Import, Place::Exchange],
            Import::Now => &[Place::Import, Place::Clock],
            Import::PublicKey(_)
            | Import::Sign { .. }
            | Import::Mac { .. }
            | Import::Fingerprint { .. } => &[Place::Import, Place::Key],
            _ => &[Place::Import],
        };
        let fault = self.strike(places);
        match fault {
            Some(Fault::CrashBefore) => {
                self.die();
                return Ok(());
            }
            Some(Fault::Stall) => self.advance(self.now_ms + 10 * MINUTE)?,
            Some(Fault::AnotherMachine) if self.guest.is_none() && self.workers.len() > 1 => {
                // The import is asked for again when the other one is through.
                let other = (0..self.workers.len())
                    .find(|&other| other != turn && matches!(self.workers[other].work, Work::Idle));
                if let Some(other) = other {
                    self.guest = Some((other, self.workers[turn].order));
                    self.workers[turn].work = Work::Asked(import);
                    return Ok(());
                }
            }
            Some(Fault::ClockBack) => {
                self.checker.clocks_differ = true;
                self.workers[turn].offset_ms -= DAY as i64;
            }
            Some(Fault::ClockForth) => {
                self.checker.clocks_differ = true;
                self.workers[turn].offset_ms += HOUR as i64;
            }
            _ => {}
        }
        let name = import.name();
        let Some(answer) = self.answer(import, fault)? else {
            self.die();
            return Ok(());
        };
        self.note(|_| format!("machine {turn}: {name}{}", shown(&answer)));
        match fault {
            Some(Fault::CrashAfter) => self.die(),
            _ => self.workers[turn].work = Work::Answered(answer),
        }
        Ok(())
    }

    /// What the host answers; none when the machine dies over it.
    fn answer(&mut self, import: Import, fault: Option<Fault>) -> Result<Option<Answer>, Breach> {
        let credential = self.workers[self.turn].credential;
        Ok(Some(match import {
            Import::Now => Answer::Now(self.clock()),
            Import::Random(count) => Answer::Octets(
                std::iter::repeat_with(|| self.rng.u8(..))
                    .take(count)
                    .collect(),
            ),
            Import::Load { .. } if fault == Some(Fault::LoadFails) => Answer::Entry(Err(
                StorageError::Unavailable("no route to the store".into()),
            )),
            Import::Load { kind, id } => Answer::Entry(Ok(self.store.load(&kind, &id))),
            Import::Commit(changes) => return self.commit(&changes, fault),
            Import::Exchange {
                endpoint: _,
                message,
                timeout_ms,
            } => self.exchange(&message, timeout_ms, fault)?,
            Import::PublicKey(_)
            | Import::Sign { .. }
            | Import::Mac { .. }
            | Import::Fingerprint { .. }
                if fault == Some(Fault::KeyFails) =>
            {
                Answer::Key(Err(KeyError("the token is not plugged in".into())))
            }
            Import::PublicKey(key) => Answer::Key(Ok(crypto::public_key(&key))),
            Import::Sign { key, data } => {
                Answer::Key(Ok(crypto::signature(&crypto::public_key(&key), &data)))
            }
            Import::Mac {
                parameters, data, ..
            } => Answer::Key(Ok(crypto::mac(
                &self.ca.secrets[credential],
                &parameters,
                &data,
            ))),
            Import::Verify {
                public_key,
                data,
                signature,
            } => Answer::Verdict(match crypto::signature(&public_key, &data) == signature {
                true => Verdict::Valid,
                false => Verdict::Invalid,
            }),
            Import::Fingerprint { salt, .. } => {
                let secret = &self.ca.secrets[credential];
                Answer::Key(Ok(crypto::fingerprint(secret, &salt)))
            }
            Import::Emit(event) => {
                self.checker.on_event(&event)?;
                self.note(|world| {
                    format!(
                        "machine {}: says {}: {}",
                        world.turn, event.name, event.text
                    )
                });
                Answer::Done
            }
        }))
    }

    fn commit(
        &mut self,
        changes: &[abide_enroll::Change],
        fault: Option<Fault>,
    ) -> Result<Option<Answer>, Breach> {
        let unavailable = || StorageError::Unavailable("the disk is full".into());
        match fault {
            Some(Fault::StoreFails) => return Ok(Some(Answer::Versions(Err(unavailable())))),
            Some(Fault::StoreConflict) => {
                self.workers[self.turn].since.conflicts += 1;
                let conflict = StorageError::Conflict("somebody".into());
                return Ok(Some(Answer::Versions(Err(conflict))));
            }
            Some(Fault::StoreSlow) => self.advance(self.now_ms + MINUTE)?,
            _ => {}
        }
        let written = match fault {
            Some(Fault::TornHead) => &changes[..1],
            Some(Fault::TornTail) => &changes[changes.len() - 1..],
            _ => changes,
        };
        let versions = self.store.commit(written);
        if let Err(StorageError::Conflict(_)) = versions {
            self.workers[self.turn].since.conflicts += 1;
        }
        let torn = written.len() < changes.len() && versions.is_ok();
        self.checker.torn |= torn;
        if versions.is_ok() {
            let when = self.when();
            let worker = &mut self.workers[self.turn];
            let since = std::mem::take(&mut worker.since);
            worker.since.traffic = since.traffic;
            let order = worker.order;
            self.checker.on_commit(order, written, &since, when)?;
            self.note(|world| {
                let record = world.checker.latest(order);
                format!("durable: {:?}", record.map(|record| record.phase))
            });
        }
        Ok(match fault {
            _ if torn => None,
            Some(Fault::StoreUnsure) => Some(Answer::Versions(Err(unavailable()))),
            _ => Some(Answer::Versions(versions)),
        })
    }

    fn exchange(
        &mut self,
        message: &[u8],
        timeout_ms: u64,
        fault: Option<Fault>,
    ) -> Result<Answer, Breach> {
        let when = self.when();
        let worker = &mut self.workers[self.turn];
        self.checker
            .on_send(worker.order, message, &worker.since, when)?;
        worker.since.sent = Some(message.to_vec());
        worker.since.traffic = true;
        let exchanged = self.network.exchange(
            &mut self.ca,
            message,
            fault,
            self.now_ms,
            timeout_ms,
            &mut self.rng,
        )?;
        self.advance(self.now_ms + exchanged.took_ms)?;
        self.note(|_| format!("told {:?}", exchanged.evidence));
        let told_ms = self.clock();
        let since = &mut self.workers[self.turn].since;
        since.evidence = Some(exchanged.evidence);
        since.told_ms = told_ms;
        Ok(Answer::Response(exchanged.response))
    }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Entry(Ok(entry)) => match entry {
            Some(entry) => format!(": {}, version {}", entry.envelope.state, entry.version),
            None => ": nothing".into(),
        },
        Answer::Entry(Err(error)) | Answer::Versions(Err(error)) => format!(": {error:?}"),
        Answer::Versions(Ok(versions)) => format!(": versions {versions:?}"),
        Answer::Response(Ok(response)) => {
            format!(
                ": HTTP {} with {} octets",
                response.status,
                response.body.len()
            )
        }
        Answer::Response(Err(error)) => format!(": {error:?}"),
        Answer::Verdict(verdict) => format!(": {verdict:?}"),
        Answer::Key(Err(error)) => format!(": {error:?}"),
        Answer::Now(_) | Answer::Octets(_) | Answer::Key(Ok(_)) | Answer::Done => String::new(),
    }
}
