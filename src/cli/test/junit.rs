//! What came of tests as build servers read it: the XML of JUnit, as Ant writes it.

use std::fmt::Write as _;

use super::Done;
use super::show::failures;

/// A suite for each file. No time is said: tests run by a clock of their own.
pub(super) fn xml(done: &[Done<'_>]) -> String {
    let mut files: Vec<&std::path::Path> = done.iter().map(|one| one.file.file.as_path()).collect();
    files.dedup();
    let failed = done.iter().filter(|one| !one.is_good()).count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"switchbell test\" tests=\"{}\" failures=\"{failed}\" \
         errors=\"0\" time=\"0\">\n",
        done.len()
    );
    for file in files {
        let of_file: Vec<&Done<'_>> = done.iter().filter(|one| one.file.file == file).collect();
        let failed = of_file.iter().filter(|one| !one.is_good()).count();
        let name = escaped(&file.to_string_lossy());
        let count = of_file.len();
        let _infallible = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"0\">"
        );
        of_file.into_iter().for_each(|one| case(&mut out, one, &name));
        out.push_str("  </testsuite>\n");
    }
    out + "</testsuites>\n"
}

fn case(out: &mut String, done: &Done<'_>, file: &str) {
    let (name, class, line) = (escaped(&done.trial.name), escaped(done.workspace.name.as_str()), done.trial.place.line);
    let start =
        format!("    <testcase name=\"{name}\" classname=\"{class}\" file=\"{file}\" line=\"{line}\" time=\"0\"");
    if done.is_good() {
        let _infallible = writeln!(out, "{start}/>");
        return;
    }
    let lines = failures(done);
    let first = escaped(lines.first().map_or("", String::as_str));
    let all = escaped(&lines.join("\n"));
    let _infallible = writeln!(
        out,
        "{start}>\n      <failure message=\"{first}\" type=\"expectation\">{all}</failure>\n    </testcase>"
    );
}

/// A text as XML may hold it, in an attribute too. What XML 1.0 cannot hold at all is replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => {
                let _infallible = write!(out, "&#{};", u32::from(c));
            }
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced_and_the_rest_escaped() {
        assert_eq!(escaped("a<b>&\"c\"\n\u{1}ü"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;\u{fffd}ü");
    }
}
