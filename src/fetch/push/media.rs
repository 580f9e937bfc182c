//! Inline media that is too large gives way to a block that says so. Every other block stays byte for byte.

use serde_json::json;
use serde_json::value::RawValue;

use crate::fetch::json::{self, Kind, fields, kind};
use crate::text;

/// Longest media type that a marker repeats, in characters.
const TYPE_CHARS_MAX: usize = 100;

/// What fitting comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fitted {
    /// The JSON text of the blocks.
    Fits(String),
    /// The blocks are too large without any media.
    TooLarge,
}

/// These blocks as the text of one array of at most `bytes_max`, with as little media left out as that takes, the largest
/// first.
pub(super) fn fit(blocks: &[&RawValue], bytes_max: usize) -> Fitted {
    let mut texts: Vec<String> = blocks.iter().map(|block| block.get().to_owned()).collect();
    let mut media: Vec<(usize, Media)> =
        blocks.iter().enumerate().filter_map(|(index, block)| Some((index, media_in(block)?))).collect();
    media.sort_by_key(|(_, media)| std::cmp::Reverse(media.base64_bytes));
    let mut media = media.into_iter();
    // Brackets, and a comma after each but the last.
    let mut bytes = texts.iter().map(String::len).sum::<usize>() + texts.len() + 1;
    while bytes > bytes_max {
        let Some((index, media)) = media.next() else { return Fitted::TooLarge };
        let (Some(text), marker) = (texts.get_mut(index), media.marker()) else { return Fitted::TooLarge };
        if marker.len() < text.len() {
            bytes = bytes - text.len() + marker.len();
            *text = marker;
        }
    }
    Fitted::Fits(format!("[{}]", texts.join(",")))
}

/// Media in a block.
#[derive(Debug)]
struct Media {
    mime: String,
    base64_bytes: usize,
}

impl Media {
    fn marker(&self) -> String {
        let kib = (self.base64_bytes / 4 * 3).div_ceil(1_024);
        let text = format!(
            "[{}, {kib} KiB, left out by Switchbell: an event has at most 64 KiB; its source should link to it]",
            self.mime
        );
        json!({ "type": "text", "text": text }).to_string()
    }
}

/// The media of an image, a piece of audio, or an embedded resource that is binary (MCP, "ContentBlock").
fn media_in(block: &RawValue) -> Option<Media> {
    let [of, data, mime, resource] = fields(block.get(), ["type", "data", "mimeType", "resource"]).ok()?;
    let (data, mime) = match json::string(of?)?.as_ref() {
        "image" | "audio" => (data, mime),
        "resource" => {
            let [blob, mime] = fields(resource?.get(), ["blob", "mimeType"]).ok()?;
            (blob, mime)
        }
        _ => return None,
    };
    let data = data.filter(|data| kind(data) == Kind::String)?;
    let mime = mime.and_then(json::text).map(|mime| text::line(&mime, TYPE_CHARS_MAX)).filter(|mime| !mime.is_empty());
    // Without the quotes.
    Some(Media { mime: mime.unwrap_or_else(|| "media".to_owned()), base64_bytes: data.get().len().saturating_sub(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(blocks: &[String], bytes_max: usize) -> Option<String> {
        let blocks: Vec<Box<RawValue>> =
            blocks.iter().map(|text| RawValue::from_string(text.clone()).unwrap()).collect();
        match fit(&blocks.iter().map(|block| &**block).collect::<Vec<_>>(), bytes_max) {
            Fitted::Fits(text) => Some(text),
            Fitted::TooLarge => None,
        }
    }

    #[test]
    fn the_largest_goes_first_and_only_as_many_as_it_takes() {
        let image = format!(r#"{{"type":"image","data":"{}","mimeType":"image/png"}}"#, "A".repeat(4_000));
        let audio = format!(r#"{{"type":"audio","data":"{}","mimeType":"audio/wav"}}"#, "A".repeat(8_000));
        let blob = format!(r#"{{"type":"resource","resource":{{"uri":"a:b","blob":"{}"}}}}"#, "A".repeat(6_000));
        let words = r#"{"type":"text","text":"x"}"#.to_owned();
        let blocks = [image.clone(), words.clone(), audio, blob.clone()];
        let whole = blocks.iter().map(String::len).sum::<usize>() + 5;
        assert_eq!(fitted(&blocks, whole).unwrap(), format!("[{}]", blocks.join(",")));
        let without_audio = fitted(&blocks, whole - 1).unwrap();
        assert!(without_audio.contains("[audio/wav, 6 KiB, left out") && without_audio.contains(&blob));
        let without_both = fitted(&blocks, 5_000).unwrap();
        assert!(without_both.contains("[media, 5 KiB, left out") && without_both.contains(&image));
        assert!(fitted(&blocks, 1_000).is_some_and(|text| text.contains(&words) && !text.contains("AAAA")));
        assert_eq!(fitted(&blocks, 100), None);
    }

    #[test]
    fn a_marker_is_never_larger_than_what_it_stands_for() {
        let tiny = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#.to_owned();
        assert_eq!(fitted(std::slice::from_ref(&tiny), 10), None);
        assert_eq!(fitted(&[], 2).as_deref(), Some("[]"));
    }
}
