//! Style, script and icon: in the program itself, under names that change with what they hold, so that browsers keep them for
//! ever.

use std::sync::OnceLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use sha2::{Digest, Sha256};

use super::visitor::Refused;
use crate::serve::problem::Problem;
use crate::text::hex;

/// Digits of the hash in a name.
const HASH_DIGITS: usize = 16;

/// The library that changes what is shown into what the server sends, node by node: idiomorph 0.8.0, 0BSD
/// (`assets/idiomorph.LICENSE`).
const IDIOMORPH: &str = include_str!("assets/idiomorph.min.js");

/// A file that browsers load.
#[derive(Debug)]
pub(super) struct Asset {
    /// Its path.
    pub(super) path: String,
    media_type: &'static str,
    text: String,
    tag: String,
}

impl Asset {
    fn new(name: &str, extension: &str, media_type: &'static str, text: String) -> Self {
        let hash: String = hex(&Sha256::digest(text.as_bytes())).chars().take(HASH_DIGITS).collect();
        Self { path: format!("/assets/{name}-{hash}.{extension}"), media_type, text, tag: format!("\"{hash}\"") }
    }
}

/// The style of all pages.
pub(super) fn style() -> &'static Asset {
    static STYLE: OnceLock<Asset> = OnceLock::new();
    STYLE.get_or_init(|| {
        let parts =
            [include_str!("assets/base.css"), include_str!("assets/parts.css"), include_str!("assets/pages.css")];
        Asset::new("switchbell", "css", "text/css; charset=utf-8", parts.concat())
    })
}

/// The script of all pages.
pub(super) fn script() -> &'static Asset {
    static SCRIPT: OnceLock<Asset> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let parts = [
            IDIOMORPH,
            include_str!("assets/times.js"),
            include_str!("assets/refresh.js"),
            include_str!("assets/acts.js"),
            include_str!("assets/live.js"),
            include_str!("assets/keys.js"),
        ];
        Asset::new("switchbell", "js", "text/javascript; charset=utf-8", parts.join("\n"))
    })
}

/// The icon.
pub(super) fn icon() -> &'static Asset {
    static ICON: OnceLock<Asset> = OnceLock::new();
    ICON.get_or_init(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("assets/icon.svg").to_owned()))
}

/// The icon, where a browser looks for it by itself.
pub(super) async fn favicon() -> Redirect {
    Redirect::to(&icon().path)
}

/// Serves them.
pub(super) async fn serve(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let is_it = |asset: &&Asset| asset.path.strip_prefix("/assets/") == Some(name.as_str());
    let Some(asset) = [style(), script(), icon()].into_iter().find(is_it) else {
        return Refused(Problem::Unknown("there is no such file: load the page again".to_owned())).into_response();
    };
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|tag| tag.trim().trim_start_matches("W/") == asset.tag);
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { asset.text.as_str().into_response() };
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, kept);
    if let Ok(tag) = HeaderValue::from_str(&asset.tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    if !is_known {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    async fn get(path: &str, known: Option<&str>) -> (StatusCode, HeaderMap, usize) {
        let mut headers = HeaderMap::new();
        if let Some(known) = known {
            headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
        }
        let response = serve(Path(path.trim_start_matches("/assets/").to_owned()), headers).await;
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().len())
    }

    #[test]
    fn the_library_is_the_one_that_was_published() {
        // Of the package that the npm registry has as idiomorph-0.8.0.tgz: dist/idiomorph.min.js.
        let published = "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96";
        assert_eq!(hex(&Sha256::digest(IDIOMORPH.as_bytes())), published);
        assert!(include_str!("assets/idiomorph.LICENSE").contains("Zero-Clause BSD"));
    }

    #[tokio::test]
    async fn files_are_kept_for_ever_and_known_ones_not_sent_again() {
        for asset in [style(), script(), icon()] {
            let (status, headers, length) = get(&asset.path, None).await;
            assert_eq!((status, length), (StatusCode::OK, asset.text.len()));
            assert_eq!(headers[header::CACHE_CONTROL], "public, max-age=31536000, immutable");
            assert_eq!(headers[header::CONTENT_TYPE], asset.media_type);
            let tag = headers[header::ETAG].to_str().unwrap().to_owned();
            let (status, headers, length) = get(&asset.path, Some(&format!("\"other\", W/{tag}"))).await;
            assert_eq!((status, length), (StatusCode::NOT_MODIFIED, 0));
            assert_eq!(headers[header::ETAG], tag.as_str());
            assert_eq!(get(&asset.path, Some("\"other\"")).await.0, StatusCode::OK);
        }
        assert_eq!(get("/assets/switchbell.css", None).await.0, StatusCode::NOT_FOUND);
    }

    #[test]
    fn nothing_in_them_needs_more_than_the_policy_allows() {
        for word in ["eval(", "new Function", ".style.", "setAttribute(\"style\"", "innerHTML"] {
            let own = script().text.replace(IDIOMORPH, "");
            assert!(!own.contains(word), "{word}");
        }
        assert!(!style().text.contains("@import") && !style().text.contains("http"));
    }
}
