//! One run: begun once, and asked for until it ends.

use alloc::borrow::ToOwned;
use alloc::format;

use switchbell_kit::outcome;
use switchbell_kit::types::{Action, Answer, Delivery, Effect, FailureKind, Fault, Pause, Reach, Response};

use crate::progress::{Begun, OtherAgent, Progress, Revision, Run};
use crate::refusal::{Refusal, Reply};
use crate::settings::{Agent, Protocol};
use crate::verdict::{self, Said};
use crate::{a2a, chat, mcp, messages, responses};

/// What the attempt does next.
enum Stage {
    /// Begins the run.
    Start(Revision),
    /// Looks for a run that may have begun: in an earlier attempt, or just now, which then ends as it was refused.
    Seek(Option<Refusal>),
    /// Asks for the run.
    Poll(Run),
}

/// What an answer leads to.
enum Next {
    Stage(Stage),
    Action(Action),
}

/// What is next, after what has come of everything so far.
pub(crate) fn step(agent: &Agent, delivery: &Delivery, past: &[Effect]) -> Action {
    let (resume, past) = match past {
        [Effect { answer: Answer::Resumed(resume), .. }, past @ ..] => (resume.as_deref(), past),
        past => (delivery.resume.as_deref(), past),
    };
    let progress = match Progress::read(resume, agent, delivery) {
        Ok(progress) => progress,
        Err(other) => return foreign(&other),
    };
    let attempt = Attempt { agent, delivery, progress };
    let mut stage = attempt.first_stage();
    for effect in past {
        match attempt.after(stage, &effect.answer) {
            Next::Stage(next) => stage = next,
            Next::Action(action) => return action,
        }
    }
    attempt.action(&stage)
}

/// The settings were changed while a run went on.
fn foreign(other: &OtherAgent) -> Action {
    let OtherAgent { run, protocol } = other;
    let reason = format!(
        "run {run} was begun over {protocol}, which the settings no longer say, so it cannot be asked for; \
         trying again begins a new one"
    );
    verdict::failed(FailureKind::Unknown, &reason, None, Some("null".to_owned()))
}

struct Attempt<'a> {
    agent: &'a Agent,
    delivery: &'a Delivery,
    progress: Progress,
}

