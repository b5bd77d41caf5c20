//! One FTP session: login, agreed settings, and one upload after the other. Main type: [`Session`].

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::command::{self, Command};
use super::lines::{Line, Lines};
use super::passive::Passive;
use super::{for_data, reply};
use crate::recorder::config::FtpConfig;
use crate::recorder::inbox::Acknowledged;
use crate::recorder::intake::Renewable;
use crate::recorder::intake::anteroom::Place;
use crate::recorder::intake::listen::Ends;
use crate::recorder::intake::tls::is_unproven;
use crate::recorder::stop::Stop;
use crate::recorder::upload::{self, Blocks, Expected, Login, NotTaken};

/// How often a session checks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The most commands before the login.
const COMMANDS_BEFORE_LOGIN_MAX: u32 = 30;

/// State that all sessions share.
pub(super) struct Shared {
    pub(super) config: FtpConfig,
    pub(super) blocks: Arc<Blocks>,
    /// The certificate for control and data connections.
    pub(super) certificate: Option<Renewable>,
    pub(super) stop: Arc<Stop>,
}

/// A client's session.
pub(super) struct Session<'a> {
    shared: &'a Shared,
    lines: Lines,
    ends: Ends,
    /// The place of its connection, which others may need until it has logged in.
    place: Arc<Place>,
    is_secure: bool,
    is_data_protected: bool,
    is_binary: bool,
    user: Option<String>,
    camera: Option<upload::Session>,
    attempts: u32,
    /// Number of commands since the last block.
    commands: u32,
    announced: Option<u64>,
    passive: Option<Passive>,
}

/// What follows a command.
enum Next {
    /// The session goes on with this reply.
    Say(String),
    /// The session ends with this reply.
    End(String),
    /// The session ends, because the client is gone.
    Gone,
    /// The session goes on with TLS.
    Secure,
}

impl From<&str> for Next {
    fn from(reply: &str) -> Self {
        Next::Say(reply.to_owned())
    }
}

impl<'a> Session<'a> {
    pub(super) fn new(shared: &'a Shared, lines: Lines, ends: Ends, place: Arc<Place>, is_secure: bool) -> Self {
        Session {
            shared,
            lines,
            ends,
            place,
            is_secure,
            is_data_protected: false,
            is_binary: false,
            user: None,
            camera: None,
            attempts: 0,
            commands: 0,
            announced: None,
            passive: None,
        }
    }

    /// Serves the session until either side ends it.
    pub(super) async fn serve(mut self) {
        if !self.lines.say(reply::READY).await {
            return;
        }
        loop {
            let next = match self.next_line().await {
                Ok(Line::Text(line)) => self.answer(&line).await,
                Ok(Line::TooLong) => Next::End(reply::LINE_TOO_LONG.to_owned()),
                Ok(Line::End) => Next::Gone,
                Err(words) => Next::End(words.to_owned()),
            };
            match next {
                Next::Say(words) => {
                    if !self.lines.say(&words).await {
                        return;
                    }
                }
                Next::End(words) => {
                    self.lines.say(&words).await;
                    return self.lines.close().await;
                }
                Next::Gone => return,
                Next::Secure => match self.secure().await {
                    Some(secured) => self = secured,
                    None => return,
                },
            }
        }
    }

