//! Postfix, as Debian has it: what it answers, and what it puts into a mailbox.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use serde_json::json;
use switchbell::config::MailTls;
use switchbell::send::effect::MailClient;
use switchbell::wasm::Message;
use tempfile::TempDir;

use super::relay::{PASSWORD, read};
use super::stage::{Identity, config, mail, outcomes, plain, protected, send};
use crate::support::PATIENCE;

/// A Postfix of the test's own, with mailboxes for `ops` and `two` at example.com.
pub struct Postfix {
    clear: u16,
    pub implicit: u16,
    lines: Receiver<String>,
    child: Child,
    folder: TempDir,
}

/// Postfix gives up its rights itself, and has to have them first.
fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}; is Postfix there? Run `make deps`");
    output.stdout
}

/// Sends each line on until nobody listens.
fn forward(from: impl Read + Send + 'static, to: Sender<String>) {
    let lines = BufReader::new(from).lines().map_while(Result::ok);
    std::thread::spawn(move || lines.for_each(|line| drop(to.send(line))));
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const MASTER: &str = "
127.0.0.1:CLEAR inet n - n - - smtpd
127.0.0.1:IMPLICIT inet n - n - - smtpd -o smtpd_tls_wrappermode=yes
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
anvil unix - - n - 1 anvil
error unix - - n - - error
retry unix - - n - - error
proxymap unix - - n - - proxymap
tlsmgr unix - - n 1000? 1 tlsmgr
virtual unix - n n - - virtual
postlog unix-dgram n - n - 1 postlogd
";

const MAIN: &str = "
compatibility_level = 3.6
queue_directory = FOLDER/spool
data_directory = FOLDER/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
mail_owner = postfix
setgid_group = postdrop
myhostname = relay.example
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
alias_maps =
maillog_file = /dev/stdout
virtual_mailbox_domains = example.com
virtual_mailbox_base = FOLDER/mail
virtual_mailbox_maps = inline:{{ops@example.com = ops/}, {two@example.com = two/}}
virtual_uid_maps = static:UID
virtual_gid_maps = static:GID
virtual_minimum_uid = 1
smtpd_relay_restrictions = reject_unauth_destination
smtpd_recipient_restrictions = check_recipient_access inline:{{busy@example.com = 451 4.7.1 greylisted}}
smtpd_tls_security_level = may
smtpd_tls_cert_file = CERTIFICATE
smtpd_tls_key_file = KEY
notify_classes =
";

impl Postfix {
    pub fn start(identity: &Identity) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let (clear, implicit) = (free_port(), free_port());
        run(Command::new("chmod").args(["755", &path]));
        for (owner, name) in [("root", "etc"), ("root", "spool"), ("postfix", "data"), ("postfix", "mail")] {
            run(as_root("install").args(["-d", "-o", owner, &format!("{path}/{name}")]));
        }
        let id = |kind: &str| String::from_utf8(run(Command::new("id").args([kind, "postfix"]))).unwrap();
        let main = MAIN
            .replace("FOLDER", &path)
            .replace("UID", id("-u").trim())
            .replace("GID", id("-g").trim())
            .replace("CERTIFICATE", identity.certificate.to_str().unwrap())
            .replace("KEY", identity.key.to_str().unwrap());
        let master = MASTER.replace("CLEAR", &clear.to_string()).replace("IMPLICIT", &implicit.to_string());
        for (name, text) in [("main.cf", main), ("master.cf", master)] {
            fs::write(folder.path().join(name), text).unwrap();
            run(as_root("install").args(["-m", "644", &format!("{path}/{name}"), &format!("{path}/etc/{name}")]));
        }
        let mut command = as_root("/usr/sbin/postfix");
        command.args(["-c", &format!("{path}/etc"), "start-fg"]).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        let mut postfix = Self { clear, implicit, lines, child, folder };
        postfix.wait_for("daemon started");
        postfix
    }

    /// Waits until it has logged this.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => seen.push(line),
                Err(_) => panic!("Postfix never said {text:?}; it said:\n{}", seen.join("\n")),
            }
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The mails in a mailbox.
    pub fn mailbox(&self, name: &str) -> Vec<Vec<u8>> {
        let new = self.path(&format!("mail/{name}/new"));
        let listed = String::from_utf8(run(as_root("ls").arg(&new))).unwrap();
        listed.lines().map(|file| run(as_root("cat").arg(new.join(file)))).collect()
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        // Its own command to stop it takes seconds; the master takes all others with it.
        let pid = as_root("cat").arg(self.path("spool/pid/master.pid")).output().unwrap();
        let _ = as_root("kill").arg(String::from_utf8_lossy(&pid.stdout).trim()).output();
        let _ = self.child.wait();
        // What it wrote belongs to it.
        let _ = as_root("rm").arg("-rf").arg(self.path("spool")).arg(self.path("data")).arg(self.path("mail")).output();
    }
}

async fn delivered(tls: MailTls) {
    let identity = Identity::new(&["localhost"]);
    let mut postfix = Postfix::start(&identity);
    let port = if tls == MailTls::Implicit { postfix.implicit } else { postfix.clear };
    let relay = match tls {
        MailTls::None => plain(port),
        _ => switchbell::config::MailRelay { sign_in: None, ..protected(port, tls) },
    };
    let client = MailClient::trusting(&config(Some(relay), PASSWORD), identity.trust()).unwrap();
    let subject = "größere Änderung an acme.example 🔔";
    let text = "Zeile eins\n.\n..zwei\n\nFrom hier\n";
    let message =
        Message { subject: subject.to_owned(), text: text.to_owned(), ..mail(&["ops", "busy", "gone", "two"]) };
    let mailed = send(&client, message).await;
    let outcomes = outcomes(&mailed);
    assert_eq!((outcomes[0].as_str(), outcomes[3].as_str()), ("ok", "ok"), "{outcomes:?}");
    assert!(outcomes[1].starts_with("refused recipient-refused 451: the relay refused: 451 4.7.1 <busy@example.com>"));
    assert!(outcomes[2].starts_with("refused recipient-refused 550: the relay refused: 550 5.1.1 <gone@example.com>"));
    postfix.wait_for("delivered to maildir");
    postfix.wait_for("delivered to maildir");
    for name in ["ops", "two"] {
        let mails = postfix.mailbox(name);
        assert_eq!(mails.len(), 1, "{name} got it once");
        let read = read(&mails[0]);
        let header = |name: &str| {
            let headers = read["headers"].as_array().unwrap();
            headers.iter().filter(|header| header[0] == name).map(|header| header[1].clone()).collect::<Vec<_>>()
        };
        assert_eq!(header("Subject"), [json!(subject)]);
        assert_eq!(header("Message-ID"), [json!(mailed.message_id)]);
        assert_eq!(header("Date").len(), 1);
        assert_eq!(read["to"], json!([format!("{name}@example.com")]));
        assert_eq!((&read["text"], &read["defects"]), (&json!(text), &json!([])));
        let is_protected = header("Received")[0].as_str().unwrap().contains("with ESMTPS ");
        assert_eq!(is_protected, tls != MailTls::None);
    }
}

#[tokio::test]
async fn postfix_takes_mail_in_clear() {
    delivered(MailTls::None).await;
}

#[tokio::test]
async fn postfix_takes_mail_over_starttls() {
    delivered(MailTls::StartTls).await;
}

#[tokio::test]
async fn postfix_takes_mail_over_tls() {
    delivered(MailTls::Implicit).await;
}