impl Attempt<'_> {
    fn first_stage(&self) -> Stage {
        match &self.progress.begun {
            Begun::Run(run) => Stage::Poll(run.clone()),
            Begun::Perhaps if self.agent.protocol == Protocol::A2a => Stage::Seek(None),
            Begun::Perhaps | Begun::No => Stage::Start(Revision::One),
        }
    }

    fn action(&self, stage: &Stage) -> Action {
        let (agent, delivery) = (self.agent, self.delivery);
        let key = self.progress.key(delivery);
        match (stage, agent.protocol) {
            (Stage::Start(revision), Protocol::A2a) => a2a::start(agent, delivery, &key, *revision),
            (Stage::Start(_), Protocol::Responses) => responses::start(agent, delivery, &key),
            (Stage::Start(_), Protocol::Chat) => chat::start(agent, delivery, &key),
            (Stage::Start(_), Protocol::Messages) => messages::start(agent, delivery, &key),
            (Stage::Start(_), Protocol::Mcp) => mcp::start(agent, delivery, &key),
            (Stage::Poll(run), Protocol::Responses) => responses::ask(agent, delivery, &run.id),
            (Stage::Poll(run), _) => a2a::ask(agent, delivery, run),
            (Stage::Seek(_), _) => a2a::seek(agent, delivery),
        }
    }

    fn after(&self, stage: Stage, answer: &Answer) -> Next {
        match (stage, answer) {
            (Stage::Start(revision), Answer::Http(Ok(response))) => {
                let reply = self.reply(response);
                self.started(revision, self.read(&reply, None))
            }
            (Stage::Start(revision), Answer::Http(Err(fault))) => {
                self.started(revision, Said::Refused(Refusal::of_start_fault(fault)))
            }
            (Stage::Start(revision), Answer::Tool(answer)) => self.started(revision, mcp::read(answer)),
            (Stage::Poll(run), Answer::Http(Ok(response))) => {
                let reply = self.reply(response);
                let said = self.read(&reply, Some(&run.id));
                Next::Action(self.asked(run, said))
            }
            // Asking again is harmless: a question that was lost, by a crash of the host too, is as good as none.
            (Stage::Poll(run), Answer::Http(Err(Fault { reach: Reach::Unanswered, .. }))) => {
                let id = run.id.clone();
                Next::Action(self.asked(run, Said::Running(id)))
            }
            (Stage::Poll(run), Answer::Http(Err(fault))) => {
                Next::Action(self.asked(run, Said::Refused(Refusal::of_poll_fault(fault))))
            }
            (Stage::Seek(refusal), Answer::Http(Ok(response))) => self.sought(refusal, &self.reply(response)),
            (Stage::Seek(refusal), Answer::Http(Err(fault))) => {
                Next::Action(self.unsought(refusal, Refusal::of_poll_fault(fault)))
            }
            _ => {
                let reason = "the host answered with something else than what was asked for";
                Next::Action(outcome::failed(FailureKind::Reject, reason, None))
            }
        }
    }

    fn reply<'r>(&self, response: &'r Response) -> Reply<'r> {
        let body = alloc::string::String::from_utf8_lossy(&response.body);
        Reply { response, body: self.agent.without_key(&body) }
    }

    /// What an answer says of the run that was asked for, or else was to begin.
    fn read(&self, reply: &Reply<'_>, asked: Option<&str>) -> Said {
        let said = match self.agent.protocol {
            Protocol::A2a => a2a::read(reply, asked),
            _ if !reply.is_good() => None,
            Protocol::Responses => responses::read(reply.value()),
            Protocol::Chat => chat::read(reply.value()),
            Protocol::Messages => messages::read(reply.value()),
            Protocol::Mcp => None,
        };
        let refusal = || asked.map_or_else(|| Refusal::of_start(reply), |id| Refusal::of_poll(reply, id));
        said.unwrap_or_else(|| Said::Refused(refusal()))
    }

    fn started(&self, revision: Revision, said: Said) -> Next {
        match said {
            Said::Running(id) => Next::Action(self.wait(&Run::new(id, revision))),
            Said::OtherRevision(_) if revision == Revision::One => Next::Stage(Stage::Start(Revision::ZeroThree)),
            // Where the protocol can tell, it is looked up whether a run began.
            Said::Refused(refusal) if refusal.kind == FailureKind::Unknown && self.can_seek(revision) => {
                Next::Stage(Stage::Seek(Some(refusal)))
            }
            said => Next::Action(self.ended(revision, said)),
        }
    }

    fn can_seek(&self, revision: Revision) -> bool {
        self.agent.protocol == Protocol::A2a && revision == Revision::One
    }

    fn asked(&self, run: Run, said: Said) -> Action {
        let Said::Running(_) = said else { return self.ended(run.revision, said) };
        let id = &run.id;
        if run.is_given_up(self.agent.poll) {
            let reason = format!("run {id} still goes on; trying again asks for it again");
            return verdict::failed(FailureKind::Unknown, &reason, None, Some(self.resume(Begun::Run(run.anew()))));
        }
        if run.is_asked_enough() {
            let reason = format!("run {id} goes on, and so does asking for it");
            return verdict::failed(FailureKind::Retry, &reason, None, None);
        }
        self.wait(&run)
    }

    /// The run that may have begun was looked for.
    fn sought(&self, refusal: Option<Refusal>, reply: &Reply<'_>) -> Next {
        if let Some(id) = a2a::found(reply, &self.progress.key(self.delivery)) {
            return Next::Action(self.wait(&Run::new(id, Revision::One)));
        }
        match refusal {
            // Whoever had it tried again knows that nobody can tell whether it began.
            None if a2a::has_looked(reply) => Next::Stage(Stage::Start(Revision::One)),
            refusal => Next::Action(self.unsought(refusal, Refusal::of_poll(reply, "(which may have begun)"))),
        }
    }

    /// Nobody can tell: the next attempt looks first.
    fn unsought(&self, refusal: Option<Refusal>, otherwise: Refusal) -> Action {
        let Refusal { kind, reason, after_seconds, .. } = refusal.unwrap_or(otherwise);
        verdict::failed(kind, &reason, after_seconds, Some(self.resume(Begun::Perhaps)))
    }

    /// Ends the attempt.
    fn ended(&self, revision: Revision, said: Said) -> Action {
        match said {
            Said::Answered(answered) => verdict::done(self.agent, self.delivery, answered),
            Said::Over(reason) => verdict::failed(FailureKind::Reject, &reason, None, Some(self.resume_anew())),
            Said::Stuck { id, kind, reason } => {
                verdict::failed(kind, &reason, None, Some(self.resume(Begun::Run(Run::new(id, revision)))))
            }
            Said::OtherRevision(reason) => verdict::failed(FailureKind::Reject, &reason, None, None),
            Said::Refused(Refusal { kind, reason, after_seconds, is_gone }) => {
                verdict::failed(kind, &reason, after_seconds, is_gone.then(|| self.resume_anew()))
            }
            Said::Running(id) => self.wait(&Run::new(id, revision)),
        }
    }

    fn wait(&self, run: &Run) -> Action {
        let (seconds, run) = run.pause(self.agent.poll);
        Action::Wait(Pause { seconds, resume: Some(self.resume(Begun::Run(run))) })
    }

    fn resume(&self, begun: Begun) -> alloc::string::String {
        Progress { begun, ended: self.progress.ended }.write(self.agent, self.delivery)
    }

    /// What a further attempt begins with: a new run.
    fn resume_anew(&self) -> alloc::string::String {
        let ended = self.progress.ended.saturating_add(1);
        Progress { begun: Begun::No, ended }.write(self.agent, self.delivery)
    }
}
