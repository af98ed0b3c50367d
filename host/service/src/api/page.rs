//! The page for people: files in the program, which talk to the API like any other client.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::routing::get;

/// No script, style or connection but our own, and no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self' data:; form-action 'none'; \
                      base-uri 'none'; frame-ancestors 'none'";

const FILES: [(&str, &str, &str); 5] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../page/index.html"),
    ),
    (
        "/page/style.css",
        "text/css; charset=utf-8",
        include_str!("../page/style.css"),
    ),
    (
        "/page/app.js",
        "text/javascript; charset=utf-8",
        include_str!("../page/app.js"),
    ),
    (
        "/page/parts.js",
        "text/javascript; charset=utf-8",
        include_str!("../page/parts.js"),
    ),
    (
        "/page/timeline.js",
        "text/javascript; charset=utf-8",
        include_str!("../page/timeline.js"),
    ),
];

/// The routes of the page. It tells nothing by itself, so it needs no caller.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new();
    for (path, media_type, text) in FILES {
        let headers: [(HeaderName, &str); 4] = [
            (header::CONTENT_TYPE, media_type),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        router = router.route(path, get(move || async move { (headers, text) }));
    }
    router
}
