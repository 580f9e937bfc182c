//! One entry of a grant's `tools` list.

use super::super::ToolGrant;
use super::super::read::FromText;
use super::super::schema::Form;
use super::words::NAME;

/// `workspace:connector/tool`.
#[derive(Debug, Clone)]
pub(in crate::config) struct ToolEntry(pub ToolGrant);

/// Longest name of a tool, in bytes: what the protocol advises.
const TOOL_BYTES_MAX: usize = 128;

impl FromText for ToolEntry {
    const WANTED: &'static str = "a tool such as `acme:registrar/restart_domain`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        parse(text).map(Self).map_err(|why| format!("{quoted}: {why}"))
    }

    fn form() -> Form {
        let pattern = format!(r"(?![\s\S]*\*){NAME}:{NAME}\/[!-~]{{1,{TOOL_BYTES_MAX}}}");
        Form::pattern(pattern, &["acme:registrar/restart_domain"])
    }
}

fn parse(text: &str) -> Result<ToolGrant, String> {
    if text.contains('*') {
        return Err("a tool is granted by its whole name, never by a pattern: name each tool that may be called".into());
    }
    let form = "a tool is written `WORKSPACE:CONNECTOR/TOOL`, as in `acme:registrar/restart_domain`";
    let (workspace, rest) = text.split_once(':').ok_or_else(|| format!("no workspace stands before a `:`; {form}"))?;
    let (connector, tool) = rest.split_once('/').ok_or_else(|| format!("no tool stands behind a `/`; {form}"))?;
    let name = |text: &str, what: &str| {
        text.parse().map_err(|_| {
            format!("{text:?} is no name of a {what}, which is 1 to 63 of a-z, 0-9 and inner hyphens; {form}")
        })
    };
    if !(1..=TOOL_BYTES_MAX).contains(&tool.len()) || !tool.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the tool's name is 1 to {TOOL_BYTES_MAX} visible ASCII characters; {form}"));
    }
    Ok(ToolGrant {
        workspace: name(workspace, "workspace")?,
        connector: name(connector, "connector")?,
        tool: tool.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_in_three_parts() {
        for (text, expected) in [
            ("acme:registrar/restart_domain", ["acme", "registrar", "restart_domain"]),
            ("a-1:b/ns/get.it", ["a-1", "b", "ns/get.it"]),
        ] {
            let found = parse(text).unwrap();
            assert_eq!([found.workspace.as_str(), found.connector.as_str(), &found.tool], expected);
        }
    }

    #[test]
    fn what_names_no_tool_says_how_it_is_written() {
        for (text, part) in [
            ("", "no workspace"),
            ("registrar/restart", "no workspace"),
            ("acme:registrar", "no tool"),
            ("acme:registrar/", "1 to 128"),
            ("acme:registrar/two words", "1 to 128"),
            ("Acme:registrar/x", "name of a workspace"),
            (":registrar/x", "name of a workspace"),
            ("acme:/x", "name of a connector"),
            ("acme:registrar/*", "never by a pattern"),
            ("*:registrar/x", "never by a pattern"),
        ] {
            assert!(parse(text).is_err_and(|message| message.contains(part)), "{text}: {:?}", parse(text));
        }
    }
}
