//! What of the intakes can be changed while they run: tokens, and certificates with their keys. Main type: [`Live`].
//!
//! Invariant: what cannot be read changes nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;

use super::tls;
use crate::recorder::config::{IntakeConfig, ListenConfig, TlsConfig};

/// What can be changed, by the names of the intakes.
#[derive(Debug, Default)]
pub struct Live {
    tokens: RwLock<HashMap<&'static str, Arc<[String]>>>,
}

impl Live {
    /// As configured.
    pub fn new(config: &IntakeConfig) -> Self {
        let live = Live::default();
        live.set_tokens(config);
        live
    }

    /// Tokens that are let in; empty for everybody.
    pub(super) fn tokens(&self, intake: &str) -> Arc<[String]> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).get(intake).cloned().unwrap_or_default()
    }

    /// Other tokens, for requests and connections that begin from now on.
    pub fn set_tokens(&self, config: &IntakeConfig) {
        let of = |listen: &Option<ListenConfig>| listen.as_ref().map(|listen| listen.tokens.clone().into());
        let named = [("http", of(&config.http)), ("tcp", of(&config.tcp))];
        let tokens = named.into_iter().filter_map(|(name, tokens)| Some((name, tokens?))).collect();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }
}

/// A certificate that can be renewed: connections that begin afterwards are shown the new one.
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
    pub(super) fn new(config: &TlsConfig) -> Result<Self, String> {
        let acceptor = Arc::new(RwLock::new(tls::acceptor(config)?));
        Ok(Renewable { config: config.clone(), acceptor })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// As [`Renewable::new`]; the old certificate stays.
    pub(in crate::recorder) fn renew(&self) -> Result<(), String> {
        let acceptor = tls::acceptor(&self.config)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }
}
