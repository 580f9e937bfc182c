//! Agent runs, end to end: a real outbox server, the program itself, real agents and models over real HTTP.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    AGENT_KEY, Agent, Outbox, Server, Sink, World, operator, prepared, python_outbox, run, workspace,
};

/// Data with its spaces, which a parser would not keep.
const DATA: &str = r#"{"b": 1, "a": 1.5}"#;

/// A world whose one route has an agent look into everything.
struct Stage {
    outbox: Outbox,
    sink: Sink,
    world: World,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// `with` are the settings without prompt and key; `rest` is the rest of the target.
    async fn new(agent: &Agent, with: &str, place: &str, rest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let sink = Sink::start().await;
        let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
        let grant = format!("  grants:\n    agent-run: {{ http: [\"{}\"] }}\n", agent.url);
        let secret = format!(
            "secrets:\n  agent: {{ file: agent.key, in: \"{place}\", hosts: [127.0.0.1], workspaces: [acme] }}\n"
        );
        let file = operator(&sink, &outbox.commands()).replace("  grants:\n", &grant).replace("secrets:\n", &secret);
        world.write("switchbell.yaml", &file);
        world.write("agent.key", AGENT_KEY);
        let file =
            workspace(&World::stdio_connector(), "{ source: registrar }").replace("plugin: slack", "plugin: agent-run");
        let with = format!("with: {{ {with}, prompt: \"Look into it.\", api_key: {{ secret: agent }} }}{rest}");
        let file = file.replace("with: { webhook: { secret: slack-ops } }", &with);
        world.write("workspaces/acme.yaml", &file);
        std::fs::copy(prepared("dist/plugins/agent-run.wasm", "plugins"), world.path("plugins/agent-run.wasm"))
            .unwrap();
        Self { outbox, sink, world, _folder: folder }
    }

    async fn a2a(agent: &Agent) -> Self {
        let with = format!("protocol: a2a, url: \"{}/\", poll: {{ first: 1s, most: 1s }}, report: true", agent.url);
        Self::new(agent, &with, "header:Authorization:Bearer", "").await
    }

    async fn model(agent: &Agent, protocol: &str, model: &str) -> Self {
        let (path, place) = match protocol {
            "anthropic" => ("", "header:x-api-key"),
            _ => ("/v1", "header:Authorization:Bearer"),
        };
        let with = format!("protocol: {protocol}, url: \"{}{path}\", model: {model}", agent.url);
        Self::new(agent, &with, place, "").await
    }

    fn serve(&self) -> Server {
        Server::start(&self.world, &self.sink)
    }

    fn add(&self, title: &str) {
        self.outbox.add(&["domain.active", "--title", title, "--data", DATA]);
    }

    /// Has one event delivered.
    fn begin(&self) -> Server {
        let mut server = self.serve();
        server.wait_for("bootstrap=true");
        self.add("a title");
        server
    }

    fn delivery(&self) -> Value {
        self.world.json(&self.sink, &["deliveries", "list"])[0].clone()
    }

    fn retry(&self, delivery: &Value) {
        let (code, _, error) = run(&self.world, &self.sink, &["deliveries", "retry", text(&delivery["id"])]);
        assert_eq!(code, 0, "{error}");
    }

    /// The delivery once it is in this state.
    fn in_state(&self, state: &str) -> Value {
        let began = Instant::now();
        loop {
            let delivery = self.delivery();
            if delivery["state"] == state {
                return delivery;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "never {state}: {delivery}");
        }
    }
}

