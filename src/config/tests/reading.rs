//! What is judged without secrets and plugins, and of all patterns together.

use super::*;

/// A configuration with a secret that cannot be had in each way, and a target that uses it, without a folder of plugins.
fn without_its_surroundings(operator: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("workspaces")).unwrap();
    let workspace = "members: { a@example.com: admin }\nroutes:\n  - name: news\n    owner: a@example.com\n    deliver:\n      \
                     - { plugin: slack, with: { webhook: { secret: hook } } }\n";
    std::fs::write(folder.path().join("workspaces/acme.yaml"), workspace).unwrap();
    std::fs::write(folder.path().join("switchbell.yaml"), operator).unwrap();
    folder
}

const SECRETS_FROM_ELSEWHERE: &str = "secrets:
  hook: { env: NOT_SET, in: url, workspaces: [acme] }
  key: { file: not/there, in: sign, workspaces: [acme] }
  run: { command: [touch, was-run], in: connector }
  token:
    in: \"header:Authorization:Bearer\"
    hosts: [api.example.com]
    oauth:
      token_url: https://login.example.com/token
      grant: jwt_bearer
      issuer: bell
      key: { file: not/there }
";

#[test]
fn a_configuration_is_judged_without_the_values_of_secrets_and_without_plugins() {
    let folder = without_its_surroundings(SECRETS_FROM_ELSEWHERE);
    let file = folder.path().join("switchbell.yaml");
    let reading = |plugins| Reading { environment: &|_| None, secrets: Secrets::NotRead, plugins };
    let Loaded { config, warnings, .. } = load_with(&file, &reading(PluginFolder::NotAsked)).unwrap();
    assert!(warnings.iter().all(|warning| warning.code == Code::UnusedSecret), "{warnings:?}");
    assert_eq!(config.secrets.len(), 4);
    assert!(config.secrets.values().all(|secret| matches!(secret.value, SecretValue::NotRead)));
    assert!(!folder.path().join("was-run").exists(), "the program of a secret was run");
    let warnings = load_with(&file, &reading(PluginFolder::MayBeAbsent)).unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.message.contains("is not there, so that no plugin was asked")));
    let mistakes = load_with(&file, &reading(PluginFolder::MustBeThere)).unwrap_err().mistakes;
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
}

#[test]
fn what_the_files_say_of_secrets_is_judged_without_their_values() {
    let operator = SECRETS_FROM_ELSEWHERE.replace("in: connector", "in: nowhere").replace("key: {", "client_id: {");
    let folder = without_its_surroundings(&operator.replace("in: url", "in: mail"));
    let reading = Reading { environment: &|_| None, secrets: Secrets::NotRead, plugins: PluginFolder::NotAsked };
    let said = load_with(&folder.path().join("switchbell.yaml"), &reading).unwrap_err().to_string();
    for part in ["secrets.run.in", "secrets.token.oauth", "the password of the mail relay is for the relay alone"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn patterns_that_cannot_be_matched_all_at_once_are_told_at_the_route_that_has_most() {
    let route = |name: &str, patterns: usize| {
        let pattern = |number| format!("\"{}{number}\"", "**a*".repeat(40));
        let patterns = (0..patterns).map(pattern).collect::<Vec<_>>().join(", ");
        format!("  - {{ name: {name}, owner: a, deliver: [{{ plugin: slack }}], when: {{ name: [{patterns}] }} }}\n")
    };
    let routes: String = (0..120).map(|number| route(&format!("r{number}"), 49)).collect();
    let text = format!("=== workspaces/acme.yaml\nmembers: {{ a: admin }}\nroutes:\n{}{routes}", route("largest", 50));
    let said = Case::parse(&text).run();
    assert!(
        said.contains("acme.yaml:3:") && said.contains("[pattern-set-too-large]"),
        "{}",
        &said[..said.len().min(2_000)]
    );
}