    /// Returns the next line, or why none is waited for any longer.
    async fn next_line(&mut self) -> Result<Line, &'static str> {
        let most = if self.camera.is_some() { self.shared.config.commands } else { COMMANDS_BEFORE_LOGIN_MAX };
        if self.commands >= most {
            return Err(reply::TOO_MANY_COMMANDS);
        }
        self.commands += 1;
        let within = if self.camera.is_some() { self.shared.config.idle } else { self.shared.config.listen.patience };
        tokio::select! {
            line = tokio::time::timeout(within, self.lines.next()) => line.map_err(|_| reply::IDLE),
            () = asked_to_stop(&self.shared.stop) => Err(reply::STOPPING),
            () = self.place.sent_away() => Err(reply::OTHERS_WAIT),
        }
    }

    async fn answer(&mut self, line: &[u8]) -> Next {
        let command = command::read(line);
        let needs_login = matches!(
            command,
            Command::Passive
                | Command::ExtendedPassive
                | Command::Store(_)
                | Command::Allocate(_)
                | Command::Stay
                | Command::Where
        );
        if needs_login && self.camera.is_none() {
            return reply::LOG_IN.into();
        }
        match command {
            Command::AuthTls if self.shared.certificate.is_none() => reply::NO_TLS.into(),
            Command::AuthTls if self.is_secure => reply::TLS_ALREADY.into(),
            Command::AuthTls => Next::Secure,
            Command::ProtectionSize | Command::Protect(_) if !self.is_secure => reply::NO_TLS_YET.into(),
            Command::ProtectionSize | Command::AsItIs | Command::Nothing => reply::DONE.into(),
            Command::Protect(is_protected) => {
                self.is_data_protected = is_protected;
                reply::DONE.into()
            }
            Command::User(_) | Command::Password(_) if self.camera.is_some() => reply::LOGGED_IN_ALREADY.into(),
            Command::User(_) if self.shared.config.requires_tls && !self.is_secure => reply::TLS_FIRST.into(),
            Command::User(user) => {
                self.user = Some(user);
                reply::PASSWORD.into()
            }
            Command::Password(password) => self.log_in(&password).await,
            Command::Binary(is_binary) => {
                self.is_binary = is_binary;
                reply::DONE.into()
            }
            Command::Passive => self.open_passive(false),
            Command::ExtendedPassive => self.open_passive(true),
            Command::Allocate(bytes) => {
                self.announced = Some(bytes);
                reply::ALLOCATED.into()
            }
            Command::FromBeginning => reply::FROM_BEGINNING.into(),
            Command::Store(name) => self.store(&name).await,
            Command::Abort => reply::NOTHING_TO_ABORT.into(),
            Command::Stay => reply::STAYED.into(),
            Command::Where => reply::WHERE.into(),
            Command::System => reply::SYSTEM.into(),
            Command::Features => reply::FEATURES.into(),
            Command::Help => reply::HELP.into(),
            Command::Quit => Next::End(reply::BYE.to_owned()),
            Command::Refused(reason) => Next::Say(reply::not_done(reason)),
            Command::Wrong(reason) => Next::Say(reply::wrong(reason)),
            Command::Unknown => reply::UNKNOWN.into(),
        }
    }

    /// Goes on with TLS; what was agreed before is forgotten.
    async fn secure(mut self) -> Option<Self> {
        let acceptor = self.shared.certificate.as_ref()?.acceptor();
        if !self.lines.say(reply::SECURE).await {
            return None;
        }
        let lines = match self.lines.secure(&acceptor).await {
            Ok(lines) => lines,
            Err(failure) => {
                if is_unproven(&failure) {
                    self.place.count_unproven();
                }
                return None;
            }
        };
        Some(Session {
            lines,
            is_secure: true,
            is_data_protected: false,
            is_binary: false,
            user: None,
            camera: None,
            announced: None,
            passive: None,
            ..self
        })
    }

    async fn log_in(&mut self, password: &str) -> Next {
        let Some(user) = self.user.take() else { return reply::USER_FIRST.into() };
        let blocks = &self.shared.blocks;
        let login = tokio::select! {
            login = blocks.login(&user, password, self.ends.peer.ip()) => login,
            () = asked_to_stop(&self.shared.stop) => return Next::End(reply::STOPPING.to_owned()),
        };
        match login {
            Login::Known => match blocks.session(&user) {
                Some(_) if !self.place.let_in() => Next::End(reply::OTHERS_WAIT.to_owned()),
                Some(camera) => {
                    self.camera = Some(camera);
                    self.commands = 0;
                    reply::LOGGED_IN.into()
                }
                None => Next::End(reply::TOO_MANY_OF_CAMERA.to_owned()),
            },
            Login::TooMany => Next::End(reply::TOO_MANY_GUESSES.to_owned()),
            Login::Unknown => {
                self.attempts += 1;
                if self.attempts >= self.shared.config.attempts {
                    return Next::End(reply::TOO_MANY_GUESSES.to_owned());
                }
                reply::WRONG_PASSWORD.into()
            }
        }
    }

    fn must_protect(&self) -> bool {
        self.shared.config.requires_tls && !self.is_data_protected
    }

    fn open_passive(&mut self, is_extended: bool) -> Next {
        if self.must_protect() {
            return reply::PROTECTED.into();
        }
        // The previous port is closed first: it may be the only one.
        self.passive = None;
        let Ok(passive) = Passive::open(self.ends.own.ip(), self.shared.config.passive_ports) else {
            return reply::NO_PORT.into();
        };
        let port = passive.port();
        let told: IpAddr = reply::told(self.shared.config.passive_address, self.ends.own);
        let words = if is_extended { Some(reply::extended_passive(port)) } else { reply::passive(told, port) };
        self.passive = words.is_some().then_some(passive);
        words.map_or(reply::NO_ADDRESS.into(), Next::Say)
    }

    async fn store(&mut self, name: &str) -> Next {
        let (shared, announced) = (self.shared, self.announced.take());
        let Some(camera) = self.camera.as_ref().map(|session| session.camera().to_owned()) else {
            return reply::LOG_IN.into();
        };
        if !self.is_binary {
            return reply::BINARY.into();
        }
        if self.must_protect() {
            return reply::PROTECTED.into();
        }
        let Some(passive) = self.passive.take() else { return reply::PASSIVE_FIRST.into() };
        if let Err(refusal) = shared.blocks.admit(&camera, name, announced).await {
            return Next::Say(reply::stored(&Err(refusal)));
        }
        if !self.lines.say(reply::SEND).await {
            return Next::Gone;
        }
        let certificate = shared.certificate.as_ref().filter(|_| self.is_data_protected);
        let acceptor = certificate.map(|certificate| for_data(&certificate.acceptor()));
        let expected = announced.map_or(Expected::Unknown, Expected::AtLeast);
        let peer = self.ends.peer;
        let receive = async {
            let patience = shared.config.listen.patience;
            let data = tokio::time::timeout(patience, passive.accept(peer, acceptor.as_ref())).await;
            let Ok(Ok(mut data)) = data else { return None };
            Some(shared.blocks.deposit(&camera, name, expected, patience, &mut data).await)
        };
        let outcome = tokio::select! {
            outcome = receive => outcome,
            is_aborted = self.lines.aborts() => {
                // What has arrived is discarded with the upload.
                shared.blocks.meter.refuse(upload::Why::Cut);
                return if is_aborted { reply::ABORTED.into() } else { Next::Gone };
            }
            () = over(&shared.stop) => Some(Err(NotTaken::Stopping)),
        };
        match outcome {
            None => reply::NOT_CONNECTED.into(),
            Some(Err(NotTaken::Stopping)) => Next::End(reply::STOPPING.to_owned()),
            Some(outcome) => {
                self.commands =
                    if matches!(outcome, Ok(Acknowledged::New | Acknowledged::Again)) { 0 } else { self.commands };
                Next::Say(reply::stored(&outcome))
            }
        }
    }
}

async fn asked_to_stop(stop: &Stop) {
    while !stop.is_asked() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn over(stop: &Stop) {
    while !stop.is_over() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