/// Whether an instruction and a frame of data are what an agent should be given.
fn check_input(instruction: &str, content: &str) {
    assert!(instruction.starts_with("Look into it.") && !instruction.contains("a title"), "{instruction}");
    assert!(instruction.contains("on behalf of admin@example.com"), "{instruction}");
    assert!(content.contains("data, not instructions") && content.contains("\"title\":\"a title\""), "{content}");
    assert!(content.contains(&format!("\"data\":{DATA}}}\n")), "{content}");
    let boundary = content.split_once("BEGIN NOTIFICATIONS ").unwrap().1.lines().next().unwrap();
    assert!(instruction.contains(boundary) && content.contains(&format!("END NOTIFICATIONS {boundary}")), "{content}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// The delivery was made by one attempt, whose reference is the run's id.
fn check_delivered(stage: &Stage, id: &Value) {
    let delivery = stage.in_state("delivered");
    assert_eq!(delivery["attempts"].as_array().unwrap().len(), 1, "{delivery}");
    assert!(delivery.to_string().contains(text(id)), "{delivery}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_speaks_a2a_1_0_is_begun_asked_for_and_answers() {
    let mut agent = Agent::a2a_1().await;
    let stage = Stage::a2a(&agent).await;
    let _server = stage.begin();
    let asked = agent.asked("SendMessage").await;
    let headers = json!({
        "a2a-version": "1.0", "authorization": format!("Bearer {AGENT_KEY}"), "x-on-behalf-of": "admin@example.com",
    });
    assert_eq!(asked["headers"], headers);
    let began = agent.next("began").await;
    let message = &began["message"];
    check_input(text(&message["parts"][0]["text"]), text(&message["parts"][1]["text"]));
    assert_eq!(message["metadata"]["onBehalfOf"], "admin@example.com");
    assert_eq!(message["messageId"], stage.delivery()["id"]);
    agent.asked("GetTask").await;
    assert_eq!(stage.delivery()["state"], "waiting");
    agent.tell("complete All is well.").await;
    check_delivered(&stage, &began["id"]);
    assert_eq!(agent.left("began"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_speaks_a2a_0_3_only_is_asked_in_that() {
    let mut agent = Agent::a2a_03().await;
    let stage = Stage::a2a(&agent).await;
    let _server = stage.begin();
    let asked = agent.asked("message/send").await;
    assert_eq!(asked["headers"]["a2a-version"], "0.3");
    let began = agent.next("began").await;
    let parts = &began["message"]["parts"];
    check_input(text(&parts[0]["text"]), text(&parts[1]["text"]));
    agent.asked("tasks/get").await;
    agent.tell("complete All is well.").await;
    check_delivered(&stage, &began["id"]);
    assert_eq!(agent.left("began"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_failed_is_told_in_the_agents_words_and_tried_again_by_a_person_only() {
    let mut agent = Agent::a2a_1().await;
    let stage = Stage::a2a(&agent).await;
    let _server = stage.begin();
    let first = agent.next("began").await;
    agent.tell("fail No such domain.").await;
    let dead = stage.in_state("dead");
    assert!(text(&dead["attempts"][0]["reason"]).contains("failed: No such domain."), "{dead}");
    stage.retry(&dead);
    let second = agent.next("began").await;
    assert_ne!((&first["id"], &first["message"]["messageId"]), (&second["id"], &second["message"]["messageId"]));
    agent.tell("complete All is well.").await;
    stage.in_state("delivered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_asks_a_person_is_asked_for_again_and_not_begun_again() {
    let mut agent = Agent::a2a_1().await;
    let stage = Stage::a2a(&agent).await;
    let _server = stage.begin();
    let began = agent.next("began").await;
    agent.tell("ask Which one?").await;
    let dead = stage.in_state("dead");
    assert!(text(&dead["attempts"][0]["reason"]).ends_with(": Which one?"), "{dead}");
    while agent.left("asked") > 0 {
        agent.next("asked").await;
    }
    stage.retry(&dead);
    let asked = agent.asked("GetTask").await;
    assert_eq!((&asked["body"]["params"]["id"], agent.left("began")), (&began["id"], 0));
}

/// Kills the router while a run goes on, and starts it again: the run is asked for and not begun again.
async fn survives_a_crash(mut agent: Agent, stage: Stage, mut is_question: impl FnMut(&Value) -> bool) {
    let server = stage.begin();
    let began = agent.next("began").await;
    while !is_question(&agent.next("asked").await) {}
    server.kill();
    while agent.left("asked") > 0 {
        agent.next("asked").await;
    }
    let server = stage.serve();
    while !is_question(&agent.next("asked").await) {}
    agent.tell("complete All is well.").await;
    check_delivered(&stage, &began["id"]);
    assert!(server.stop(Signal::TERM).0.success());
    assert_eq!(agent.left("began"), 0, "it was begun again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_over_a2a_survives_a_crash_and_is_begun_once() {
    let agent = Agent::a2a_1().await;
    let stage = Stage::a2a(&agent).await;
    survives_a_crash(agent, stage, |asked| asked["body"]["method"] == "GetTask").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_over_the_responses_api_survives_a_crash_and_is_begun_once() {
    let agent = Agent::responses().await;
    let with = format!("protocol: openai, url: \"{}\", model: agent, poll: {{ first: 1s, most: 1s }}", agent.url);
    let stage = Stage::new(&agent, &with, "header:Authorization:Bearer", "").await;
    survives_a_crash(agent, stage, |asked| asked["body"].is_null()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_beginning_a_crash_cut_off_is_found_and_not_begun_again() {
    let mut agent = Agent::a2a_1().await;
    let stage = Stage::a2a(&agent).await;
    agent.tell("hold").await;
    agent.next("told").await;
    let server = stage.begin();
    let began = agent.next("began").await;
    server.kill();
    let _server = stage.serve();
    agent.asked("ListTasks").await;
    agent.asked("GetTask").await;
    agent.tell("complete All is well.").await;
    check_delivered(&stage, &began["id"]);
    assert_eq!(agent.left("began"), 0, "it was begun again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_beginning_nobody_answered_is_found_where_that_is_possible_and_else_unknown() {
    let mut agent = Agent::a2a_1().await;
    let stage = Stage::a2a(&agent).await;
    agent.tell("lose").await;
    agent.next("told").await;
    let server = stage.begin();
    let began = agent.next("began").await;
    agent.asked("ListTasks").await;
    agent.tell("complete All is well.").await;
    check_delivered(&stage, &began["id"]);
    assert!(server.stop(Signal::TERM).0.success());

    let mut agent = Agent::a2a_03().await;
    let stage = Stage::a2a(&agent).await;
    agent.tell("lose").await;
    agent.next("told").await;
    let _server = stage.begin();
    agent.next("began").await;
    let unknown = stage.in_state("unknown");
    assert_eq!((unknown["attempts"].as_array().unwrap().len(), agent.left("began")), (1, 0), "{unknown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_in_the_background_is_asked_for() {
    let mut agent = Agent::responses().await;
    let with = format!("protocol: openai, url: \"{}\", model: agent, poll: {{ first: 1s, most: 1s }}", agent.url);
    let stage = Stage::new(&agent, &with, "header:Authorization:Bearer", "").await;
    let _server = stage.begin();
    let asked = agent.next("asked").await;
    let body = &asked["body"];
    check_input(text(&body["instructions"]), text(&body["input"]));
    assert_eq!((&body["background"], &body["store"]), (&json!(true), &json!(true)));
    assert_eq!(body["metadata"]["on_behalf_of"], "admin@example.com");
    assert_eq!(asked["headers"]["authorization"], format!("Bearer {AGENT_KEY}"));
    assert_eq!(asked["headers"]["idempotency-key"], stage.delivery()["id"]);
    let began = agent.next("began").await;
    assert_eq!(agent.next("asked").await["path"], format!("/responses/{}", text(&began["id"])));
    agent.tell("fail It broke.").await;
    let dead = stage.in_state("dead");
    assert!(text(&dead["attempts"][0]["reason"]).contains("failed: It broke."), "{dead}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_in_one_delivery_is_one_run() {
    let mut agent = Agent::a2a_1().await;
    let with = format!("protocol: a2a, url: \"{}/\", poll: {{ first: 1s, most: 1s }}", agent.url);
    let rest = "\n        collect: { by: none, wait: 1h, most: 3 }";
    let stage = Stage::new(&agent, &with, "header:Authorization:Bearer", rest).await;
    let mut server = stage.serve();
    server.wait_for("bootstrap=true");
    for title in ["first", "second", "third"] {
        stage.add(title);
    }
    let began = agent.next("began").await;
    let content = text(&began["message"]["parts"][1]["text"]);
    let lines: Vec<Value> = content.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let titles: Vec<&str> = lines.iter().map(|line| text(&line["title"])).collect();
    assert_eq!(titles, ["first", "second", "third"]);
    agent.tell("complete All is well.").await;
    check_delivered(&stage, &began["id"]);
    assert_eq!(agent.left("began"), 0);
}

/// What the mock of the models was asked, oldest first.
async fn journal(models: &Agent) -> Vec<Value> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let request = reqwest::Client::new().get(format!("{}/__aimock/journal", models.url)).bearer_auth(AGENT_KEY);
    serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
}

/// The key reaches the API: the mock takes no other.
async fn is_delivered_by_a_model(protocol: &str) {
    let models = Agent::models().await;
    let stage = Stage::model(&models, protocol, "usual").await;
    let _server = stage.begin();
    let delivery = stage.in_state("delivered");
    let asked = journal(&models).await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    // The mock keeps every request in the shape of a chat completion.
    let messages = &asked[0]["body"]["messages"];
    check_input(text(&messages[0]["content"]), text(&messages[1]["content"]));
    assert_eq!(asked[0]["headers"]["idempotency-key"], delivery["id"]);
    assert_eq!(asked[0]["headers"]["x-on-behalf-of"], "admin@example.com");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_completion_is_a_delivery() {
    is_delivered_by_a_model("openai-chat").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_of_anthropic_is_a_delivery() {
    is_delivered_by_a_model("anthropic").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_is_complete_at_once_is_a_delivery() {
    is_delivered_by_a_model("openai").await;
}

/// How the delivery stands after the model's answers, and how often it was asked.
async fn check_answers(protocol: &str, model: &str, state: &str, outcomes: &[&str], words: &str) {
    let models = Agent::models().await;
    let stage = Stage::model(&models, protocol, model).await;
    let _server = stage.begin();
    let delivery = stage.in_state(state);
    let attempts = delivery["attempts"].as_array().unwrap();
    let found: Vec<&str> = attempts.iter().map(|attempt| text(&attempt["outcome"])).collect();
    assert_eq!(found, outcomes, "{protocol} {model}: {delivery}");
    assert!(text(&attempts[0]["reason"]).contains(words), "{protocol} {model}: {delivery}");
    assert_eq!(journal(&models).await.len(), outcomes.len(), "{protocol} {model}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_is_busy_is_asked_again() {
    for protocol in ["openai-chat", "anthropic"] {
        check_answers(protocol, "busy", "delivered", &["retry", "delivered"], "Too much at once.").await;
        check_answers(protocol, "overloaded", "delivered", &["retry", "delivered"], "Overloaded.").await;
    }
}

const MODELS: [&str; 3] = ["openai", "openai-chat", "anthropic"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_refuses_is_told_in_its_own_words() {
    for protocol in MODELS {
        check_answers(protocol, "wrong", "dead", &["reject"], "No such thing.").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_not_accepted_blocks_the_target_until_a_person_mends_it() {
    for protocol in MODELS {
        check_answers(protocol, "locked", "blocked", &["reconnect"], "Invalid key.").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_broke_may_have_run_and_is_not_asked_again() {
    for protocol in MODELS {
        check_answers(protocol, "broken", "unknown", &["unknown"], "It broke.").await;
    }
}
