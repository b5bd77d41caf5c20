//! Settings of the intakes that can change at run time: senders, bounds of a line, and certificates with their keys. Main type: [`Live`].
//!
//! Invariant: a configuration or file that cannot be read changes nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;

use super::{Running, tls};
use crate::recorder::access::{Grant, Sender, Senders};
use crate::recorder::config::{IntakeConfig, ListenConfig, TlsConfig};
use crate::recorder::line::LineBounds;

/// The settings that can change.
#[derive(Debug, Default)]
pub struct Live(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    named: Arc<[Arc<Sender>]>,
    /// The senders by name of the intake.
    senders: HashMap<&'static str, Senders>,
    line_bounds: LineBounds,
}

impl Live {
    /// Creates the settings from the configuration.
    pub fn new(intake: &IntakeConfig, access: &[Grant], line_bounds: LineBounds) -> Self {
        let live = Live::default();
        live.set(intake, access, line_bounds);
        live
    }

    /// Returns the senders of an intake.
    pub(super) fn senders(&self, intake: &str) -> Senders {
        self.0.read().unwrap_or_else(PoisonError::into_inner).senders.get(intake).cloned().unwrap_or_default()
    }

    /// Returns the bounds of a line.
    pub(super) fn line_bounds(&self) -> LineBounds {
        self.0.read().unwrap_or_else(PoisonError::into_inner).line_bounds
    }

    /// Replaces tokens, senders and bounds for later requests.
    pub fn set(&self, intake: &IntakeConfig, access: &[Grant], line_bounds: LineBounds) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let named = Senders::named(access, &state.named);
        let of = |listen: &Option<ListenConfig>| Some(Senders::new(&listen.as_ref()?.tokens, &named));
        let senders = [("http", of(&intake.http)), ("tcp", of(&intake.tcp))];
        let senders = senders.into_iter().filter_map(|(name, senders)| Some((name, senders?))).collect();
        *state = State { named, senders, line_bounds };
    }
}

/// A certificate that can be renewed: later connections get the new one.
#[derive(Clone)]
pub(in crate::recorder) struct Renewable {
    config: TlsConfig,
    acceptor: Arc<RwLock<TlsAcceptor>>,
}

impl std::fmt::Debug for Renewable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Renewable({})", self.config.certificate.display())
    }
}

impl Renewable {
    /// Reads the files.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub(in crate::recorder) fn new(config: &TlsConfig) -> Result<Self, String> {
        let acceptor = Arc::new(RwLock::new(tls::acceptor(config)?));
        Ok(Renewable { config: config.clone(), acceptor })
    }

    pub(in crate::recorder) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Certificates that were read again and are not in use yet.
#[derive(Default)]
pub struct Renewal(Vec<(Renewable, TlsAcceptor)>);

impl Renewal {
    /// Reads the files of running intakes; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the intake and the file.
    pub(in crate::recorder) fn read<'a>(intakes: impl IntoIterator<Item = &'a Running>) -> Result<Self, String> {
        let mut read = Vec::new();
        for running in intakes {
            for certificate in &running.certificates {
                let section = section(running.name);
                let acceptor =
                    tls::acceptor(&certificate.config).map_err(|reason| format!("{section}.certificate: {reason}"))?;
                read.push((certificate.clone(), acceptor));
            }
        }
        Ok(Renewal(read))
    }

    /// Puts the certificates into use; returns whether there are any.
    pub fn show(self) -> bool {
        let are_any = !self.0.is_empty();
        for (certificate, acceptor) in self.0 {
            *certificate.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        }
        are_any
    }
}

/// Returns the name of the section that configures an intake.
pub(super) fn section(name: &str) -> String {
    match name {
        "office" | "metrics" | "query" => name.to_owned(),
        "ftps" => "intake.ftp".to_owned(),
        name => format!("intake.{name}"),
    }
}
